"""Alterations of a log by somebody with full access to the database, and their verdicts.

Each alters at random and covers it up as well as can be without the private key.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, timedelta

from tooltrail.ledger import Checkpoint, SigningKey
from tooltrail.ledger.lines import to_base64

from audit.evidence.ledger_range import ledger_range_of
from audit.queries.time_range import TimeRange
from tenants.scope import tenant_scope
from tests.support.factories import make_call
from tests.support.tampered_ledger import ERASED, Case, Stored


@dataclass
class Expected:
    """The verdict an alteration must get."""

    failed: set[str]
    """The checks that fail; none: the bundle is genuine."""
    may_fail: set[str] = field(default_factory=set)
    """What may also fail."""
    previous: bool = False
    """Whether a checkpoint the auditor has kept shows it."""
    index_differs: bool = False
    """Whether `reindex --check` shows it."""
    of: TimeRange | None = None
    """The range of the bundle; None: everything."""


PROOFS = {"consistent", "erasures"}
"""What fails along with the tree: earlier checkpoints, and the proof of the entry that erases."""
COVERED_UP = Expected({"included"}, PROOFS)
"""Bytes and leaves match: only the signatures show it."""


def pick(case: Case, rng: random.Random) -> tuple[Stored, int]:
    """An executor's event that has its payload."""
    return rng.choice(
        [
            (stored, at)
            for stored in case.batches()
            if stored.events and not stored.is_own
            for at, (salt, _) in enumerate(stored.events)
            if salt
        ]
    )


def edited(rng: random.Random, raw: bytes) -> bytes:
    """An event with other content."""
    event = json.loads(raw)
    if rng.random() < 0.5 and "args" in event:
        event["args"] = {"city": rng.choice(["Paris", "Rome"]), "n": rng.random()}
    elif "output" in event:
        event["output"]["data"] = {"n": rng.random()}
    else:
        event["tool_name"] = f"tool{rng.randrange(99)}"
    return json.dumps(event).encode()


def edit_event(case: Case, rng: random.Random) -> Expected:
    """An event says something else."""
    stored, at = pick(case, rng)
    salt, raw = stored.given[at]
    stored.given[at] = (salt, edited(rng, raw))
    case.write(stored)
    return Expected({"unedited"})


def edit_byte(case: Case, rng: random.Random) -> Expected:
    """A single bit of a payload is another; the event may be none any more."""
    stored, at = pick(case, rng)
    salt, raw = stored.given[at]
    which = rng.randrange(len(raw))
    raw = raw[:which] + bytes([raw[which] ^ 1 << rng.randrange(8)]) + raw[which + 1 :]
    stored.given[at] = (salt, raw)
    case.write(stored)
    return Expected({"unedited"})


def edit_and_cover_up(case: Case, rng: random.Random) -> Expected:
    """An event says something else, and leaf and tiles are made to fit."""
    stored, at = pick(case, rng)
    stored.forge(at, edited(rng, stored.given[at][1]))
    case.write(stored)
    if rng.random() < 0.5:
        case.fold_anew()
    return COVERED_UP


def edit_leaf(case: Case, rng: random.Random) -> Expected:
    """A leaf is another; the event is genuine."""
    stored, at = pick(case, rng)
    stored.put_leaf(at, rng.randbytes(32))
    case.write(stored)
    return Expected({"unedited", "included"}, PROOFS)


def edit_time(case: Case, rng: random.Random) -> Expected:
    """A batch has another arrival time, within the range."""
    stored, _ = pick(case, rng)
    case.run(
        "UPDATE batch SET received_at = received_at + %s WHERE tenant_id = %s AND batch_id = %s",
        timedelta(seconds=rng.uniform(1, 3_000)),
        case.tenant.id,
        stored.batch_id,
    )
    return Expected({"unedited"})


def delete_event(case: Case, rng: random.Random) -> Expected:
    """An event is gone, and its leaf."""
    stored, at = pick(case, rng)
    del stored.given[at]
    stored.leaves = stored.leaves[: at * 32] + stored.leaves[at * 32 + 32 :]
    if stored.leaves:
        case.write(stored)
    else:
        case.run(
            "DELETE FROM batch WHERE tenant_id = %s AND batch_id = %s",
            case.tenant.id,
            stored.batch_id,
        )
    if rng.random() < 0.5:
        return Expected({"complete"})
    # The index of all that follows is moved, so that there is no gap.
    case.shift(stored.first_index, -1)
    case.fold_anew()
    return Expected(set(), {"complete", "included", *PROOFS})


