"""The log by SQL: bytes, leaves, places and times of events, with and without cover."""

import json
import random
from collections.abc import Iterator
from datetime import timedelta

from audit.index.reindex import reindex
from audit.index.shadow import KEYS
from tests.support.factories import make_call
from tests.support.tampering.finders import Finder
from tests.support.tampering.kinds import Tampering, kind, sql
from tests.support.tampering.record import Batch, Power, Record

SIGNER, CHECK, INDEX = Finder.SIGNER, Finder.CHECK, Finder.INDEX
BUNDLE, KEPT, WATCH = Finder.BUNDLE, Finder.KEPT, Finder.WATCH
OWNER = Power.OWNER
_UNREAD = "the column only answers a repeated request; it is not a fact of the record"


def kinds() -> Iterator[Tampering]:
    """Kinds that change the log."""
    yield from (value for value in globals().values() if isinstance(value, Tampering))
    for column, value in (
        ("body_sha256", "sha256('x')"),
        ("answer", """'{"accepted": 99}'"""),
    ):
        yield sql(
            "a receipt of a batch was changed",
            OWNER,
            f"UPDATE batch SET {column} = {value} WHERE tenant_id = %(tenant)s"
            " AND first_index = (SELECT max(first_index) FROM batch WHERE NOT is_own"
            " AND tenant_id = %(tenant)s)",
            of=f"batch.{column}",
            why=_UNREAD,
        )


def pick(record: Record, rng: random.Random) -> tuple[Batch, int]:
    """An executor's event of a call that has its payload; the place in its batch."""
    return rng.choice(
        [
            (batch, at)
            for batch in record.batches()
            if batch.events and not batch.is_own
            for at, (_, raw) in enumerate(batch.events)
            if b'"toolExecution' in raw
        ]
    )


def edited(rng: random.Random, raw: bytes) -> bytes:
    """An event with another argument or result, which the index does not show."""
    event = json.loads(raw)
    if event["type"] == "toolExecutionStart":
        event["args"] = {"city": rng.choice(["Paris", "Rome"]), "n": rng.random()}
    else:
        event["output"] = {"status": "ok", "data": {"n": rng.random()}, "meta": {"took_ms": 20}}
        event["is_error"] = False
    return json.dumps(event).encode()


def payload(record: Record, rng: random.Random) -> tuple[Batch, int]:
    """A start event that has its payload: its arguments are in no index."""
    while True:
        batch, at = pick(record, rng)
        if b'"toolExecutionStart"' in batch.given[at][1]:
            return batch, at


@kind("an event's bytes were changed", OWNER, CHECK, BUNDLE)
def edit(record: Record, rng: random.Random) -> None:
    batch, at = payload(record, rng)
    salt, raw = batch.given[at]
    batch.given[at] = (salt, edited(rng, raw))
    record.write(batch)


@kind("an event's bytes were changed, with its leaf", OWNER, CHECK, BUNDLE)
def edit_with_leaf(record: Record, rng: random.Random) -> None:
    batch, at = payload(record, rng)
    batch.forge(at, edited(rng, batch.given[at][1]))
    record.write(batch)


@kind("an event's bytes were changed, with leaf and tile", OWNER, SIGNER, CHECK, BUNDLE)
def edit_with_tile(record: Record, rng: random.Random) -> None:
    batch, at = payload(record, rng)
    batch.forge(at, edited(rng, batch.given[at][1]))
    record.write(batch)
    record.fold_again()


@kind("an event's tool was changed, with leaf, tile and index", OWNER, SIGNER, CHECK, BUNDLE)
def edit_everything(record: Record, rng: random.Random) -> None:
    batch, at = pick(record, rng)
    raw = json.loads(batch.given[at][1])
    batch.forge(at, json.dumps(raw | {"tool_name": "forged"}).encode())
    record.write(batch)
    record.fold_again()
    repair_index(record)


@kind("an event's salt was changed", OWNER, CHECK, BUNDLE)
def edit_salt(record: Record, rng: random.Random) -> None:
    batch, at = pick(record, rng)
    batch.given[at] = (rng.randbytes(32), batch.given[at][1])
    record.write(batch)


@kind("an event's leaf was changed", OWNER, CHECK, BUNDLE)
def edit_leaf(record: Record, rng: random.Random) -> None:
    batch, at = pick(record, rng)
    batch.leaves[at] = rng.randbytes(32)
    record.write(batch)


@kind("an invented call was written into an old batch", OWNER, CHECK, INDEX, BUNDLE)
def insert_event(record: Record, rng: random.Random) -> None:
    batch, at = pick(record, rng)
    salt, raw = rng.randbytes(32), json.dumps(make_call()[0]).encode()
    batch.given.insert(at, (salt, raw))
    batch.leaves.insert(at, batch.leaf_for(salt, raw))
    record.write(batch)


@kind("an event was taken out of its batch", OWNER, CHECK, INDEX, BUNDLE)
def delete_event(record: Record, rng: random.Random) -> None:
    batch, at = pick(record, rng)
    del batch.given[at], batch.leaves[at]
    record.write(batch)


