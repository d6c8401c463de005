"""Several machines with one key and a memory each: one chain of checkpoints, whoever signs."""

import logging
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import Error, connections
from tooltrail.ledger import Checkpoint, Signer, SigningKey, VerifierKey, open_checkpoint, root_of

from audit.ledger import keys, signer, signer_state
from audit.ledger.signatures import announced, disagreements
from audit.ledger.signer_state import origin_of
from audit.ledger.status import LedgerStatus
from audit.ledger.takeover import NoMemoryError
from audit.models import LedgerCheckpoint, LedgerKey
from config.postgresql.aliases import KEEPER
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.ledger_log import (
    append,
    as_owner,
    keep,
    leaves,
    own_folder,
    restore_backup,
    status_of,
)

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
LATER = timedelta(minutes=1)

type On = Callable[[str], Path]


def publish(tenant: Tenant, checkpoint: Checkpoint, key: Signer) -> None:
    """Insert a checkpoint of epoch 0 as a worker that signs would, without its checks."""
    as_owner(
        "INSERT INTO ledger_checkpoint (tenant_id, epoch, size, origin, root, note, signed_at)"
        " VALUES (%s, 0, %s, %s, %s, %s, now())",
        [
            *(tenant.id, checkpoint.size, checkpoint.origin, checkpoint.root),
            checkpoint.sign([key]).decode(),
        ],
    )


@pytest.fixture
def on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> On:
    """Continue as the worker of one machine. All machines have the key of the first one."""
    first = own_folder(tmp_path, monkeypatch)

    def go_to(name: str) -> Path:
        folder = tmp_path / name
        if not folder.exists():
            folder.mkdir(mode=0o700)
            shutil.copy2(first / "signing-keys.json", folder)
            monkeypatch.setattr(settings, "LEDGER_DIR", folder)
            call_command("ledger", "join", stdout=StringIO())
        monkeypatch.setattr(settings, "LEDGER_DIR", folder)
        return folder

    return go_to


def checkpoints(tenant: Tenant, epoch: int = 0) -> list[Checkpoint]:
    """The published checkpoints of an epoch, their signatures checked with this machine's key."""
    with tenant_scope(tenant.id):
        of_epoch = LedgerCheckpoint.objects.for_tenant(tenant.id).filter(epoch=epoch)
        rows = list(of_epoch.order_by("size"))
    origin = origin_of(tenant.id, epoch)
    known = [VerifierKey(origin, key.public()) for key in keys.load()]
    return [open_checkpoint(row.note.encode(), origin, known) for row in rows]


def test_machines_take_turns_on_one_chain(acme: Cast, on: On) -> None:
    hashes: list[bytes] = []
    for turn in range(9):
        on("abc"[turn % 3])
        new = leaves(100 + turn, bytes([turn]))
        append(acme.tenant, new)
        hashes += new
        status = keep(acme.tenant, NOW + turn * LATER)
        assert (status.signed_size, status.refusal) == (len(hashes), None)
    signed = checkpoints(acme.tenant)
    assert len(signed) == 9
    assert all(each.root == root_of(hashes[: each.size]) for each in signed)
    state = signer_state.load(acme.tenant.id)
    assert state is not None
    assert [size for size, _ in state.remembered][-2:] == [each.size for each in signed[-2:]]


def test_machine_that_only_watches_remembers_what_others_signed(acme: Cast, on: On) -> None:
    on("a")
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    on("b")
    keep(acme.tenant, NOW + timedelta(seconds=5))
    state = signer_state.load(acme.tenant.id)
    assert state is not None
    assert (state.size, state.signed_at) == (300, NOW)
    # The time between two checkpoints is that of all machines.
    append(acme.tenant, leaves(5, b"more"))
    assert keep(acme.tenant, NOW + timedelta(seconds=10)).signed_size == 300
    assert keep(acme.tenant, NOW + timedelta(seconds=20)).signed_size == 305


