"""What is derived from the log, by SQL: tiles, checkpoints, keys, the head, the signer's row."""

import os
import random
from collections.abc import Iterator, Sequence

from tooltrail.ledger import Checkpoint, Signer, SigningKey

from tests.support.tampering.finders import Finder
from tests.support.tampering.kinds import Tampering, kind, sql
from tests.support.tampering.log import edited, payload
from tests.support.tampering.record import Power, Record

SIGNER, CHECK, INDEX = Finder.SIGNER, Finder.CHECK, Finder.INDEX
BUNDLE, KEPT, RECEIPT, WATCH = Finder.BUNDLE, Finder.KEPT, Finder.RECEIPT, Finder.WATCH
OWNER = Power.OWNER
_OURS = "WHERE tenant_id = %(tenant)s"
_OF_EPOCH = f"FROM ledger_checkpoint {_OURS} AND epoch = 1"
"""The current epoch is the second one."""
_NEWEST = f"{_OURS} AND epoch = 1 AND size = (SELECT max(size) {_OF_EPOCH})"
_OLDEST = f"{_OURS} AND epoch = 1 AND size = (SELECT min(size) {_OF_EPOCH})"
_EARLIER = f"{_OURS} AND epoch = 0"
_AGAIN = "the worker derives them again from the leaves"
_PUBLISHED = "the signer publishes its last checkpoint again"


def kinds() -> Iterator[Tampering]:
    """Kinds that change what is derived from the log."""
    yield from (value for value in globals().values() if isinstance(value, Tampering))
    yield sql("the tiles were deleted", OWNER, f"DELETE FROM ledger_tile {_OURS}", why=_AGAIN)
    yield sql(
        "tiles were cut short",
        OWNER,
        f"UPDATE ledger_tile SET hashes = substring(hashes FROM 1 FOR 64) {_OURS}",
        why=_AGAIN,
    )
    yield sql(
        "all checkpoints were deleted",
        OWNER,
        f"DELETE FROM ledger_checkpoint {_OURS}",
        why=_PUBLISHED,
    )
    for of, which, why in (
        ("the newest", _NEWEST, _PUBLISHED),
        ("an older", _OLDEST, "no other depends on it"),
        ("of an earlier epoch", _EARLIER, "no other depends on it"),
    ):
        # A bundle has the checkpoints of the current epoch.
        in_bundle = () if which is _EARLIER else (BUNDLE,)
        delete = f"DELETE FROM ledger_checkpoint {which}"
        yield sql("a checkpoint was deleted", OWNER, delete, of=of, why=why)
        edit = f"UPDATE ledger_checkpoint SET root = sha256('x') {which}"
        yield sql("a checkpoint has another root", OWNER, edit, CHECK, of=of)
        edit = (
            f"UPDATE ledger_checkpoint SET note = replace(note, E'\\n\\n', E'\\nx\\n\\n') {which}"
        )
        yield sql("a checkpoint has another note", OWNER, edit, CHECK, *in_bundle, of=of)
        edit = (
            "UPDATE ledger_checkpoint"
            f" SET receipts[1] = set_byte(receipts[1], 60, 255 - get_byte(receipts[1], 60)) {which}"
        )
        yield sql("a checkpoint has another receipt for COSE", OWNER, edit, CHECK, of=of)
    yield sql(
        "a checkpoint has another time",
        OWNER,
        f"UPDATE ledger_checkpoint SET signed_at = signed_at - interval '1 day' {_OLDEST}",
        why="the signed note has no time",
    )
    yield sql(
        "a checkpoint was moved to an epoch that never began",
        OWNER,
        f"UPDATE ledger_checkpoint SET epoch = 7 {_OLDEST}",
        *(SIGNER, CHECK, BUNDLE, WATCH),
    )
    lower, raise_ = (f"UPDATE ledger_head SET size = size {by} {_OURS}" for by in ("- 5", "+ 5"))
    yield sql("the log's size was lowered", OWNER, lower, SIGNER, CHECK, INDEX, BUNDLE)
    yield sql("the log's size was raised", OWNER, raise_, SIGNER, CHECK, INDEX)
    yield sql(
        "a second baseline was caused",
        OWNER,
        f"UPDATE ledger_head SET has_baseline = false {_OURS}",
        *(CHECK, INDEX),
    )
    yield sql(
        "a refusal of the signer was invented",
        OWNER,
        "INSERT INTO ledger_signer VALUES (%(tenant)s, 'forged', now())",
        why="the worker signs and removes it",
    )
    yield sql(
        "a refusal of a signer that remembers more was invented",
        OWNER,
        "INSERT INTO ledger_signer VALUES (%(tenant)s, 'forged', now(), 9, 9)",
        *(SIGNER, CHECK),
    )
    yield sql(
        "a public key was added",
        OWNER,
        "INSERT INTO ledger_key VALUES (sha256(%(tenant)s::text::bytea), now(), NULL)",
        CHECK,
    )
    yield sql(
        "lines were removed from the list of erasures",
        OWNER,
        f"DELETE FROM ledger_erasure {_OURS}",
        CHECK,
    )
    yield sql(
        "the list of erasures has another range",
        OWNER,
        f"UPDATE ledger_erasure SET end_index = end_index + 1 {_OURS}",
        CHECK,
    )
    yield sql(
        "a line was added to the list of erasures",
        OWNER,
        "INSERT INTO ledger_erasure VALUES (%(tenant)s, 1, 0, 1, NULL)",
        CHECK,
    )
    yield sql(
        "a check's result was forged",
        Power.APPLICATION,
        f"UPDATE ledger_check SET state = 'passed', finding_count = 0, finished_at = now() {_OURS}",
        why="a check's result proves nothing: run the check again",
    )