@kind("an event was taken out, and all behind it moved", OWNER, SIGNER, CHECK, INDEX, BUNDLE)
def delete_and_shift(record: Record, rng: random.Random) -> None:
    batch, at = pick(record, rng)
    del batch.given[at], batch.leaves[at]
    record.write(batch)
    record.change(
        "UPDATE batch SET first_index = first_index - 1 WHERE tenant_id = %(tenant)s"
        " AND first_index > %(first)s",
        OWNER,
        first=batch.first_index,
    )
    record.change("UPDATE ledger_head SET size = size - 1 WHERE tenant_id = %(tenant)s", OWNER)
    record.fold_again()


@kind("a batch was deleted", OWNER, CHECK, INDEX, BUNDLE)
def delete_batch(record: Record, rng: random.Random) -> None:
    batch, _ = pick(record, rng)
    record.change(_DELETE, OWNER, batch=batch.batch_id)


@kind("an entry of the server was deleted", OWNER, CHECK, INDEX, BUNDLE, of="action")
def delete_own(record: Record, rng: random.Random) -> None:
    batch = rng.choice([each for each in record.batches() if _is_action(each)])
    record.change(_DELETE, OWNER, batch=batch.batch_id)


@kind("two events were swapped, with their leaves", OWNER, CHECK, INDEX, BUNDLE)
def swap_events(record: Record, rng: random.Random) -> None:
    batch, _ = pick(record, rng)
    while len(batch.leaves) < 2 or batch.events is None:
        batch, _ = pick(record, rng)
    one, other = rng.sample([at for at, (_, raw) in enumerate(batch.events) if raw], 2)
    events, leaves = batch.given, batch.leaves
    events[one], events[other] = events[other], events[one]
    leaves[one], leaves[other] = leaves[other], leaves[one]
    record.write(batch)


@kind("a batch arrived at another time", OWNER, CHECK, BUNDLE)
def edit_time(record: Record, rng: random.Random) -> None:
    batch, _ = pick(record, rng)
    while any(b'"gap"' in raw for _, raw in batch.given):  # the index has the time of a gap
        batch, _ = pick(record, rng)
    record.change(
        "UPDATE batch SET received_at = received_at + %(by)s"
        " WHERE tenant_id = %(tenant)s AND batch_id = %(batch)s",
        OWNER,
        batch=batch.batch_id,
        by=timedelta(seconds=rng.uniform(1, 60)),
    )


@kind("a batch was declared an entry of the server", OWNER, CHECK, INDEX, BUNDLE)
def make_own(record: Record, rng: random.Random) -> None:
    batch, _ = pick(record, rng)
    record.change(
        "UPDATE batch SET is_own = true WHERE tenant_id = %(tenant)s AND batch_id = %(batch)s",
        OWNER,
        batch=batch.batch_id,
    )


@kind("a batch was given another id", OWNER, INDEX)
def edit_id(record: Record, rng: random.Random) -> None:
    batch, _ = pick(record, rng)
    record.change(
        "UPDATE batch SET batch_id = gen_random_uuid()"
        " WHERE tenant_id = %(tenant)s AND batch_id = %(batch)s",
        OWNER,
        batch=batch.batch_id,
    )


@kind("a payload was deleted", OWNER, CHECK, BUNDLE)
def delete_payload(record: Record, rng: random.Random) -> None:
    batch, _ = pick(record, rng)
    batch.events = None
    record.write(batch)


@kind("an event's bytes were deleted", OWNER, CHECK, BUNDLE)
def blank_event(record: Record, rng: random.Random) -> None:
    batch, at = pick(record, rng)
    batch.given[at] = (b"", b"")
    record.write(batch)


@kind("a payload was damaged", OWNER, CHECK, INDEX, BUNDLE)
def damage_payload(record: Record, rng: random.Random) -> None:
    batch, _ = pick(record, rng)
    record.change(
        "UPDATE batch SET payload = %(payload)s"
        " WHERE tenant_id = %(tenant)s AND batch_id = %(batch)s",
        OWNER,
        batch=batch.batch_id,
        payload=rng.randbytes(200),
    )


@kind("a batch was given to another tenant", OWNER, CHECK, INDEX, BUNDLE)
def give_away(record: Record, rng: random.Random) -> None:
    batch, _ = pick(record, rng)
    record.change(
        "UPDATE batch SET tenant_id = %(other)s"
        " WHERE tenant_id = %(tenant)s AND batch_id = %(batch)s",
        OWNER,
        batch=batch.batch_id,
        other=record.other.id,
    )


_DELETE = "DELETE FROM batch WHERE tenant_id = %(tenant)s AND batch_id = %(batch)s"


def repair_index(record: Record) -> None:
    """Make the index of the log as it is now: `manage.py reindex`."""
    record.touch(*KEYS)
    reindex(record.tenant_id, repair=True, progress=lambda done, size: None)


def _is_action(batch: Batch) -> bool:
    return batch.is_own and bool(batch.events) and b'"type":"action"' in batch.given[0][1]
