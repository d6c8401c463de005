"""Keys, epochs and checkpoints in the database against the log and the signer's memory."""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.utils import timezone
from tooltrail.ledger import Checkpoint, SigningKey
from tooltrail.ledger.lines import to_base64

from audit.ledger import keys
from audit.ledger.baseline import enter_baseline
from audit.ledger.signatures import announced, disagreements
from audit.ledger.signer_state import origin_of
from audit.ledger.tree import StoredTree
from audit.tasks.ledgers import keep_ledger
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import as_owner, keep, own_folder, status_of

NOW = timezone.now()
LATER = NOW + timedelta(hours=1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The signer's folder of this test's worker."""
    yield own_folder(tmp_path, monkeypatch)


def begin(cast: Cast) -> None:
    """A signed ledger with a baseline, as the worker makes it; the signature is an hour old."""
    (key,) = keys.of_this_machine(NOW)
    keys.publish(key)  # a worker's first key is public before anything is entered
    assert enter_baseline(cast.tenant.id, NOW)
    send_events(cast.tenant, make_call())
    keep(cast.tenant, NOW - timedelta(hours=1))


def faults(cast: Cast) -> list[str]:
    with tenant_scope(cast.tenant.id):
        return list(disagreements(cast.tenant.id, announced(cast.tenant.id)))


def forge_key() -> SigningKey:
    """An attacker's key, whose public half goes into the database."""
    key = SigningKey("x", os.urandom(32))
    as_owner("INSERT INTO ledger_key VALUES (%s, '2026-01-01', NULL)", [key.verifier.public])
    return key


@pytest.mark.slow
def test_honest_ledger_has_no_faults_also_after_a_rotation(acme: Cast) -> None:
    begin(acme)
    assert faults(acme) == []
    call_command("ledger", "rotate-key")
    assert faults(acme) == []
    (settings.LEDGER_DIR / "signing-keys.json").unlink()  # as on a machine that does not sign
    assert faults(acme) == []


def test_key_that_no_entry_announces_is_found(acme: Cast) -> None:
    begin(acme)
    public = to_base64(forge_key().verifier.public)
    assert faults(acme) == [
        f"the public key {public} is in the database, and no entry announces it"
    ]
    as_owner("DELETE FROM ledger_key WHERE public_key = decode(%s, 'base64')", [public])


def test_history_signed_with_a_forged_key_is_found(acme: Cast) -> None:
    """All checkpoints are replaced by one of the attacker, with a key in the table."""
    begin(acme)
    forged = forge_key()
    with tenant_scope(acme.tenant.id):
        origin = origin_of(acme.tenant.id, 0)
        size = status_of(acme.tenant).folded
        root = StoredTree(acme.tenant.id, size).root()
    note = Checkpoint(origin, size, os.urandom(32)).sign([SigningKey(origin, forged.private)])
    as_owner("DELETE FROM ledger_checkpoint WHERE tenant_id = %s", [acme.tenant.id])
    as_owner(
        "INSERT INTO ledger_checkpoint (tenant_id, epoch, size, origin, root, note, signed_at)"
        " VALUES (%s, 0, %s, %s, %s, %s, now())",
        [acme.tenant.id, size - 1, origin, root, note.decode()],
    )
    lines = faults(acme)
    assert sum("no entry announces it" in one for one in lines) == 1
    assert any("the signer's last one is another" in one for one in lines)
    as_owner("DELETE FROM ledger_key WHERE public_key = %s", [forged.verifier.public])


def test_checkpoint_of_an_epoch_that_never_began_is_found(acme: Cast) -> None:
    begin(acme)
    as_owner("UPDATE ledger_checkpoint SET epoch = 3 WHERE tenant_id = %s", [acme.tenant.id])
    assert "is of epoch 3, which never began" in faults(acme)[0]


def test_missing_newest_checkpoint_is_found(acme: Cast) -> None:
    begin(acme)
    as_owner("DELETE FROM ledger_checkpoint WHERE tenant_id = %s", [acme.tenant.id])
    size = status_of(acme.tenant).size
    newest = "the newest checkpoint in the database has 0 entries; the signer's last one is another"
    assert faults(acme) == [f"{newest}, of {size}"]


def test_check_never_passes_beside_a_signer_that_refuses(acme: Cast) -> None:
    begin(acme)
    as_owner("UPDATE ledger_head SET size = 1 WHERE tenant_id = %s", [acme.tenant.id])
    keep(acme.tenant, LATER)
    assert any(one.startswith("the signer refuses to sign: ") for one in faults(acme))


@pytest.mark.slow
@pytest.mark.one_node
def test_lost_key_file_is_a_refusal_once_entries_wait_too_long(acme: Cast) -> None:
    begin(acme)
    (settings.LEDGER_DIR / "signing-keys.json").unlink()
    send_events(acme.tenant, make_call())
    keep_ledger(str(acme.tenant.id))
    assert status_of(acme.tenant).refusal is None, "another machine may sign within the minute"
    old = [timedelta(minutes=10), acme.tenant.id]
    as_owner("UPDATE batch SET received_at = received_at - %s WHERE tenant_id = %s", old)
    keep_ledger(str(acme.tenant.id))
    refusal = status_of(acme.tenant).refusal
    assert refusal is not None
    assert refusal.startswith("no machine has signed since ")
    with pytest.raises(CommandError, match="ledgers not signed") as error:
        call_command("ledger", "status")
    assert error.value.returncode == 1
