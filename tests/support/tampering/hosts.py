"""Who has the machine: files of the signer, restores, and histories signed with the real key."""

import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from django.core.management import CommandError, call_command
from django.utils import timezone
from tooltrail.ledger import Checkpoint

from audit.ledger import keys, signer_state
from audit.ledger.keys import OVERLAP
from tests.support.factories import make_call
from tests.support.ledger_log import write_key
from tests.support.tampering.finders import Finder
from tests.support.tampering.kinds import Tampering, kind
from tests.support.tampering.log import edited, payload, repair_index
from tests.support.tampering.record import Power, Record, send
from tests.support.tampering.tree import cut_log, replace_checkpoints

SIGNER, CHECK, INDEX = Finder.SIGNER, Finder.CHECK, Finder.INDEX
BUNDLE, KEPT, RECEIPT, WATCH = Finder.BUNDLE, Finder.KEPT, Finder.RECEIPT, Finder.WATCH
HOST, KEY = Power.HOST, Power.KEY
_KEEP = "only what was kept elsewhere can show it"


def kinds() -> Iterator[Tampering]:
    """Kinds that need files of the host."""
    yield from (value for value in globals().values() if isinstance(value, Tampering))


@kind("the signer's memory was deleted", HOST, SIGNER, CHECK)
def forget(record: Record, _: random.Random) -> None:
    _memory(record).unlink()


@kind("the signer's memory was overwritten", HOST, SIGNER, CHECK)
def garble(record: Record, rng: random.Random) -> None:
    _memory(record).write_bytes(rng.randbytes(100))


@kind("the signer's memory was rolled back", HOST, why="the log still begins with what it names")
def roll_memory_back(record: Record, _: random.Random) -> None:
    _remember_earlier(record, sorted(record.kept)[-2])


@kind("the private key was deleted", HOST, SIGNER, CHECK)
def lose_key(record: Record, _: random.Random) -> None:
    (record.folder / "signing-keys.json").unlink()


@kind("the signer's folder was deleted", HOST, SIGNER, CHECK)
def lose_folder(record: Record, _: random.Random) -> None:
    shutil.rmtree(record.folder)
    record.folder.mkdir(mode=0o700)


@kind("the private key was replaced", HOST, CHECK, BUNDLE, WATCH)
def replace_key(record: Record, rng: random.Random) -> None:
    record.touch("ledger_key")
    write_key(record.folder, rng.randbytes(32))


@kind("an older backup of the database was restored", HOST, SIGNER, CHECK, KEPT, RECEIPT, WATCH)
def restore_database(record: Record, _: random.Random) -> None:
    _restore(record)


@kind(
    "backups of database and signer's folder were restored", HOST, KEPT, RECEIPT, WATCH, why=_KEEP
)
def restore_both(record: Record, _: random.Random) -> None:
    _remember_earlier(record, _restore(record))


@kind("history was rewritten, then `ledger new-epoch`", HOST, SIGNER, CHECK, BUNDLE)
def launder(record: Record, rng: random.Random) -> None:
    _rewrite(record, rng)
    try:
        call_command("ledger", "new-epoch", record.cast.tenant.slug, "--reason", "a new disk")
    except CommandError:
        return
    raise AssertionError("new-epoch accepted a rewritten history")


@kind("history was rewritten, then `ledger new-epoch --differs`", HOST, KEPT, WATCH)
def launder_openly(record: Record, rng: random.Random) -> None:
    _rewrite(record, rng)
    command = ("new-epoch", record.cast.tenant.slug, "--reason", "a new disk", "--differs")
    call_command("ledger", *command)


@kind("history was rewritten and signed", KEY, KEPT, WATCH, why=_KEEP)
def rewrite(record: Record, rng: random.Random) -> None:
    root = _rewrite(record, rng)
    replace_checkpoints(record, root, [record.signing])
    _remember_root(record, root)


@kind("an older state was restored, another history signed", KEY, KEPT, RECEIPT, WATCH, why=_KEEP)
def fork(record: Record, _: random.Random) -> None:
    _remember_earlier(record, _restore(record))
    for _number in range(20):
        send(record, timezone.now(), make_call())
    repair_index(record)


@kind("an invented call was stored and signed", KEY, why="it is an entry dated now")
def add(record: Record, _: random.Random) -> None:
    send(record, timezone.now(), make_call())


@kind("a new key took over without an entry", KEY, CHECK, BUNDLE, WATCH)
def rotate_silently(record: Record, _: random.Random) -> None:
    record.touch("ledger_key")
    new, _old = keys.rotate(timezone.now(), OVERLAP)
    assert isinstance(new.secret, bytes)
    write_key(record.folder, new.secret)


def _memory(record: Record) -> Path:
    """The file with the last signed state."""
    return record.folder / f"{record.tenant_id}.json"


def _rewrite(record: Record, rng: random.Random) -> bytes:
    """Change an event with its leaf and tile; the new root."""
    batch, at = payload(record, rng)
    batch.forge(at, edited(rng, batch.given[at][1]))
    record.write(batch)
    return record.fold_again()


def _restore(record: Record) -> int:
    """The database as it was at a kept checkpoint of this epoch; its size."""
    size = sorted(record.kept)[-2]
    cut_log(record, size)
    record.change(
        "DELETE FROM action WHERE tenant_id = %(tenant)s"
        " AND (ledger_index >= %(size)s OR ledger_index IS NULL)",
        Power.OWNER,
        size=size,
    )
    repair_index(record)
    return size


def _remember_earlier(record: Record, size: int) -> None:
    """Give the signer the memory that it had at an earlier checkpoint."""
    state = signer_state.load(record.tenant_id)
    assert state is not None
    earlier = dict(state.earlier)
    note = Checkpoint(state.origin, size, earlier[size]).sign([record.signing]).decode()
    signer_state.save(
        record.tenant_id,
        replace(
            state,
            size=size,
            root=earlier[size],
            note=note,
            earlier=tuple(each for each in state.earlier if each[0] < size),
        ),
    )


def _remember_root(record: Record, root: bytes) -> None:
    """Give the signer a memory of a history that it never signed."""
    state = signer_state.load(record.tenant_id)
    assert state is not None
    note = Checkpoint(state.origin, state.size, root).sign([record.signing]).decode()
    signer_state.save(record.tenant_id, replace(state, root=root, note=note, earlier=()))
