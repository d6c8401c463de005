"""Everything the panel of one call shows, gathered from the index and from the log.

The figures come from the index. The payloads are the exact bytes of the log; if these were erased,
only the index is shown. A member who may not see payloads gets the place and time of the events
in the log, and only the shape of the payloads.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.utils.safestring import SafeString

from audit.archive.reading import has_archived, with_archived
from audit.events.json_values import Number
from audit.ledger.erased import ErasedBy, erased_of
from audit.log.payload import LogPayloadError, StoredEvent
from audit.models import LegalHold
from audit.pages.calls.payloads import ContextValue, member, read_payloads
from audit.queries.call_events import Kind, read_call_events
from audit.queries.call_filter import OPEN, UNRUN
from audit.queries.call_query import quoted
from audit.queries.calls import (
    AlikeCall,
    Beside,
    CallDetail,
    CallViolation,
    call_violations,
    calls_alike,
    failures_beside,
)
from audit.queries.decisions import DecisionStep, decisions_of_call
from audit.queries.definitions import (
    DefinitionInForce,
    definitions_of_call,
    definitions_with_digest,
)
from audit.queries.hints import hints_in_force, hints_of_tool
from audit.queries.withheld import without_message
from audit.retention.holds import holds_in_force, holds_of_call
from audit.show import reasons
from audit.show.figures import NBSP, count, duration
from audit.show.json_tree import ABSENT, Mark, Tree, draw, inline
from tenants.scope import current_tenant_id

ALIKE_LIMIT = 20
RAW_LENGTH = 4_000  # characters of an event shown in the panel; a link leads to all of it

CLOCKS_AGREE = timedelta(seconds=1)  # a smaller difference between two clocks is normal

_SUBSTITUTING = {"fallback", "error-result"}


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event as it is stored in the log."""

    kind: Kind
    ledger_index: int
    received_at: datetime
    size: int  # bytes; 0 when erased
    text: str  # beginning of its line; empty if withheld
    is_cut: bool
    is_erased: bool
    erased: ErasedBy | None  # the ledger's entry about the erasure


@dataclass(frozen=True, slots=True)
class Broken:
    """A violation with its value before and after the guard, if the guard reported them."""

    violation: CallViolation
    before: SafeString
    after: SafeString


class ShownDecision(NamedTuple):
    """A decision, and the definition that was shown to whoever decided, if it is stored."""

    step: DecisionStep
    definition_id: UUID | None


@dataclass(frozen=True, slots=True)
class CallPanel:
    """One call, ready for its template. A tree is None if its value is unknown."""

    call: CallDetail
    is_withheld: bool  # payloads are reduced to shapes, and texts that quote them are left out
    reason: str
    guard_outcome: str  # in words
    is_open: bool  # it has no end yet
    is_overdue: bool
    running_us: int
    is_registered: bool  # whether the registry knows the tool
    hints: list[str]  # how the tool's MCP definition says that it behaves
    violations: list[Broken]
    error: list[tuple[str, str]]
    error_message: str
    error_more: Tree | None
    args: Tree | None
    received: Tree | None  # what the tool returned, if its guard replaced it
    output: Tree | None
    is_output_substitute: bool  # the output is the guard's own value, so no violation is in it
    content: Tree | None  # content blocks of an MCP result; the output is its structured content
    is_output_from_text: bool  # the MCP result has JSON in its text instead
    meta: Tree | None
    tokens: str
    context: list[ContextValue]
    alike: list[AlikeCall]
    alike_is_cut: bool
    alike_query: str  # query for all of them
    beside: Beside
    events: list[LogEvent]
    log_error: str
    clock_note: str  # what is wrong with its times, which the producer set and nobody changes
    holds: list[LegalHold]  # active holds that cover the call
    erased: list[ErasedBy]  # when and why its payloads were erased
    is_archived: bool  # erased ones may be read from the archive
    is_from_archive: bool  # they were read from there
    archive_problem: str  # why they could not be
    definitions: list[DefinitionInForce]  # of its tool, in force when it started, by server
    decisions: list[DecisionStep]  # the earliest first; without reasons if payloads are withheld
    shown: dict[str, UUID]  # ids of the definitions that were shown to whoever decided, by digest

    @property
    def archive_query(self) -> str:
        """The query of addresses that show an event from where the panel has it."""
        return "?from=archive" if self.is_from_archive else ""

    @property
    def decided(self) -> list[ShownDecision]:
        """Each decision with the definition that was shown."""
        return [
            ShownDecision(one, self.shown.get(one.decision.definition_digest or ""))
            for one in self.decisions
        ]

    @property
    def has_run(self) -> bool:
        """Whether the call started. If not, its event is a decision, and so is its time."""
        return self.call.state not in UNRUN

    @property
    def is_unapproved(self) -> bool:
        """Whether a definition of its tool was unapproved or unknown when it started."""
        return any(one.is_unapproved for one in self.definitions)


