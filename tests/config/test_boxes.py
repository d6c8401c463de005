"""Secrets are encrypted with a key of a file, for one place."""

import hmac
import os
import stat
from base64 import b64encode
from pathlib import Path

import pytest
from django.test import override_settings

from config.boxes import BoxError, close, derive, open_box

PLACE = os.urandom(32)


def test_box_opens_only_for_its_place(tmp_path: Path) -> None:
    with override_settings(ENCRYPTION_KEYS=tmp_path / "keys"):
        box = close(PLACE, "ünsichtbar".encode())
        assert b"sichtbar" not in box
        assert open_box(PLACE, box) == "ünsichtbar".encode()
        assert close(PLACE, "ünsichtbar".encode()) != box
        with pytest.raises(BoxError, match="was altered"):
            open_box(os.urandom(32), box)
        for place in (8, 20, len(box) - 1):
            altered = box[:place] + bytes([box[place] ^ 1]) + box[place + 1 :]
            with pytest.raises(BoxError, match="was altered"):
                open_box(PLACE, altered)


def test_key_file_is_private_and_made_once(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    with override_settings(ENCRYPTION_KEYS=path):
        box = close(PLACE, b"text")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [each.name for each in tmp_path.iterdir()] == ["keys"]
        text = path.read_bytes()
        assert open_box(PLACE, box) == b"text"
        assert path.read_bytes() == text


def test_first_key_encrypts_and_all_decrypt(tmp_path: Path) -> None:
    old, new, both = tmp_path / "old", tmp_path / "new", tmp_path / "both"
    with override_settings(ENCRYPTION_KEYS=old):
        box = close(PLACE, b"text")
    with override_settings(ENCRYPTION_KEYS=new):
        close(PLACE, b"")
        with pytest.raises(BoxError, match="does not have"):
            open_box(PLACE, box)
    both.write_bytes(new.read_bytes() + old.read_bytes())
    both.chmod(0o600)
    with override_settings(ENCRYPTION_KEYS=both):
        assert open_box(PLACE, box) == b"text"
        later = close(PLACE, b"later")
    with override_settings(ENCRYPTION_KEYS=new):
        assert open_box(PLACE, later) == b"later"


@pytest.mark.parametrize("text", ["", "short", "AAAA", "not base64 at all"])
def test_other_file_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys"
    path.write_text(text)
    path.chmod(0o600)
    settings = override_settings(ENCRYPTION_KEYS=path)
    with settings, pytest.raises(BoxError, match="not a file of keys"):
        close(PLACE, b"text")


def test_file_that_others_may_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("x")
    path.chmod(0o644)
    with override_settings(ENCRYPTION_KEYS=path), pytest.raises(BoxError, match="chmod 600"):
        close(PLACE, b"text")


def test_derived_secret_depends_on_the_first_key_and_the_purpose(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    with override_settings(ENCRYPTION_KEYS=path):
        secret = derive(b"one")
        assert len(secret) == 32
        assert derive(b"one") == secret
        assert derive(b"two") != secret
        path.write_bytes(path.read_bytes() + b64encode(os.urandom(32)) + b"\n")
        assert derive(b"one") == secret, "a key that only decrypts"
        path.write_bytes(b64encode(os.urandom(32)) + b"\n" + path.read_bytes())
        assert derive(b"one") != secret


def test_derived_secret_is_that_of_hkdf(tmp_path: Path) -> None:
    """RFC 5869, sections 2.2 and 2.3, by hand: one block of output."""
    path, key = tmp_path / "keys", bytes(range(32))
    path.write_bytes(b64encode(key))
    path.chmod(0o600)
    with override_settings(ENCRYPTION_KEYS=path):
        pseudorandom = hmac.digest(bytes(32), key, "sha256")
        assert derive(b"x") == hmac.digest(pseudorandom, b"tooltrail\nx\x01", "sha256")
