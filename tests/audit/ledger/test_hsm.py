"""The private key is in a PKCS#11 token: SoftHSM, which Debian builds with Ed25519."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from tooltrail.ledger import SignatureError, VerifierKey, open_checkpoint, open_note

from audit.ledger import hsm, keys
from audit.ledger.cose import check_root
from audit.ledger.signer_state import origin_of
from audit.models import LedgerCheckpoint, LedgerKey
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support import debian
from tests.support.factories import Cast
from tests.support.ledger_log import append, keep, leaves, own_folder, status_of

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
LATER = timedelta(minutes=1)
PROGRAM = "/usr/bin/softhsm2-util"
MODULE = "/usr/lib/softhsm/libsofthsm2.so"
LABEL = "tooltrail test"
PIN = "4711"


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URI of an empty token. The library reads its folder once a process."""
    if not Path(PROGRAM).exists() and (os.getuid() != 0 or shutil.which("apt-get") is None):
        pytest.skip("NO KEY IS TRIED IN A PKCS#11 TOKEN: as root on Debian: apt install softhsm2")
    debian.need("softhsm2", PROGRAM)
    folder = tmp_path_factory.mktemp("softhsm")
    (folder / "tokens").mkdir()
    (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder}/tokens\n")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SOFTHSM2_CONF", str(folder / "softhsm2.conf"))
        subprocess.run(
            [
                *(PROGRAM, "--init-token", "--free", "--label", LABEL),
                *("--pin", PIN, "--so-pin", "0815"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (folder / "pin").write_text(f"{PIN}\n")
        (folder / "pin").chmod(0o600)
        label = LABEL.replace(" ", "%20")
        yield f"pkcs11:token={label}?module-path={MODULE}&pin-source=file:{folder}/pin"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this test's worker, without a key."""
    return own_folder(tmp_path, monkeypatch)


@pytest.fixture
def in_token(token: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The only key is in the token, and so are new ones."""
    monkeypatch.setattr(settings, "LEDGER_PKCS11", token)
    (folder / "signing-keys.json").unlink()
    keys.rotate(NOW, keys.OVERLAP)
    return token


def newest_note(tenant: Tenant) -> str:
    with tenant_scope(tenant.id):
        return LedgerCheckpoint.objects.for_tenant(tenant.id).latest("size").note


def vkeys(tenant: Tenant) -> list[VerifierKey]:
    """All published keys, of other tests, too."""
    origin = origin_of(tenant.id, 0)
    return [VerifierKey(origin, bytes(each.public_key)) for each in LedgerKey.objects.all()]


def test_ledger_is_signed_in_the_token(acme: Cast, folder: Path, in_token: str) -> None:
    append(acme.tenant, leaves(5))
    assert keep(acme.tenant, NOW).signed_size == 5
    stored = json.loads((folder / "signing-keys.json").read_text())
    assert [set(each) for each in stored] == [{"token_id", "public", "created_at", "signs_until"}]
    (key,) = keys.load()
    known = VerifierKey(origin_of(acme.tenant.id, 0), key.public())
    checkpoint = open_checkpoint(newest_note(acme.tenant).encode(), known.name, [known])
    assert checkpoint.size == 5
    with tenant_scope(acme.tenant.id):
        (receipt,) = LedgerCheckpoint.objects.for_tenant(acme.tenant.id).latest("size").receipts
    check_root(bytes(receipt), known.name, checkpoint.root, [key.public()])
    with pytest.raises(SignatureError):
        check_root(bytes(receipt), known.name, bytes(32), [key.public()])


def test_private_key_cannot_leave_the_token(in_token: str) -> None:
    import pkcs11

    key = hsm.generate()
    with pkcs11.lib(MODULE).get_token(token_label=LABEL).open(user_pin=PIN) as session:
        (private,) = session.get_objects(
            {
                pkcs11.Attribute.CLASS: pkcs11.ObjectClass.PRIVATE_KEY,
                pkcs11.Attribute.ID: key.id,
            }
        )
        assert private[pkcs11.Attribute.EXTRACTABLE] is False
        with pytest.raises(pkcs11.exceptions.PKCS11Error):
            private[pkcs11.Attribute.VALUE]


@pytest.mark.slow
def test_rotation_moves_the_key_into_the_token(
    acme: Cast, folder: Path, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(acme.tenant, leaves(5))
    keep(acme.tenant, NOW)
    monkeypatch.setattr(settings, "LEDGER_PKCS11", token)
    append(acme.tenant, leaves(5, b"more"))
    assert keep(acme.tenant, NOW + LATER).signed_size == 10, "the key in the file still signs"
    call_command("ledger", "rotate-key", "--overlap-days", "30")
    old, new = keys.load()
    assert isinstance(old.secret, bytes)
    assert isinstance(new.secret, hsm.TokenKey)
    keep(acme.tenant, NOW + 2 * LATER)
    signers = open_note(newest_note(acme.tenant).encode(), vkeys(acme.tenant)).signers
    assert {each.public for each in signers} == {old.public(), new.public()}


def test_nothing_is_signed_without_the_token(
    acme: Cast, in_token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(acme.tenant, leaves(5))
    keep(acme.tenant, NOW)
    append(acme.tenant, leaves(5, b"more"))
    absent = in_token.replace("token=tooltrail", "token=another")
    monkeypatch.setattr(settings, "LEDGER_PKCS11", absent)
    with pytest.raises(hsm.TokenError, match="another test"):
        keep(acme.tenant, NOW + LATER)
    status = status_of(acme.tenant)
    assert (status.folded, status.signed_size) == (10, 5)
    monkeypatch.setattr(settings, "LEDGER_PKCS11", in_token)
    assert keep(acme.tenant, NOW + LATER).signed_size == 10


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda uri: uri.replace(MODULE, "/absent.so"), "PKCS#11 token"),
        (lambda uri: uri.replace("/pin", "/no-pin", 1), "the PIN: no file"),
        (lambda uri: uri + "&pin-value=1", "must be pkcs11:token=LABEL"),
        (lambda uri: uri.replace("pkcs11:", ""), "must be pkcs11:token=LABEL"),
    ],
    ids=["library", "pin", "unknown", "scheme"],
)
def test_wrong_address_is_refused_in_one_line(
    in_token: str, monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str], reason: str
) -> None:
    monkeypatch.setattr(settings, "LEDGER_PKCS11", change(in_token))
    with pytest.raises(CommandError, match=reason) as refused:
        call_command("ledger", "rotate-key")
    assert "\n" not in str(refused.value)


def test_wrong_pin_is_refused(
    in_token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wrong").write_text("1")
    (tmp_path / "wrong").chmod(0o600)
    uri = in_token.rpartition("file:")[0] + f"file:{tmp_path}/wrong"
    monkeypatch.setattr(settings, "LEDGER_PKCS11", uri)
    with pytest.raises(hsm.TokenError, match="PinIncorrect"):
        hsm.generate()
    (tmp_path / "wrong").chmod(0o644)
    with pytest.raises(hsm.TokenError, match="can be read by others"):
        hsm.generate()
