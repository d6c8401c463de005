"""Secrets are encrypted with a key of a file, for one place."""

import os
import stat
from pathlib import Path

import pytest
from django.test import override_settings

from config.boxes import BoxError, close, open_box

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