def test_machine_that_knows_more_than_a_restored_log_refuses(acme: Cast, on: On) -> None:
    """Also if it did not sign it itself, and for machines that know less."""
    on("a")
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    on("b")
    append(acme.tenant, leaves(200, b"lost"))
    keep(acme.tenant, NOW + LATER)
    on("a")
    keep(acme.tenant, NOW + LATER)
    restore_backup(acme.tenant, 300)
    append(acme.tenant, leaves(300, b"others"))
    on("a")
    status = keep(acme.tenant, NOW + 2 * LATER)
    assert status.refusal is not None
    assert "does not begin with the 500 signed entries" in status.refusal
    # A machine that remembers less finds nothing wrong, and neither signs nor takes it back.
    folder = on("behind")
    assert not (folder / f"{acme.tenant.id}.json").exists()
    status = keep(acme.tenant, NOW + 3 * LATER)
    assert status.refusal is not None
    assert [each.size for each in checkpoints(acme.tenant)] == [300]
    # A new epoch ends it for all, and each machine goes on in it.
    on("b")
    call_command("ledger", "new-epoch", acme.tenant.slug, "--reason", "x", stdout=StringIO())
    far = NOW + timedelta(days=4_000)
    for number, name in enumerate(("behind", "a", "b")):
        on(name)
        append(acme.tenant, leaves(10, name.encode()))
        status = keep(acme.tenant, far + number * LATER)
        assert (status.epoch, status.signed_size, status.refusal) == (1, 611 + 10 * number, None)
    on("a")
    state = signer_state.load(acme.tenant.id)
    assert state is not None
    assert (300, checkpoints(acme.tenant)[0].root) in state.earlier
    assert 500 not in dict(state.earlier)


def test_refusal_ends_when_a_machine_that_knows_as_much_finds_nothing(
    acme: Cast, on: On, caplog: pytest.LogCaptureFixture
) -> None:
    on("a")
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    on("b")
    keep(acme.tenant, NOW)
    as_owner("UPDATE ledger_head SET size = 200 WHERE tenant_id = %s", [acme.tenant.id])
    on("a")
    assert keep(acme.tenant, NOW + LATER).refusal is not None
    as_owner("UPDATE ledger_head SET size = 300 WHERE tenant_id = %s", [acme.tenant.id])
    append(acme.tenant, leaves(1, b"more"))
    on("b")
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        status = keep(acme.tenant, NOW + 2 * LATER)
    assert (status.refusal, status.signed_size) == (None, 301)
    assert [each.getMessage() for each in caplog.records] == [
        f"ledger of tenant {acme.tenant.id}: signing resumed"
    ]


