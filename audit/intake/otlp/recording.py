"""Store the spans of a request in one transaction.

Spans take the same path as events: they become lines of the wire contract, stored as batches by
`audit.intake.ingest`. A request has no id of its own. If it is sent again, its spans are recognized
one by one.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import count
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
from audit.intake.otlp.accounts import to_events
from audit.intake.otlp.decisions import Decided, to_event
from audit.intake.otlp.definitions import ServedLists
from audit.intake.otlp.joining import join
from audit.intake.otlp.mapping import Mapped, ToolCall
from audit.intake.otlp.skipped import count_skipped, kind_of, rejected
from audit.intake.otlp.span_rows import store_spans
from audit.intake.otlp.usage import store_usage
from audit.intake.retries import with_retries
from audit.queries.skipped_spans import SkippedKind
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
    decisions: int = 0
    """Spans of guardrails and of refused or waiting tools: decisions, and no calls."""
    skipped: Counter[SkippedKind] = field(default_factory=Counter)
    """Spans that are neither, by kind."""
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
            "decision": self.decisions,
            "skipped": self.skipped.total(),
            "refused": self.refused_count,
        }


def record_spans(
    tenant_id: UUID, body: bytes, received: Received, mapped: Mapped, now: datetime
) -> Recorded:
    """Store the tool calls and decisions among a request's spans, all or none, and the definitions
    in them.

    Raises django.db.OperationalError or InterfaceError when PostgreSQL is unreachable; sending
    the same spans again is then safe.
    """
    if not (mapped.calls or mapped.decisions or mapped.others or received.refused):
        return Recorded()
    digest = hashlib.sha256(body).digest()
    attempts = count()
    recorded = with_retries(
        lambda: _record(tenant_id, digest, received, mapped, now, is_first=next(attempts) == 0)
    )
    lists = ServedLists(tenant_id, received.spans)
    if sightings := lists.sightings(now):
        with_retries(partial(_see, tenant_id, sightings, now))
        lists.remember()
    return recorded


def _see(tenant_id: UUID, sightings: Sequence[Sighting], now: datetime) -> None:
    with tenant_scope(tenant_id):
        see_definitions(tenant_id, sightings, now)


def _record(
    tenant_id: UUID,
    body_sha256: bytes,
    received: Received,
    mapped: Mapped,
    now: datetime,
    *,
    is_first: bool,
) -> Recorded:
    """One attempt. The first one inserts calls without a lookup if no span of them is stored."""
    with tenant_scope(tenant_id):
        writer = IndexWriter(now)
        mapped = join(writer, received.spans, mapped)
        recorded = Recorded(
            decisions=mapped.decided_spans,
            skipped=Counter(map(kind_of, mapped.others)),
            refused=dict(received.refused),
        )
        stored: set[UUID] = set()
        budget = Budget()
        expects_new = is_first and all(call.started_ns is None for call in mapped.calls)
        for items, lines in _batches(mapped):
            batch_id = BatchId(new_id())
            answer = record_in_scope(
                tenant_id,
                body_sha256,
                lines,
                batch_id,
                now,
                is_otlp=True,
                budget=budget,
                expects_new=expects_new,
            )
            recorded.events["accepted"] += answer["accepted"]
            recorded.events["duplicates"] += answer["duplicates"]
            recorded.events["rejected"] += len(answer["rejected"])
            messages = {each["line"]: each["message"] for each in answer["rejected"]}
            for item, first, length in items:
                refused = [messages[n] for n in range(first, first + length) if n in messages]
                if isinstance(item, Decided):
                    if refused:
                        recorded.refused[refused[-1]] = recorded.refused.get(refused[-1], 0) + 1
                elif item.is_late:
                    pass  # its spans were counted in their own request
                elif refused:
                    known = recorded.refused.get(refused[-1], 0)
                    recorded.refused[refused[-1]] = known + len(item.facts)
                else:
                    recorded.calls += 1
                    recorded.merged += len(item.facts) - 1
                    stored.add(item.invocation_id)
        store_spans(writer, mapped, stored, INDEX_DAYS.missing)
        store_usage(writer, mapped, INDEX_DAYS.missing)
        rejections = Counter({rejected(why): number for why, number in recorded.refused.items()})
        count_skipped(writer, recorded.skipped + rejections)
    return recorded


type _Item = tuple[ToolCall | Decided, int, int]
"""A call or a decision, the number of its first line in a batch, and how many it has."""


def _batches(mapped: Mapped) -> list[tuple[list[_Item], list[Line]]]:
    """Calls and decisions with their events as lines, in batches of limited bytes and events."""
    batches: list[tuple[list[_Item], list[Line]]] = []
    size = MAX_INFLATED_BYTES
    for item, events in _events(mapped):
        size += sum(map(len, events))
        if size > MAX_INFLATED_BYTES or len(batches[-1][1]) > _BATCH_EVENTS - 2:
            batches.append(([], []))
            size = sum(map(len, events))
        items, lines = batches[-1]
        items.append((item, len(lines) + 1, len(events)))
        for event in events:
            lines.append(Line(len(lines) + 1, event))
    return batches


def _events(mapped: Mapped) -> Iterator[tuple[ToolCall | Decided, tuple[bytes, ...]]]:
    for call in mapped.calls:
        yield call, to_events(call)
    if mapped.decisions:
        ids = {facts.span.key: call.invocation_id for call in mapped.calls for facts in call.facts}
        for one in mapped.decisions:
            yield one, (to_event(one, ids),)
