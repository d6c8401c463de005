"""What is signed, what is refused, and how signing resumes after a worker was killed."""

import json
import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connections
from tooltrail.ledger import (
    Checkpoint,
    Kind,
    SignatureError,
    VerifierKey,
    open_checkpoint,
    open_note,
    root_of,
)
from tooltrail.ledger.lines import to_base64

from audit.ledger import checks, keys, signer, signer_state
from audit.ledger.signer_state import REMEMBERED, origin_of, thinned
from audit.ledger.takeover import NoMemoryError
from audit.log.payload import unpack
from audit.models import Batch, LedgerCheckpoint, LedgerKey
from config import private_files
from tenants.models import Action, Tenant
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
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


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a new key for this test's worker. Public keys of other tests remain."""
    yield own_folder(tmp_path, monkeypatch)


def notes(tenant: Tenant) -> list[str]:
    """The published checkpoints of a tenant's log, in order."""
    with tenant_scope(tenant.id):
        checkpoints = LedgerCheckpoint.objects.for_tenant(tenant.id).order_by("epoch", "size")
        return list(checkpoints.values_list("note", flat=True))


def opened(tenant: Tenant, note: str, epoch: int = 0) -> Checkpoint:
    """The checkpoint in a note, after checking its signature with the public keys."""
    origin = origin_of(tenant.id, epoch)
    vkeys = [VerifierKey(origin, bytes(each.public_key)) for each in LedgerKey.objects.all()]
    return open_checkpoint(note.encode(), origin, vkeys)


def own_entries(tenant: Tenant) -> list[dict[str, Any]]:
    """The entries that the server itself added to the log."""
    with tenant_scope(tenant.id):
        batches = Batch.objects.for_tenant(tenant.id).order_by("first_index")
        payloads = [bytes(each.payload) for each in batches if each.payload and each.is_own]
    return [json.loads(raw) for payload in payloads for _, raw in unpack(payload)]