def delete_batch(case: Case, rng: random.Random) -> Expected:
    """A whole request is gone."""
    stored = rng.choice(case.batches()[1:-1])
    case.run(
        "DELETE FROM batch WHERE tenant_id = %s AND batch_id = %s", case.tenant.id, stored.batch_id
    )
    return Expected({"complete"}, {"erasures"})


def insert_event(case: Case, rng: random.Random) -> Expected:
    """An event that nobody sent."""
    stored, at = pick(case, rng)
    salt, (raw, *_) = rng.randbytes(32), [json.dumps(each).encode() for each in make_call()]
    stored.given.insert(at, (salt, raw))
    leaf = stored.leaf_for(salt, raw)
    stored.leaves = stored.leaves[: at * 32] + leaf + stored.leaves[at * 32 :]
    case.write(stored)
    if rng.random() < 0.5:
        # The index of all that follows is moved, so that none is there twice.
        case.shift(stored.first_index, 1)
        case.fold_anew()
    return Expected(set(), {"complete", "included", *PROOFS})


def swap_events(case: Case, rng: random.Random) -> Expected:
    """Two events in each other's place, with their leaves or without."""
    one, at = pick(case, rng)
    other, there = pick(case, rng)
    if one.batch_id == other.batch_id:
        other = one
    if one is other and at == there:
        there = (at + 1) % len(one.given)
    with_leaves = rng.random() < 0.5
    here, leaf = one.given[at], one.leaf(at)
    one.given[at] = other.given[there]
    other.given[there] = here
    if with_leaves:
        one.put_leaf(at, other.leaf(there))
        other.put_leaf(there, leaf)
    for stored in (one, other):
        case.write(stored)
    if not with_leaves:
        return Expected({"unedited"})
    # Of another request it also has the time at which that came.
    return COVERED_UP if one is other else Expected({"included", "unedited"}, PROOFS)


def swap_batches(case: Case, rng: random.Random) -> Expected:
    """Two requests in each other's place."""
    chosen = rng.sample([each for each in case.batches() if not each.is_own][1:], 2)
    low, high = sorted(chosen, key=lambda each: each.first_index)
    by = len(high.leaves) // 32 - len(low.leaves) // 32
    low_at, high_at = low.first_index, high.first_index
    case.run(
        "UPDATE batch SET first_index = first_index + %s WHERE tenant_id = %s"
        " AND first_index > %s AND first_index < %s",
        by,
        case.tenant.id,
        low_at,
        high_at,
    )
    low.first_index, high.first_index = high_at + by, low_at
    for stored in (low, high):
        case.write(stored)
    if rng.random() < 0.5:
        case.fold_anew()
    return COVERED_UP


def truncate(case: Case, rng: random.Random) -> Expected:
    """The newest requests are gone, and all that was signed of them."""
    size = rng.choice(sorted(case.kept)[1:-1])
    case.forget_behind(size)
    return Expected(set(), previous=True)


