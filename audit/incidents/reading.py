"""Reads what happened in a trace, and around it, as items of a timeline. Needs the scope."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Q

from audit.incidents.timeline import Item
from audit.models import About, Alert, LegalHold, Note
from audit.queries.alerts import AlertFilter, alert_page
from audit.queries.call_filter import Text
from audit.queries.call_query import parse
from audit.queries.time_range import TimeRange
from audit.reports.queries import registry_changes
from audit.sql.run import rows, rows_prepared
from config.instants import iso_exact
from tenants.scope import current_tenant_id

ALERTS_LATE: Final = timedelta(hours=1)
"""How long after the last call an alert that fired is still listed: rules have windows."""
_LISTED: Final = 500
"""Of alerts, versions and notes, each: the newest ones."""


class TooManyCallsError(Exception):
    """A trace has more calls or decisions than were to be read."""


class _Call(NamedTuple):
    """A row of `incident_calls`."""

    started_on: date
    invocation_id: UUID
    started_at: datetime
    ended_at: datetime | None
    duration_us: int | None
    state: str
    tool_name: str
    tool_version: str
    agent: str | None
    agent_version: str | None
    model: str | None
    error_type: str
    error_code: str | None
    violation_count: int


@dataclass(frozen=True, slots=True)
class TraceRead:
    """What happened in a trace. `start` is that of the first item, `end` just behind the last."""

    items: list[Item]
    calls: int
    start: datetime
    end: datetime

    def summary(self, trace_id: str) -> dict[str, Any]:
        """What the document says of the trace as a whole."""
        ends = [item for item in self.items if item["kind"] == "ended"]
        return {
            "trace_id": trace_id,
            "from": iso_exact(self.start),
            "to": iso_exact(self.end),
            "calls": self.calls,
            "failed": sum(item["state"] == "failed" for item in ends),
            "violations": sum(item["kind"] == "violated" for item in self.items),
            "decisions": sum(item["kind"] == "decided" for item in self.items),
        }


def read_trace(trace_id: str, calls_max: int) -> TraceRead | None:
    """What happened in a trace; None if nothing did. Four statements.

    Raises TooManyCallsError if it has more than `calls_max` calls or decisions.
    """
    parameters: dict[str, Any] = {"trace_id": trace_id, "limit": calls_max + 1}
    calls = [_Call(*row) for row in rows_prepared("incident_calls", parameters)]
    decisions = rows_prepared("incident_decisions", parameters)
    if max(len(calls), len(decisions)) > calls_max:
        raise TooManyCallsError
    if not (calls or decisions):
        return None
    items = [item for call in calls for item in _of_call(trace_id, call)]
    items += [_decision(trace_id, *row) for row in decisions]
    items += _violations(trace_id, calls)
    instants = [each for call in calls for each in (call.started_at, call.ended_at) if each]
    instants += [row[0] for row in decisions]
    ids = {call.invocation_id for call in calls} | {row[2] for row in decisions}
    items += _notes(trace_id, ids)
    return TraceRead(items, len(calls), min(instants), max(instants) + timedelta(microseconds=1))


def around(of: TimeRange, tools: Collection[str], hold_ids: Sequence[UUID]) -> list[Item]:
    """What happened around the traces: versions of their tools, alerts, and the holds."""
    published, *_ = registry_changes(of, limit=_LISTED)
    items: list[Item] = [
        {
            "at": iso_exact(one.at),
            "kind": "published",
            "tool_name": one.tool_name,
            "number": one.number,
            "digest": one.digest,
            "by": one.by or one.by_key,
        }
        for one in published
        if one.tool_name in tools
    ]
    fired = alert_page(AlertFilter(since=of.start, until=of.end + ALERTS_LATE), size=_LISTED)
    for alert in fired.alerts:
        if _is_about(alert, tools):
            items += _of_alert(alert)
    holds = LegalHold.objects.for_tenant(current_tenant_id()).filter(id__in=hold_ids)
    items += [
        {
            "at": iso_exact(hold.set_at),
            "kind": "held",
            "hold": str(hold.id),
            "name": hold.name,
            "trace_id": hold.trace_id,
            "by": hold.set_by,
        }
        for hold in holds
    ]
    return items


def _of_call(trace_id: str, call: _Call) -> Iterator[Item]:
    named = {
        "trace_id": trace_id,
        "invocation_id": str(call.invocation_id),
        "tool_name": call.tool_name,
        "tool_version": call.tool_version,
    }
    yield {
        "at": iso_exact(call.started_at),
        "kind": "started",
        **named,
        "agent": call.agent,
        "agent_version": call.agent_version,
        "model": call.model,
    }
    if call.ended_at is not None:
        yield {
            "at": iso_exact(call.ended_at),
            "kind": "ended",
            **named,
            "state": call.state,
            "duration_ms": None if call.duration_us is None else call.duration_us / 1000,
            "error_type": call.error_type or None,
            "error_code": call.error_code,
            "violations": call.violation_count,
        }


def _decision(
    trace_id: str,
    decided_at: datetime,
    decision: str,
    invocation_id: UUID,
    tool_name: str,
    tool_version: str,
    by_kind: str | None,
    by_id: str | None,
    by_name: str | None,
    requested_by: str | None,
) -> Item:
    return {
        "at": iso_exact(decided_at),
        "kind": "decided",
        "trace_id": trace_id,
        "invocation_id": str(invocation_id),
        "tool_name": tool_name,
        "tool_version": tool_version,
        "decision": decision,
        "by_kind": by_kind,
        "by": by_name or by_id or by_kind,
        "requested_by": requested_by,
    }


def _violations(trace_id: str, calls: Sequence[_Call]) -> Iterator[Item]:
    broken = {call.invocation_id: call for call in calls if call.violation_count}
    if not broken:
        return
    parameters = {
        "days": sorted({call.started_on for call in broken.values()}),
        "invocation_ids": list(broken),
    }
    for invocation_id, tool_name, tool_version, *of in rows("incident_violations", parameters):
        call = broken[invocation_id]
        path, code, severity, strategy, outcome, found_by = of
        yield {
            "at": iso_exact(call.ended_at or call.started_at),
            "kind": "violated",
            "trace_id": trace_id,
            "invocation_id": str(invocation_id),
            "tool_name": tool_name,
            "tool_version": tool_version,
            "path": path,
            "code": code,
            "severity": severity,
            "strategy": strategy,
            "outcome": outcome,
            "found_by": found_by,
        }


def _notes(trace_id: str, invocation_ids: Collection[UUID]) -> Iterator[Item]:
    """The notes about a trace and its calls. One query."""
    notes = Note.objects.for_tenant(current_tenant_id()).filter(
        Q(about=About.TRACE, trace_id=trace_id)
        | Q(about=About.CALL, invocation_id__in=list(invocation_ids))
    )
    for note in notes.order_by("-id")[:_LISTED]:
        yield {
            "at": iso_exact(note.created_at),
            "kind": "noted",
            "trace_id": trace_id,
            "invocation_id": note.invocation_id and str(note.invocation_id),
            "note": str(note.id),
            "about": note.about,
            "label": note.label,
            "state": note.state,
            "text": note.text,
            "by": note.created_by,
        }


def _is_about(alert: Alert, tools: Collection[str]) -> bool:
    """Whether an alert may be about one of the tools: its query names one of them, or no tool."""
    tool = parse(alert.query).readable.tool
    return not isinstance(tool, Text) or any(
        name.startswith(tool.value) if tool.is_prefix else name == tool.value for name in tools
    )


def _of_alert(alert: Alert) -> Iterator[Item]:
    named = {"alert": str(alert.id), "rule": alert.rule_name}
    yield {
        "at": iso_exact(alert.held_from),
        "kind": "fired",
        **named,
        "title": alert.title,
        "severity": alert.severity,
        "query": alert.query,
    }
    for kind, at, by in (
        ("acknowledged", alert.acknowledged_at, alert.acknowledged_by),
        ("resolved", alert.resolved_at, alert.resolved_by),
    ):
        if at is not None:
            yield {"at": iso_exact(at), "kind": kind, **named, "by": by or "Tooltrail"}