def test_checkpoint_that_nobody_published_is_overtaken(
    acme: Cast, on: On, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine that signed it dies before it is published, and continues later."""
    on("a")
    append(acme.tenant, leaves(300))
    with monkeypatch.context() as patched:
        patched.setattr(
            signer,
            "_publish",
            lambda state, _: state.note and connections[KEEPER].connection.close(),
        )
        with pytest.raises(Error):
            keep(acme.tenant, NOW)
    state = signer_state.load(acme.tenant.id)
    assert state is not None
    assert state.size == 300
    on("b")
    append(acme.tenant, leaves(100, b"more"))
    assert keep(acme.tenant, NOW + LATER).signed_size == 400
    on("a")
    append(acme.tenant, leaves(100, b"even more"))
    assert keep(acme.tenant, NOW + 2 * LATER).signed_size == 500
    assert [each.size for each in checkpoints(acme.tenant)] == [400, 500]


def test_published_checkpoint_of_another_key_is_not_continued(acme: Cast, on: On) -> None:
    on("a")
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    append(acme.tenant, leaves(100, b"more"))
    forged = Checkpoint(origin_of(acme.tenant.id, 0), 400, bytes(32))
    publish(acme.tenant, forged, SigningKey(forged.origin, bytes(32)))
    status = keep(acme.tenant, NOW + LATER)
    assert status.refusal is not None
    assert "is not signed with a key of this machine" in status.refusal


def test_checkpoint_of_another_log_is_not_continued(acme: Cast, on: On) -> None:
    """Signed with the right key: as if the host that signed had another database."""
    on("a")
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    on("b")
    keep(acme.tenant, NOW)
    append(acme.tenant, leaves(100, b"more"))
    origin = origin_of(acme.tenant.id, 0)
    other = Checkpoint(origin, 400, root_of(leaves(400, b"another")))
    publish(acme.tenant, other, keys.load()[0].signer(origin))
    status = keep(acme.tenant, NOW + LATER)
    assert status.refusal is not None
    assert "does not begin with the 400 signed entries" in status.refusal


def test_machine_without_a_memory_signs_only_after_it_joined(acme: Cast, on: On) -> None:
    on("a")
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    folder = on("b")
    (folder / "joined.json").unlink()
    append(acme.tenant, leaves(1, b"more"))
    with pytest.raises(NoMemoryError, match="ledger join"):
        keep(acme.tenant, NOW + LATER)
    assert status_of(acme.tenant).refusal is None  # the other machine signs
    call_command("ledger", "join", stdout=StringIO())
    assert keep(acme.tenant, NOW + LATER).signed_size == 301
    (folder / "signing-keys.json").unlink()
    with pytest.raises(CommandError, match=r"copy signing-keys\.json"):
        call_command("ledger", "join")


def test_machine_with_the_key_of_before_a_rotation_does_not_sign(acme: Cast, on: On) -> None:
    on("b")
    first = on("a")
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    call_command("ledger", "rotate-key", stdout=StringIO())
    append(acme.tenant, leaves(1, b"more"))
    behind = on("b")
    far = NOW + timedelta(days=10)

    def signed() -> LedgerStatus:
        return keep(acme.tenant, far)

    with pytest.raises(keys.NoKeyError, match="was replaced: copy the file"):
        signed()
    shutil.copy2(first / "signing-keys.json", behind)
    assert signed().signed_size == 302  # with the entry about the key


def test_rotation_changes_nothing_if_the_file_cannot_be_written(acme: Cast, on: On) -> None:
    folder = on("a")
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    known = list(LedgerKey.objects.using(KEEPER).order_by("public_key").values())
    (folder / "signing-keys.json.new").mkdir()  # where the new file would be written
    with pytest.raises(CommandError, match=r"signing-keys\.json\.new"):
        call_command("ledger", "rotate-key", stdout=StringIO())
    assert list(LedgerKey.objects.using(KEEPER).order_by("public_key").values()) == known
    append(acme.tenant, leaves(1, b"more"))
    assert keep(acme.tenant, NOW + LATER).signed_size == 301


def test_check_on_a_machine_that_signed_less_finds_nothing(acme: Cast, on: On) -> None:
    on("a")
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    on("b")
    keep(acme.tenant, NOW)
    on("a")
    append(acme.tenant, leaves(100, b"more"))
    keep(acme.tenant, NOW + LATER)
    call_command("ledger", "new-epoch", acme.tenant.slug, "--reason", "x", stdout=StringIO())
    append(acme.tenant, leaves(100, b"even more"))
    keep(acme.tenant, NOW + timedelta(days=4_000))
    on("b")
    with tenant_scope(acme.tenant.id):
        known = announced(acme.tenant.id)
        assert known.epoch == 1
        lines = list(disagreements(acme.tenant.id, known))
    assert [each for each in lines if "public key" not in each] == []


def test_keys_may_be_in_a_file_of_their_own(
    acme: Cast, on: On, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = on("a")
    mounted = tmp_path / "mounted.json"
    (folder / "signing-keys.json").rename(mounted)
    monkeypatch.setattr(settings, "LEDGER_KEYS", mounted)
    append(acme.tenant, leaves(3))
    assert keep(acme.tenant, NOW).signed_size == 3
    assert len(checkpoints(acme.tenant)) == 1
    assert sorted(path.name for path in folder.iterdir()) == [
        *(f"{acme.tenant.id}.json", "joined.json", "lock")
    ]
