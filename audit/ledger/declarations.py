"""Check the entries that declare payloads erased: who may say so, of what, and when.

After the tenant's baseline,

- an erasure needs an earlier action that confirmed it, by the same person, for the same reason;
- retention needs a setting in force, and erases only what was older;
- neither may erase events of a call that a hold of then covers, by the entries and the index.

Without these, somebody who can append to the log could declare any payload erased, in anybody's
name. Entries of before are not covered.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from tooltrail.ledger import Kind

from audit.ledger.own_entries import OwnEntry, own_entries
from audit.models import LedgerErasure
from audit.sql import arrays
from audit.sql.run import run

_KINDS = (Kind.ACTION, Kind.BASELINE, Kind.ERASURE, Kind.RETENTION, Kind.HOLD)
CONFIRMED, SET = "erasure.confirm", "tenant.settings"
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
class _Said:
    """What the entries read so far say."""

    has_baseline: bool = False
    payload_days: int | None = None
    confirmed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Actor and reason, by the id of an erasure."""
    holds: dict[str, _Hold] = field(default_factory=dict)


def unjustified(tenant_id: UUID) -> Iterator[str]:
    """One message for each declaration that nothing justifies. Needs the tenant's scope.

    Reads all entries that the server itself made, and for each declaration under a hold the calls
    that the hold covers.
    """
    said = _Said()
    declared: dict[int, tuple[int, int]] = {}
    for entry in own_entries(tenant_id, _KINDS):
        with suppress(msgspec.MsgspecError, ValueError, RecursionError):
            if entry.kind in (Kind.ERASURE, Kind.RETENTION):
                one = msgspec.json.decode(entry.raw, type=_Declaration)
                declared[entry.index] = one.ranges[0][0], one.ranges[-1][1]
                if said.has_baseline:
                    yield from _faults(tenant_id, entry, one, said)
            else:
                _note(said, entry)
    yield from _other_rows(tenant_id, declared)


def _note(said: _Said, entry: OwnEntry) -> None:
    if entry.kind is Kind.HOLD:
        hold = msgspec.json.decode(entry.raw, type=_Hold)
        if hold.state == "set":
            said.holds[hold.hold] = hold
        else:
            said.holds.pop(hold.hold, None)
    elif entry.kind is Kind.BASELINE:
        if not said.has_baseline:
            said.has_baseline = True
            said.payload_days = msgspec.json.decode(entry.raw, type=_Baseline).payload_days
    else:
        action = msgspec.json.decode(entry.raw, type=_Action)
        if action.verb == CONFIRMED:
            said.confirmed[action.subject] = action.actor, str(action.details.get("reason", ""))
        elif action.verb == SET and "payload_days" in action.details.get("after", {}):
            said.payload_days = action.details["after"]["payload_days"]


def _faults(tenant_id: UUID, entry: OwnEntry, one: _Declaration, said: _Said) -> Iterator[str]:
    where = f"entry {entry.index:,}"
    if entry.kind is Kind.ERASURE and said.confirmed.get(one.erasure) != (one.actor, one.reason):
        yield f"{where}: an erasure by {one.actor}, but no entry says that they confirmed it"
    if entry.kind is Kind.RETENTION:
        if said.payload_days is None:
            yield f"{where}: payloads expired, but no setting in force lets them expire"
        else:
            before = entry.received_at - timedelta(days=said.payload_days)
            yield from _too_young(tenant_id, where, one, before)
    for hold in said.holds.values():
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


def _other_rows(tenant_id: UUID, declared: dict[int, tuple[int, int]]) -> Iterator[str]:
    """Differences of `ledger_erasure` from the entries that it is an index of."""
    stored = {
        row.entry_index: (row.begin_index, row.end_index)
        for row in LedgerErasure.objects.for_tenant(tenant_id)
    }
    differing = {
        index
        for index in stored.keys() | declared.keys()
        if stored.get(index) != declared.get(index)
    }
    for index in sorted(differing)[:_LISTED]:
        yield f"entry {index:,}: the list of erasures in the database does not say what it says"


def _instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