def gather(
    call: CallDetail,
    now: datetime,
    beside: Beside | None = None,
    *,
    with_payloads: bool,
    from_archive: bool = False,
) -> CallPanel:
    """Return the panel of a call. Pass `beside` if it is known. Needs the tenant's scope.

    Without payloads, arguments and output are reduced to shapes, and the panel has no error message
    and no received values. It still has the place of the events in the log. It runs at most
    twelve SQL statements, and two or more for each erased event. With `from_archive`, erased events
    are read from the archive's storage.
    """
    violations = call_violations(call) if call.violation_count else []
    decisions = decisions_of_call(call)
    stored, log_error = _stored(call)
    gone = [event.ledger_index for event in stored.values() if event.raw is None]
    is_archived = with_payloads and bool(gone) and has_archived(gone)
    archive_problem = ""
    if is_archived and from_archive:
        stored, archive_problem = with_archived(stored)
    payloads = read_payloads(stored)
    if not with_payloads:
        call = without_message(call)
        violations = [replace(one, received="") for one in violations]
        payloads = payloads.as_shapes()
    marks = [_mark(one, payloads.reported, place) for place, one in enumerate(violations)]
    marks_by_path: dict[str, list[Mark]] = {}
    for violation, mark in zip(violations, marks, strict=True):
        marks_by_path.setdefault(violation.path, []).append(mark)
    is_substitute = call.guard_outcome in _SUBSTITUTING
    is_marked = payloads.received is ABSENT and not is_substitute
    alike = calls_alike(call, limit=ALIKE_LIMIT + 1)
    definitions = definitions_of_call(call.tool_name, call.started_at, payloads.mcp_server)
    declared = hints_of_tool(call.tool_name)
    served = hints_in_force(definitions)
    events = [_log_event(kind, event, with_payloads) for kind, event in stored.items()]
    return CallPanel(
        call=call,
        is_withheld=not with_payloads,
        reason=reasons.of_call(call, None, now) if call.state == "failed" else "",
        guard_outcome=reasons.GUARD_OUTCOMES.get(call.guard_outcome or "", ""),
        is_open=call.state in OPEN,
        is_overdue=reasons.is_overdue(call, now),
        running_us=(now - call.started_at) // timedelta(microseconds=1),
        is_registered=declared is not None,
        hints=(declared or []) if served is None else served,
        violations=[
            Broken(violation, _inline(mark.received), _inline(mark.coerced))
            for violation, mark in zip(violations, marks, strict=True)
        ],
        error=_error_facts(call, payloads.error) if call.state == "failed" else [],
        error_message=_text(payloads.error.get("message")) or call.error_message or "",
        error_more=_tree(payloads.error_more),
        args=_tree(payloads.args),
        received=_tree(payloads.received, marks_by_path),
        output=_tree(payloads.data, marks_by_path if is_marked else None),
        is_output_substitute=is_substitute,
        content=_tree(payloads.content),
        is_output_from_text=payloads.is_from_text,
        meta=_tree(payloads.meta),
        tokens=reasons.tokens(call.prompt_tokens, call.completion_tokens),
        context=[*_context(call), *payloads.context],
        alike=alike[:ALIKE_LIMIT],
        alike_is_cut=len(alike) > ALIKE_LIMIT,
        alike_query=f"call:{quoted(call.call_id)}",
        beside=beside or failures_beside(call),
        events=events,
        log_error=log_error,
        clock_note=_clock_note(call, stored),
        holds=holds_of_call(
            holds_in_force(current_tenant_id()),
            call.trace_id,
            call.case_id,
            call.tool_name,
            call.started_at,
        ),
        erased=list(
            {event.erased.entry_index: event.erased for event in events if event.erased}.values()
        ),
        is_archived=is_archived,
        is_from_archive=is_archived and from_archive and not archive_problem,
        archive_problem=archive_problem,
        definitions=definitions,
        decisions=[
            one if with_payloads else replace(one, decision=replace(one.decision, reason=None))
            for one in decisions
        ],
        shown=definitions_with_digest(
            call.tool_name, {one.decision.definition_digest for one in decisions}
        ),
    )


