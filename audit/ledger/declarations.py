"""Check the entries that declare payloads erased: who may say so, of what, and when.

After the tenant's baseline,

- an erasure needs an earlier action that confirmed it, by the same person, for the same reason;
- retention needs a setting in force, and erases only what was older;
- neither may erase events of a call that a hold of then covers, by the entries and the index;
- an erasure may only erase calls that its preview and its confirmation state
  (`audit.ledger.erased_calls`).

The holds in force must be those of the entries, because nothing is erased while they differ.

Without these, somebody who can append to the log could declare any payload erased, in anybody's
name. Entries of before are not covered.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from tooltrail.ledger import Kind

from audit.ledger.erased_calls import CONFIRMED, PREVIEWED, Stated, listed_calls
from audit.ledger.own_entries import OwnEntry, own_entries
from audit.models import LedgerErasure, LegalHold
from audit.sql import arrays
from audit.sql.run import run

_KINDS = (Kind.ACTION, Kind.BASELINE, Kind.ERASURE, Kind.RETENTION, Kind.HOLD)
SET = "tenant.settings"
_LISTED = 20


class _Action(msgspec.Struct):
    verb: str
    subject: str
    actor: str
    details: dict[str, Any]


class _Declaration(msgspec.Struct):
    ranges: list[tuple[int, int]]
    actor: str = ""
    reason: str = ""
    erasure: str = ""


class _Hold(msgspec.Struct):
    hold: str
    state: str
    name: str
    covers: dict[str, Any] = {}


class _Baseline(msgspec.Struct):
    payload_days: int | None = None


@dataclass
class _Grounds:
    """What can justify a declaration, by the entries read so far."""

    has_baseline: bool = False
    payload_days: int | None = None
    confirmed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Actor and reason of the first confirmation, by the id of an erasure."""
    stated: dict[str, list[Stated]] = field(default_factory=dict)
    """What preview and confirmations state of the calls, by the id of an erasure."""
    erased: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """The ranges of entries that were erased, by the id of an erasure."""
    holds: dict[str, _Hold] = field(default_factory=dict)


def unjustified(tenant_id: UUID) -> Iterator[str]:
    """One message for each declaration that nothing justifies. Needs the tenant's scope.

    Reads all entries that the server itself made, and for each declaration under a hold the calls
    that the hold covers.
    """
    grounds = _Grounds()
    holds, rows = _holds(tenant_id), _rows(tenant_id)
    declared: dict[int, tuple[int, int]] = {}
    for entry in own_entries(tenant_id, _KINDS):
        with suppress(msgspec.MsgspecError, ValueError, RecursionError):
            if entry.kind in (Kind.ERASURE, Kind.RETENTION):
                one = msgspec.json.decode(entry.raw, type=_Declaration)
                declared[entry.index] = one.ranges[0][0], one.ranges[-1][1]
                if entry.kind is Kind.ERASURE:
                    grounds.erased.setdefault(one.erasure, []).extend(one.ranges)
                if grounds.has_baseline:
                    yield from _faults(tenant_id, entry, one, grounds)
            else:
                _note(grounds, entry)
    for erasure, stated in grounds.stated.items():
        yield from _other_calls(tenant_id, erasure, stated, grounds.erased.get(erasure, []))
    in_force = {each: hold.covers for each, hold in grounds.holds.items()}
    for each in _differing(holds, in_force, _holds(tenant_id)):
        yield f"the hold {each} is another in the database than in the entries of kind hold"
    for index in _differing(rows, declared, _rows(tenant_id)):
        yield f"entry {index:,}: the list of erasures in the database does not say what it says"


def _note(grounds: _Grounds, entry: OwnEntry) -> None:
    if entry.kind is Kind.HOLD:
        hold = msgspec.json.decode(entry.raw, type=_Hold)
        if hold.state == "set":
            grounds.holds[hold.hold] = hold
        else:
            grounds.holds.pop(hold.hold, None)
    elif entry.kind is Kind.BASELINE:
        if not grounds.has_baseline:
            grounds.has_baseline = True
            grounds.payload_days = msgspec.json.decode(entry.raw, type=_Baseline).payload_days
    else:
        action = msgspec.json.decode(entry.raw, type=_Action)
        if action.verb in (PREVIEWED, CONFIRMED) and (stated := Stated.read(action.details)):
            grounds.stated.setdefault(action.subject, []).append(stated)
        if action.verb == CONFIRMED:
            by = action.actor, str(action.details.get("reason", ""))
            grounds.confirmed.setdefault(action.subject, by)
        elif action.verb == SET and "payload_days" in action.details.get("after", {}):
            grounds.payload_days = action.details["after"]["payload_days"]