def test_received_events_are_signed(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    status = keep(acme.tenant, NOW)
    assert (status.size, status.folded, status.signed_size, status.refusal) == (2, 2, 2, None)
    (note,) = notes(acme.tenant)
    checkpoint = opened(acme.tenant, note)
    assert checkpoint.origin == f"localhost/log/{acme.tenant.id}"
    assert (checkpoint.size, checkpoint.root) == (2, status.signed_root)


@pytest.mark.slow
def test_continuously_growing_log_is_signed_every_15_seconds(acme: Cast) -> None:
    """At most 15 s and one interval of the worker pass from an entry to its checkpoint."""
    for second in range(60):
        append(acme.tenant, leaves(3, bytes([second])))
        keep(acme.tenant, NOW + timedelta(seconds=second))
    sizes = [opened(acme.tenant, note).size for note in notes(acme.tenant)]
    assert sizes == [3, 48, 93, 138]
    assert keep(acme.tenant, NOW + timedelta(seconds=60)).signed_size == 180


def test_unchanged_log_is_signed_once(acme: Cast) -> None:
    append(acme.tenant, leaves(5))
    for minute in range(5):
        keep(acme.tenant, NOW + minute * LATER)
    assert len(notes(acme.tenant)) == 1


def test_empty_log_has_no_checkpoint(acme: Cast, folder: Path) -> None:
    assert keep(acme.tenant, NOW).signed_size is None
    assert not (folder / f"{acme.tenant.id}.json").exists()


def test_signer_files_are_private(acme: Cast, folder: Path) -> None:
    append(acme.tenant, leaves(5))
    keep(acme.tenant, NOW)
    assert folder.stat().st_mode & 0o777 == 0o700
    files = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert files == dict.fromkeys(("lock", "signing-keys.json", f"{acme.tenant.id}.json"), 0o600)
    (folder / "signing-keys.json").chmod(0o640)
    append(acme.tenant, leaves(5))
    with pytest.raises(private_files.PrivateFileError, match="can be read by others"):
        keep(acme.tenant, NOW + LATER)
    assert len(notes(acme.tenant)) == 1


def test_machine_without_the_key_only_folds(acme: Cast, folder: Path) -> None:
    append(acme.tenant, leaves(5))
    keep(acme.tenant, NOW)
    (folder / "signing-keys.json").unlink()
    append(acme.tenant, leaves(5))
    with pytest.raises(keys.NoKeyError, match="another machine signs"):
        keep(acme.tenant, NOW + LATER)
    status = status_of(acme.tenant)
    assert (status.folded, status.signed_size, status.refusal) == (10, 5, None)


class Killed(BaseException):
    """Not caught by the product: as if the process was killed at that point."""


STEPS = [
    (private_files, "locked"),
    (signer_state, "load"),
    (keys, "of_this_machine"),
    (Checkpoint, "sign"),
    (signer_state, "save"),
    (private_files, "_sync"),
    (signer, "_publish"),
    (signer, "_note"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("where", "name"), STEPS)
@pytest.mark.parametrize("is_after", [False, True])
def test_signing_resumes_after_a_worker_is_killed_at_any_step(
    acme: Cast, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, is_after: bool
) -> None:
    """Every signed checkpoint is published, and there is one of each size."""
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    signer._note(acme.tenant.id, "a refusal that has no reason any more", NOW)
    append(acme.tenant, leaves(400, b"more"))
    real = getattr(where, name)

    def killed(*args: Any, **kwargs: Any) -> Any:
        if is_after:
            real(*args, **kwargs)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(where, name, killed)
        with pytest.raises(Killed):
            signer.keep(acme.tenant.id, NOW + LATER, seconds=5.0)
    before = signer_state.load(acme.tenant.id)
    assert before is not None
    append(acme.tenant, leaves(50, b"meanwhile"))
    keep(acme.tenant, NOW + 2 * LATER)
    checkpoints = [opened(acme.tenant, note) for note in notes(acme.tenant)]
    sizes = [checkpoint.size for checkpoint in checkpoints]
    assert sizes == ([300, 700, 750] if before.size == 700 else [300, 750])
    assert before.note in notes(acme.tenant)
    assert status_of(acme.tenant).refusal is None
    everything = leaves(300) + leaves(400, b"more") + leaves(50, b"meanwhile")
    assert all(each.root == root_of(everything[: each.size]) for each in checkpoints)


def test_two_workers_sign_one_history(acme: Cast) -> None:
    done = threading.Event()
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            moment = NOW + timedelta(hours=number)
            while not done.is_set():
                moment += LATER
                signer.keep(acme.tenant.id, moment, seconds=1.0)
        except BaseException as error:
            failures.append(error)
        finally:
            connections.close_all()

    workers = [threading.Thread(target=work, args=[number]) for number in range(2)]
    for worker in workers:
        worker.start()
    hashes: list[bytes] = []
    for part in range(60):
        new = leaves(37, bytes([part]))
        append(acme.tenant, new)
        hashes += new
    done.set()
    for worker in workers:
        worker.join()
    keep(acme.tenant, NOW + timedelta(days=2))
    assert failures == []
    checkpoints = [opened(acme.tenant, note) for note in notes(acme.tenant)]
    assert checkpoints[-1].size == len(hashes)
    assert all(each.root == root_of(hashes[: each.size]) for each in checkpoints)


def test_restored_older_database_is_refused(acme: Cast, caplog: pytest.LogCaptureFixture) -> None:
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    append(acme.tenant, leaves(200, b"lost"))
    keep(acme.tenant, NOW + LATER)
    restore_backup(acme.tenant, 300)
    with caplog.at_level(logging.WARNING):
        for minute in range(2, 5):
            status = keep(acme.tenant, NOW + minute * LATER)
    assert status.refusal == "the log has 300 entries, but 500 were signed"
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [f"ledger of tenant {acme.tenant.id}: signing refused: {status.refusal}"]
    # New entries in place of the lost ones do not change the refusal.
    append(acme.tenant, leaves(200, b"others"))
    append(acme.tenant, leaves(1, b"one more"))
    status = keep(acme.tenant, NOW + 9 * LATER)
    assert status.refusal is not None
    assert "does not begin with the 500 signed entries" in status.refusal
    assert len(notes(acme.tenant)) == 1


def test_log_is_signed_again_after_restoring_its_entries(acme: Cast) -> None:
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    as_owner("UPDATE ledger_head SET size = 200 WHERE tenant_id = %s", [acme.tenant.id])
    assert keep(acme.tenant, NOW + LATER).refusal is not None
    as_owner("UPDATE ledger_head SET size = 300 WHERE tenant_id = %s", [acme.tenant.id])
    append(acme.tenant, leaves(1, b"more"))
    status = keep(acme.tenant, NOW + 2 * LATER)
    assert (status.refusal, status.signed_size) == (None, 301)


def rewrite_tile(tenant: Tenant, level: int, tile_index: int) -> None:
    """Replace the first hash of a tile, which must exist."""
    changed = as_owner(
        "UPDATE ledger_tile SET hashes = overlay(hashes PLACING sha256('x') FROM 1)"
        " WHERE tenant_id = %s AND level = %s AND tile_index = %s",
        [tenant.id, level, tile_index],
    )
    assert changed == 1


@pytest.mark.parametrize(("level", "tile_index"), [(0, 2), (1, 0)])
def test_rewritten_tile_is_refused(acme: Cast, level: int, tile_index: int) -> None:
    append(acme.tenant, leaves(600))
    keep(acme.tenant, NOW)
    rewrite_tile(acme.tenant, level, tile_index)
    append(acme.tenant, leaves(100, b"more"))
    status = keep(acme.tenant, NOW + LATER)
    assert status.refusal is not None
    assert "does not begin with the 600 signed entries" in status.refusal
    assert (status.signed_size, len(notes(acme.tenant))) == (600, 1)


def test_rewritten_leaf_of_a_full_tile_is_found_by_a_check(acme: Cast) -> None:
    """The signer reads only the root of a full tile, which is in the tile above."""
    append(acme.tenant, leaves(600))
    keep(acme.tenant, NOW)
    rewrite_tile(acme.tenant, 0, 0)
    append(acme.tenant, leaves(200, b"more"))
    assert keep(acme.tenant, NOW + LATER).refusal is None
    with tenant_scope(acme.tenant.id):
        check = checks.start_check("auditor", NOW)
    assert check is not None
    while checks.run_slice(acme.tenant.id, check.id):
        pass
    with tenant_scope(acme.tenant.id):
        check.refresh_from_db()
    assert "tile/0/000 does not match the leaves in the log" in check.findings


def test_lost_signer_state_is_refused_until_a_new_epoch(acme: Cast, folder: Path) -> None:
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    last = notes(acme.tenant)[-1]
    (folder / f"{acme.tenant.id}.json").unlink()
    append(acme.tenant, leaves(5, b"more"))
    with pytest.raises(NoMemoryError, match="no record of the last signature"):
        keep(acme.tenant, NOW + LATER)
    call_command("ledger", "new-epoch", acme.tenant.slug, "--reason", "disk", stdout=StringIO())
    status = status_of(acme.tenant)
    assert (status.epoch, status.size, status.signed_size, status.refusal) == (1, 306, 306, None)
    (entry,) = own_entries(acme.tenant)
    assert entry["type"] == Kind.EPOCH.name.lower()
    assert entry["previous"]["note"] == last


def test_damaged_signer_state_prevents_signing(acme: Cast, folder: Path) -> None:
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    (folder / f"{acme.tenant.id}.json").write_text('{"epoch": 0')
    append(acme.tenant, leaves(1, b"more"))
    with pytest.raises(private_files.PrivateFileError, match="is not a signer's state"):
        keep(acme.tenant, NOW + LATER)
    assert len(notes(acme.tenant)) == 1


def test_changed_host_name_is_refused(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    append(acme.tenant, leaves(3))
    keep(acme.tenant, NOW)
    monkeypatch.setattr(settings, "LEDGER_HOST", "tools.example")
    status = keep(acme.tenant, NOW + LATER)
    assert status.refusal is not None
    assert "name it tools.example/log/" in status.refusal


def test_new_epoch_after_a_restore_names_the_last_checkpoint(acme: Cast) -> None:
    """The new epoch is a log of another name; its entry names the last signed checkpoint."""
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    append(acme.tenant, leaves(200, b"lost"))
    keep(acme.tenant, NOW + LATER)
    last = notes(acme.tenant)[-1]
    restore_backup(acme.tenant, 300)
    append(acme.tenant, leaves(400, b"others"))
    assert keep(acme.tenant, NOW + 2 * LATER).refusal is not None
    output = StringIO()
    call_command("ledger", "new-epoch", acme.tenant.slug, "--reason", "restored", stdout=output)
    assert "epoch 1" in output.getvalue()
    status = status_of(acme.tenant)
    assert (status.epoch, status.size, status.signed_size, status.refusal) == (1, 701, 701, None)
    checkpoint = opened(acme.tenant, notes(acme.tenant)[-1], epoch=1)
    assert checkpoint.origin == f"localhost/log/{acme.tenant.id}/1"
    (entry,) = own_entries(acme.tenant)
    assert (entry["epoch"], entry["reason"], entry["origin"]) == (1, "restored", checkpoint.origin)
    assert entry["previous"]["note"] == last
    assert entry["previous"]["size"] == 500
    with tenant_scope(acme.tenant.id):
        verbs = Action.objects.filter(tenant_id=acme.tenant.id).values_list("verb", flat=True)
        assert list(verbs) == ["ledger.epoch"]
    # The epoch continues, and a second restore starts a second one.
    append(acme.tenant, leaves(3, b"again"))
    later = NOW + timedelta(days=4_000)
    assert keep(acme.tenant, later).signed_size == 704
    call_command("ledger", "new-epoch", acme.tenant.slug, "--reason", "two", stdout=StringIO())
    assert status_of(acme.tenant).epoch == 2


def test_new_epoch_without_a_signed_checkpoint_is_rejected(acme: Cast) -> None:
    with pytest.raises(CommandError, match="was ever signed"):
        call_command("ledger", "new-epoch", acme.tenant.slug, "--reason", "x")
    with pytest.raises(CommandError, match="unknown tenant 'nobody'"):
        call_command("ledger", "new-epoch", "nobody", "--reason", "x")


def test_new_epoch_follows_the_checkpoint_an_auditor_has(
    acme: Cast, folder: Path, tmp_path: Path
) -> None:
    """If database and folder have lost all checkpoints: those of each earlier epoch, too."""
    arguments = ["ledger", "new-epoch", acme.tenant.slug, "--reason", "x"]
    kept = tmp_path / "checkpoint"
    append(acme.tenant, leaves(300))
    keep(acme.tenant, NOW)
    for epoch, size in ((1, 300), (2, 2)):
        kept.write_text(notes(acme.tenant)[-1])
        restore_backup(acme.tenant, 0)
        (folder / f"{acme.tenant.id}.json").unlink()
        append(acme.tenant, leaves(1))
        with pytest.raises(CommandError, match="was ever signed"):
            call_command(*arguments)
        call_command(*arguments, "--previous", str(kept), stdout=StringIO())
        (entry,) = own_entries(acme.tenant)
        assert (entry["epoch"], entry["previous"]["size"]) == (epoch, size)
        assert entry["previous"]["note"] == kept.read_text()
        status = status_of(acme.tenant)
        assert (status.epoch, status.signed_size, status.refusal) == (epoch, 2, None)


def test_new_epoch_rejects_the_checkpoint_of_another_log(
    acme: Cast, globex: Cast, tmp_path: Path
) -> None:
    kept = tmp_path / "checkpoint"
    for cast in (acme, globex):
        append(cast.tenant, leaves(3))
        keep(cast.tenant, NOW)
    kept.write_text(notes(globex.tenant)[-1])
    with pytest.raises(CommandError, match="is not a checkpoint of the log of acme"):
        call_command(
            *("ledger", "new-epoch", acme.tenant.slug, "--reason", "x", "--previous", str(kept))
        )


@pytest.mark.slow
def test_both_keys_sign_until_the_overlap_ends(acme: Cast, folder: Path) -> None:
    append(acme.tenant, leaves(3))
    keep(acme.tenant, NOW)
    (old,) = keys.load()
    call_command("ledger", "rotate-key", "--overlap-days", "30", stdout=StringIO())
    new = keys.load()[-1]
    origin = origin_of(acme.tenant.id, 0)
    old_key = VerifierKey(origin, old.public())
    new_key = VerifierKey(origin, new.public())
    (entry,) = own_entries(acme.tenant)
    assert entry["type"] == "key"
    assert entry["public_key"] == to_base64(new.public())
    real_now = datetime.now(UTC)
    keep(acme.tenant, real_now + LATER)
    during = notes(acme.tenant)[-1].encode()
    assert open_note(during, [old_key]).signers == (old_key,)
    assert open_note(during, [old_key, new_key]).signers == (new_key, old_key)
    append(acme.tenant, leaves(3, b"more"))
    keep(acme.tenant, real_now + timedelta(days=31))
    after = notes(acme.tenant)[-1].encode()
    assert open_note(after, [new_key]).signers == (new_key,)
    with pytest.raises(SignatureError, match="no known key signed"):
        open_note(after, [old_key])
    # The next rotation deletes keys that no longer sign.
    keys.rotate(real_now + timedelta(days=60), timedelta(days=1))
    assert [key.public() for key in keys.load()[:-1]] == [new.public()]
    published = LedgerKey.objects.get(public_key=old.public())
    assert published.signs_until is not None


@pytest.mark.slow
def test_lost_key_is_replaced(acme: Cast, folder: Path) -> None:
    append(acme.tenant, leaves(3))
    keep(acme.tenant, NOW)
    (folder / "signing-keys.json").unlink()
    output = StringIO()
    call_command("ledger", "rotate-key", stdout=output)
    assert "It is the only key that signs." in output.getvalue()
    assert keep(acme.tenant, datetime.now(UTC)).signed_size == 4
    opened(acme.tenant, notes(acme.tenant)[-1])


@pytest.mark.slow
def test_status_command_reports_a_refusal_and_fails(acme: Cast) -> None:
    append(acme.tenant, leaves(3))
    keep(acme.tenant, NOW)
    as_owner("UPDATE ledger_head SET size = 2 WHERE tenant_id = %s", [acme.tenant.id])
    keep(acme.tenant, NOW + LATER)
    output = StringIO()
    with pytest.raises(CommandError, match=acme.tenant.slug):
        call_command("ledger", "status", "--json", stdout=output)
    documents = json.loads(output.getvalue())[acme.tenant.slug]
    assert documents["refusal"] == "the log has 2 entries, but 3 were signed"
    assert (documents["entries"], documents["signed"]) == (2, 3)
    output = StringIO()
    with pytest.raises(CommandError):
        call_command("ledger", "status", stdout=output)
    assert "REFUSED" in output.getvalue()
    as_owner("UPDATE ledger_head SET size = 3 WHERE tenant_id = %s", [acme.tenant.id])
    assert keep(acme.tenant, NOW + 2 * LATER).refusal is None


def test_refusal_for_one_tenant_does_not_affect_others(acme: Cast, globex: Cast) -> None:
    for cast in (acme, globex):
        append(cast.tenant, leaves(3))
        keep(cast.tenant, NOW)
    as_owner("UPDATE ledger_head SET size = 2 WHERE tenant_id = %s", [acme.tenant.id])
    append(globex.tenant, leaves(3))
    assert keep(acme.tenant, NOW + LATER).refusal is not None
    assert keep(globex.tenant, NOW + LATER).signed_size == 6
    as_owner("UPDATE ledger_head SET size = 3 WHERE tenant_id = %s", [acme.tenant.id])
    assert keep(acme.tenant, NOW + 2 * LATER).refusal is None


def begin_epoch(cast: Cast, *options: str) -> dict[str, Any]:
    """Start a new epoch with the operator's command; its result."""
    out = StringIO()
    command = ("ledger", "new-epoch", cast.tenant.slug, "--reason", "x", "--json")
    call_command(*command, *options, stdout=out)
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


def test_new_epoch_says_up_to_where_the_log_is_what_was_signed(acme: Cast) -> None:
    """Of a restored log that has gone on, with all checkpoints of the time before."""
    for minute in range(5):
        append(acme.tenant, leaves(100, b"%d" % minute))
        keep(acme.tenant, NOW + minute * LATER)
    restore_backup(acme.tenant, 300)
    append(acme.tenant, leaves(400, b"others"))
    document = begin_epoch(acme)
    assert (document["proved"], document["gone"]) == (300, 200)
    (entry,) = own_entries(acme.tenant)
    assert (entry["proved"], entry["gone"], entry["differs"]) == (300, 200, False)
    # The memory goes on: the next epoch is compared with checkpoints of the one before.
    append(acme.tenant, leaves(10, b"later"))
    keep(acme.tenant, NOW + timedelta(days=4_000))
    assert begin_epoch(acme)["proved"] == 711


def test_new_epoch_refuses_a_log_whose_signed_entries_were_changed(acme: Cast) -> None:
    for minute in range(3):
        append(acme.tenant, leaves(100, b"%d" % minute))
        keep(acme.tenant, NOW + minute * LATER)
    as_owner(
        "UPDATE batch SET leaves = substr(leaves, 33) || substr(leaves, 1, 32)"
        " WHERE tenant_id = %s AND first_index = 100",
        [acme.tenant.id],
    )
    refused = "first 100 entries are the signed ones, its first 200 are not"
    with pytest.raises(CommandError, match=refused):
        begin_epoch(acme)
    assert own_entries(acme.tenant) == []
    document = begin_epoch(acme, "--differs")
    assert (document["proved"], document["gone"]) == (100, 200)
    (entry,) = own_entries(acme.tenant)
    assert entry["differs"] is True


def test_signer_keeps_few_of_the_oldest_checkpoints() -> None:
    points: tuple[tuple[int, bytes], ...] = ()
    for size in range(10_000):
        points = thinned((*points, (size, b"")))
    sizes = [size for size, _ in points]
    assert len(sizes) <= REMEMBERED
    assert sizes == sorted(sizes)
    assert sizes[0] == 0
    assert sizes[-60:] == list(range(9_940, 10_000))