def roll_back_and_go_on(case: Case, rng: random.Random) -> Expected:
    """An older state, another history from there, and the private key was stolen, too."""
    size = rng.choice(sorted(case.kept)[1:-1])
    behind = [each for each in case.batches() if each.first_index >= size]
    for stored in behind:
        for at in range(len(stored.leaves) // 32):
            if not stored.is_own:
                stored.forge(at, edited(rng, stored.given[at][1]))
        case.write(stored)
    root = case.fold_anew()
    (newest,) = case.run(
        "SELECT max(size) FROM ledger_checkpoint WHERE tenant_id = %s", case.tenant.id
    )
    case.run(
        "DELETE FROM ledger_checkpoint WHERE tenant_id = %s AND size > %s", case.tenant.id, size
    )
    note = Checkpoint(case.key.name, newest[0], root).sign([case.signing])
    case.publish(newest[0], root, note)
    return Expected(set(), previous=True)


def sign_with_another_key(case: Case, rng: random.Random) -> Expected:
    """All is made to fit, and signed; whose key it is the page says, too."""
    stored, at = pick(case, rng)
    stored.forge(at, edited(rng, stored.given[at][1]))
    case.write(stored)
    root = case.fold_anew()
    size = max(case.kept)
    forged = SigningKey(case.key.name, rng.randbytes(32))
    case.run("DELETE FROM ledger_checkpoint WHERE tenant_id = %s", case.tenant.id)
    case.publish(size, root, Checkpoint(case.key.name, size, root).sign([forged]))
    case.run("INSERT INTO ledger_key VALUES (%s, now(), NULL)", forged.verifier.public)
    return Expected({"signed"})


def edit_checkpoint(case: Case, rng: random.Random) -> Expected:
    """A checkpoint says something else than was signed."""
    size = max(case.kept)
    note = case.kept[size].decode()
    lines = note.split("\n")
    lines[2] = to_base64(rng.randbytes(32))
    case.run(
        "UPDATE ledger_checkpoint SET note = %s WHERE tenant_id = %s AND size = %s",
        "\n".join(lines),
        case.tenant.id,
        size,
    )
    return Expected({"signed", "included"}, PROOFS)


def edit_tiles(case: Case, rng: random.Random) -> Expected:
    """The stored tree is another in front of a range, or behind, and so is the proof made of it."""
    stored = rng.choice(case.batches()[2:-2])
    of = TimeRange(stored.received_at, stored.received_at + timedelta(seconds=1), UTC)
    with tenant_scope(case.tenant.id):
        ledger_range = ledger_range_of(of)
    within = range(ledger_range.first_index, ledger_range.end_index)
    ((tile,),) = case.run(
        "SELECT hashes FROM ledger_tile WHERE tenant_id = %s AND level = 0", case.tenant.id
    )
    hashes = [tile[at : at + 32] for at in range(0, len(tile), 32)]
    at = rng.choice([at for at in range(len(hashes)) if at not in within])
    hashes[at] = rng.randbytes(32)
    case.run(
        "UPDATE ledger_tile SET hashes = %s WHERE tenant_id = %s AND level = 0",
        b"".join(hashes),
        case.tenant.id,
    )
    return Expected({"included"}, PROOFS, of=of)


def delete_tail(case: Case, rng: random.Random) -> Expected:
    """The newest requests are gone, but their signatures are still there."""
    first = rng.choice(case.batches()[5:]).first_index
    case.run("DELETE FROM batch WHERE tenant_id = %s AND first_index >= %s", case.tenant.id, first)
    case.run("UPDATE ledger_head SET size = %s WHERE tenant_id = %s", first, case.tenant.id)
    return Expected({"complete"})


def remove_payload(case: Case, rng: random.Random) -> Expected:
    """A payload is gone, of a request or of one event, and nothing says so."""
    stored, at = pick(case, rng)
    if rng.random() < 0.5:
        stored.events = None
    else:
        stored.given[at] = (b"", b"")
    case.write(stored)
    return Expected({"erasures"})


def remove_and_declare(case: Case, rng: random.Random) -> Expected:
    """A payload is gone, and the entry about an erasure lists it in addition."""
    stored, _ = pick(case, rng)
    stored.events = None
    case.write(stored)
    own = next(each for each in case.batches() if each.is_own)
    salt, raw = own.given[0]
    document = json.loads(raw)
    document["ranges"].append([0, own.first_index])
    own.given[0] = (salt, json.dumps(document).encode())
    case.write(own)
    return Expected({"unedited", "erasures"})


def damage_payload(case: Case, rng: random.Random) -> Expected:
    """The stored bytes of a request can no longer be read."""
    stored, _ = pick(case, rng)
    case.run(
        "UPDATE batch SET payload = %s WHERE tenant_id = %s AND batch_id = %s",
        rng.randbytes(200),
        case.tenant.id,
        stored.batch_id,
    )
    return Expected({"erasures"})


def edit_index_row(case: Case, rng: random.Random) -> Expected:
    """What pages show of a call is not what the log says: the bundle is of the log.

    Of an erased call the log says nothing any more.
    """
    calls = case.run(
        "SELECT invocation_id FROM invocation JOIN batch USING (tenant_id)"
        " WHERE tenant_id = %s AND batch_id = start_batch_id AND first_index + start_pos >= %s"
        " ORDER BY started_at, invocation_id",
        case.tenant.id,
        ERASED,
    )
    (invocation_id,) = rng.choice(calls)
    change = rng.choice(
        [
            "tool_name = 'another'",
            "duration_us = duration_us + 1",
            "state = 'failed'",
            "trace_id = 'other'",
            "completion_tokens = 12345",
            "end_pos = end_pos + 1",
        ]
    )
    case.run(
        f"UPDATE invocation SET {change} WHERE tenant_id = %s AND invocation_id = %s",
        case.tenant.id,
        invocation_id,
    )
    return Expected(set(), index_differs=True)


ALTERATIONS: dict[Callable[[Case, random.Random], Expected], int] = {
    edit_event: 80,
    edit_byte: 70,
    edit_and_cover_up: 100,
    edit_leaf: 80,
    edit_time: 40,
    delete_event: 80,
    delete_batch: 40,
    insert_event: 60,
    swap_events: 80,
    swap_batches: 40,
    truncate: 50,
    roll_back_and_go_on: 30,
    sign_with_another_key: 40,
    edit_checkpoint: 30,
    remove_payload: 60,
    remove_and_declare: 20,
    damage_payload: 20,
    edit_index_row: 30,
    edit_tiles: 30,
    delete_tail: 20,
}
"""How often each alteration runs."""