def _faults(
    tenant_id: UUID, entry: OwnEntry, one: _Declaration, grounds: _Grounds
) -> Iterator[str]:
    where = f"entry {entry.index:,}"
    if entry.kind is Kind.ERASURE and grounds.confirmed.get(one.erasure) != (one.actor, one.reason):
        yield f"{where}: an erasure by {one.actor}, but no entry says that they confirmed it"
    if entry.kind is Kind.RETENTION:
        if grounds.payload_days is None:
            yield f"{where}: payloads expired, but no setting in force lets them expire"
        else:
            before = entry.received_at - timedelta(days=grounds.payload_days)
            yield from _too_young(tenant_id, where, one, before)
    for hold in grounds.holds.values():
        covers = hold.covers
        ((count,),) = run(
            "held_calls_in_ranges",
            tenant_id=tenant_id,
            begins=arrays.bigints([begin for begin, _ in one.ranges]),
            ends=arrays.bigints([end for _, end in one.ranges]),
            trace_id=covers.get("trace_id"),
            case_id=covers.get("case_id"),
            tool_name=covers.get("tool_name"),
            since=_instant(covers.get("since")),
            until=_instant(covers.get("until")),
        )
        if count:
            calls = "a call" if count == 1 else f"{count:,} calls"
            yield f"{where}: it erased events of {calls} that the hold {hold.name} covers"


def _too_young(tenant_id: UUID, where: str, one: _Declaration, before: datetime) -> Iterator[str]:
    rows = run(
        "batches_received_after",
        tenant_id=tenant_id,
        begins=arrays.bigints([begin for begin, _ in one.ranges]),
        ends=arrays.bigints([end for _, end in one.ranges]),
        before=before,
        row_limit=1,
    )
    for first_index, received_at in rows:
        yield (
            f"{where}: payloads from {first_index:,} on expired, but they arrived at"
            f" {received_at:%Y-%m-%d %H:%M} UTC"
        )


def _other_calls(
    tenant_id: UUID, erasure: str, stated: list[Stated], erased: list[tuple[int, int]]
) -> Iterator[str]:
    """Differences between an erasure's list of calls, what entries state, and what it erased."""
    listed = Stated.of(listed_calls(tenant_id, UUID(erasure)))
    if any(each != listed for each in stated):
        yield (
            f"the erasure {erasure} lists {listed.calls:,} calls, and entries state"
            f" {stated[-1].calls:,} or other ones"
        )
    if not erased:
        return
    ((count,),) = run(
        "unlisted_calls_in_ranges",
        tenant_id=tenant_id,
        erasure_id=UUID(erasure),
        begins=arrays.bigints([begin for begin, _ in erased]),
        ends=arrays.bigints([end for _, end in erased]),
        first_index=min(begin for begin, _ in erased),
        end_index=max(end for _, end in erased),
    )
    if count:
        calls = "a call" if count == 1 else f"{count:,} calls"
        yield f"the erasure {erasure} erased events of {calls} that it does not list"


def _holds(tenant_id: UUID) -> dict[str, dict[str, Any]]:
    """What the holds in force cover, by their ids."""
    in_force = LegalHold.objects.for_tenant(tenant_id).filter(released_at=None)
    return {str(hold.id): hold.covers for hold in in_force}


def _rows(tenant_id: UUID) -> dict[int, tuple[int, int]]:
    """The rows of `ledger_erasure`, an index of the entries."""
    return {
        row.entry_index: (row.begin_index, row.end_index)
        for row in LedgerErasure.objects.for_tenant(tenant_id)
    }


def _differing[K: (int, str), V](
    before: Mapping[K, V], entries: Mapping[K, V], after: Mapping[K, V]
) -> list[K]:
    """The keys of rows that differ from the entries, both before these were read and after."""
    keys = before.keys() | entries.keys() | after.keys()
    wrong = (each for each in keys if entries.get(each) not in (before.get(each), after.get(each)))
    return sorted(wrong)[:_LISTED]


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