@kind("a hash of a tile was changed", OWNER, SIGNER, CHECK, BUNDLE)
def edit_tile(record: Record, rng: random.Random) -> None:
    ((hashes,),) = record.run(f"SELECT hashes FROM ledger_tile {_OURS} AND level = 0")
    at = rng.randrange(len(hashes) // 32) * 32
    record.change(
        f"UPDATE ledger_tile SET hashes = %(hashes)s {_OURS} AND level = 0",
        OWNER,
        hashes=hashes[:at] + rng.randbytes(32) + hashes[at + 32 :],
    )


@kind(
    "the newest requests were deleted, with the head",
    OWNER,
    SIGNER,
    CHECK,
    INDEX,
    KEPT,
    RECEIPT,
    WATCH,
)
def truncate(record: Record, _: random.Random) -> None:
    cut_log(record, sorted(record.kept)[-2])


@kind("a public key ends at another time", OWNER, SIGNER, CHECK)
def end_public_key(record: Record, _: random.Random) -> None:
    record.change(
        "UPDATE ledger_key SET signs_until = '2020-01-01' WHERE public_key = %(key)s",
        OWNER,
        key=record.signing.verifier.public,
    )


@kind("a public key was deleted", OWNER, why=_PUBLISHED)
def delete_public_key(record: Record, _: random.Random) -> None:
    record.change(
        "DELETE FROM ledger_key WHERE public_key = %(key)s",
        OWNER,
        key=record.signing.verifier.public,
    )


@kind("history was rewritten and signed with another key", OWNER, SIGNER, CHECK, BUNDLE, WATCH)
def sign_with_another_key(record: Record, rng: random.Random) -> None:
    batch, at = payload(record, rng)
    batch.forge(at, edited(rng, batch.given[at][1]))
    record.write(batch)
    root = record.fold_again()
    forged = SigningKey(record.signing.name, os.urandom(32))
    record.change(
        "INSERT INTO ledger_key VALUES (%(key)s, now(), NULL)", OWNER, key=forged.verifier.public
    )
    replace_checkpoints(record, root, [forged])


def replace_checkpoints(record: Record, root: bytes, keys: Sequence[Signer]) -> None:
    """Delete all checkpoints, those of earlier epochs, too; sign the log as it is now."""
    ((epoch, origin),) = record.run(
        f"SELECT epoch, origin FROM ledger_checkpoint {_OURS} ORDER BY epoch DESC LIMIT 1"
    )
    ((size,),) = record.run(f"SELECT size FROM ledger_head {_OURS}")
    record.change(f"DELETE FROM ledger_checkpoint {_OURS}", OWNER)
    record.change(
        "INSERT INTO ledger_checkpoint (tenant_id, epoch, size, origin, root, note, signed_at)"
        " VALUES (%(tenant)s, %(epoch)s, %(size)s, %(origin)s, %(root)s, %(note)s, now())",
        OWNER,
        epoch=epoch,
        size=size,
        origin=origin,
        root=root,
        note=Checkpoint(origin, size, root).sign(keys).decode(),
    )


def cut_log(record: Record, size: int) -> None:
    """Make the log what it was when it had so many entries, at the end of a batch."""
    record.change(f"DELETE FROM batch {_OURS} AND first_index >= %(size)s", OWNER, size=size)
    record.change(f"UPDATE ledger_head SET size = %(size)s {_OURS}", OWNER, size=size)
    record.run(f"DELETE FROM ledger_checkpoint {_OURS} AND size > %(size)s", OWNER, size=size)
    record.fold_again()