def _stored(call: CallDetail) -> tuple[dict[Kind, StoredEvent], str]:
    """Return the events of a call in the log, or why they cannot be read."""
    try:
        return read_call_events(call), ""
    except LogPayloadError as error:
        return {}, str(error)


def _mark(violation: CallViolation, reported: list[Any], place: int) -> Mark:
    """Return the mark of a violation, with the values in the guard's report if it has them."""
    value = reported[place] if place < len(reported) else None
    if not isinstance(value, dict) or value.get("path") != violation.path:
        value = {}
    expected = f"expected {violation.expected}" if violation.expected else ""
    received = f"received {violation.received}" if violation.received else ""
    return Mark(
        code=violation.code,
        note=", ".join(filter(None, (expected, received))),
        is_warning=violation.severity == "warning",
        received=member(value, "received_value"),
        coerced=member(value, "coerced_value"),
    )


def _inline(value: Any) -> SafeString:
    return SafeString("") if value is ABSENT else inline(value)


def _tree(value: Any, marks: dict[str, list[Mark]] | None = None) -> Tree | None:
    return None if value is ABSENT else draw(value, marks)


def _error_facts(call: CallDetail, failure: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [
        ("Code", _text(failure.get("code")) or call.error_code or ""),
        ("Upstream status", str(call.upstream_status or "")),
        (
            "Retry after",
            f"{count(call.retry_after_ms)}{NBSP}ms" if call.retry_after_ms is not None else "",
        ),
        ("Endpoint", _text(failure.get("endpoint"))),
        ("Attempt", str(call.attempt or "")),
    ]
    return [(name, value) for name, value in facts if value]


def _clock_note(call: CallDetail, stored: dict[Kind, StoredEvent]) -> str:
    """Return what is wrong with the producer's clock, judged by our clock and by the call."""
    times: dict[Kind, datetime | None] = {"start": call.started_at, "end": call.ended_at}
    ahead = max(
        (
            event_time - stored[kind].received_at
            for kind, event_time in times.items()
            if event_time and kind in stored
        ),
        default=timedelta(),
    )
    notes = []
    if ahead > CLOCKS_AGREE:
        by = duration(ahead // timedelta(microseconds=1))
        ours = "the producer's clock is ahead of the server's"
        notes.append(f"It was received {by} before its reported time: {ours}.")
    if call.ended_at is not None and call.ended_at < call.started_at:
        by = duration((call.started_at - call.ended_at) // timedelta(microseconds=1))
        notes.append(f"It ended {by} before it started: the producer's clock was set back.")
    return " ".join(notes)


def _context(call: CallDetail) -> list[ContextValue]:
    budget = count(call.budget_tokens) if call.budget_tokens is not None else None
    named = [
        ("Run", call.run_id, "run"),
        ("Ingestion run", call.ingestion_run_id, "ingestion"),
        ("Turn", call.turn_id, ""),
        ("Workflow", call.workflow_id, "workflow"),
        ("Case", call.case_id, "case"),
        ("Collection", call.collection_id, "collection"),
        ("Document", call.document_id, "document"),
        ("Document version", call.document_version_id, ""),
        ("Tool call id", call.tool_call_id, ""),
        ("Idempotency key", call.idempotency_key, ""),
        ("Token budget", budget, ""),
        ("Locale", call.locale, ""),
        ("Safety mode", call.safety_mode, ""),
        ("Producer", call.producer_id, "producer"),
    ]
    return [
        ContextValue(name, value, f"{prefix}:{quoted(value)}" if prefix else "")
        for name, value, prefix in named
        if value
    ]


def _log_event(kind: Kind, event: StoredEvent, with_text: bool) -> LogEvent:
    text = (event.raw or b"").decode("utf-8", errors="replace") if with_text else ""
    return LogEvent(
        kind=kind,
        ledger_index=event.ledger_index,
        received_at=event.received_at,
        size=len(event.raw or b""),
        text=text[:RAW_LENGTH],
        is_cut=len(text) > RAW_LENGTH,
        is_erased=event.raw is None,
        erased=erased_of(event.ledger_index) if event.raw is None else None,
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str | Number) else ""
