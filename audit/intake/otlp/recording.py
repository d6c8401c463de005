"""Store the spans of a request in one transaction.

Spans take the same path as events: they become lines of the wire contract, stored as batches by
`audit.intake.ingest`. A request has no id of its own. If it is sent again, its spans are recognized
one by one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from uuid import UUID

from audit.events.batch_ids import BatchId
from audit.events.body import Line
from audit.events.definitions import Sighting
from audit.events.limits import MAX_INFLATED_BYTES
from audit.events.spans import Received
from audit.index.window import INDEX_DAYS
from audit.index.writer import IndexWriter
from audit.intake.arrival import Budget
from audit.intake.definitions import see_definitions
from audit.intake.ingest import record_in_scope
from audit.intake.otlp.definitions import ServedLists
from audit.intake.otlp.joining import join, store_spans
from audit.intake.otlp.mapping import Mapped, ToolCall, to_events
from audit.intake.retries import with_retries
from tenants.models import new_id
from tenants.scope import tenant_scope

# Events per batch: twice those of the 512 spans that SDKs send at once. While the second batch of
# a request is stored, the first one holds the head of the tenant's ledger.
_BATCH_EVENTS = 2048


@dataclass(slots=True)
class Recorded:
    """Counts of a request's spans, and of the events made of them, by outcome."""

    events: dict[str, int] = field(
        default_factory=lambda: {"accepted": 0, "duplicates": 0, "rejected": 0}
    )
    calls: int = 0
    merged: int = 0
    """Spans of a call beyond its first one."""
    others: int = 0
    """Spans that are no tool calls."""
    refused: dict[str, int] = field(default_factory=dict)
    """Rejected spans by reason."""

    @property
    def refused_count(self) -> int:
        """The number of rejected spans."""
        return sum(self.refused.values())

    @property
    def span_counts(self) -> dict[str, int]:
        """The number of spans by outcome, for the metrics."""
        return {
            "call": self.calls,
            "merged": self.merged,
            "skipped": self.others,
            "refused": self.refused_count,
        }


def record_spans(
    tenant_id: UUID, body: bytes, received: Received, mapped: Mapped, now: datetime
) -> Recorded:
    """Store the tool calls among a request's spans, all or none, and the definitions in them.

    Raises django.db.OperationalError or InterfaceError when PostgreSQL is away; sending the same
    spans again is then safe.
    """
    if not received.spans:
        return Recorded(refused=dict(received.refused))
    digest = hashlib.sha256(body).digest()
    recorded = with_retries(lambda: _record(tenant_id, digest, received, mapped, now))
    lists = ServedLists(tenant_id, received.spans)
    if sightings := lists.sightings(now):
        with_retries(partial(_see, tenant_id, sightings, now))
        lists.remember()
    return recorded


def _see(tenant_id: UUID, sightings: Sequence[Sighting], now: datetime) -> None:
    with tenant_scope(tenant_id):
        see_definitions(tenant_id, sightings, now)


def _record(
    tenant_id: UUID, body_sha256: bytes, received: Received, mapped: Mapped, now: datetime
) -> Recorded:
    with tenant_scope(tenant_id):
        writer = IndexWriter(now)
        mapped = join(writer, received.spans, mapped)
        recorded = Recorded(others=len(mapped.others), refused=dict(received.refused))
        stored: set[UUID] = set()
        budget = Budget()
        for calls, lines in _batches(mapped.calls):
            batch_id = BatchId(new_id())
            answer = record_in_scope(
                tenant_id, body_sha256, lines, batch_id, now, is_otlp=True, budget=budget
            )
            recorded.events["accepted"] += answer["accepted"]
            recorded.events["duplicates"] += answer["duplicates"]
            recorded.events["rejected"] += len(answer["rejected"])
            refused = {(each["line"] - 1) // 2: each for each in answer["rejected"]}
            for at, call in enumerate(calls):
                if at in refused:
                    reason = refused[at]["message"]
                    count = recorded.refused.get(reason, 0)
                    recorded.refused[reason] = count + len(call.facts)
                else:
                    recorded.calls += 1
                    recorded.merged += len(call.facts) - 1
                    stored.add(call.invocation_id)
        store_spans(writer, mapped, stored, INDEX_DAYS.missing)
    return recorded


def _batches(calls: Sequence[ToolCall]) -> "list[tuple[list[ToolCall], list[Line]]]":
    """The calls with their events as lines, in batches of limited bytes and events."""
    batches: list[tuple[list[ToolCall], list[Line]]] = []
    size = MAX_INFLATED_BYTES
    for call in calls:
        start, end = to_events(call)
        size += len(start) + len(end)
        if size > MAX_INFLATED_BYTES or len(batches[-1][1]) > _BATCH_EVENTS - 2:
            batches.append(([], []))
            size = len(start) + len(end)
        some_calls, lines = batches[-1]
        some_calls.append(call)
        lines += (Line(len(lines) + 1, start), Line(len(lines) + 2, end))
    return batches
