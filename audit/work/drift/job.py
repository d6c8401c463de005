"""Analyzes stored calls for drift: in the worker, or at once if there are few.

An analysis is a job in slices (`tenants.slices`). It stores shapes: names, types, counts and the
ids of a few calls, and nothing of the payloads (docs/adr/0011).
"""

import time
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache, partial
from uuid import UUID

from django.utils import timezone

from audit.events.outputs import Side, Skipped, Value, read_args, read_output
from audit.log.payload import read_events
from audit.models import DriftAnalysis
from audit.queries.among import ALL, Among
from audit.queries.call_query import parse
from audit.queries.cursor import stored_cursor
from audit.queries.replays import ReplayedCall, ReplayRange
from audit.queries.time_range import TimeRange
from audit.work.call_walk import places, raw_of, together
from audit.work.drift.declared import Declared
from audit.work.drift.shape import (
    SIDES,
    Fold,
    dumps,
    loads,
)
from tenants import slices
from tenants.models import new_id
from tenants.scope import current_tenant_id, tenant_scope
from tenants.slices import SLICE_SECONDS, UNDER_WAY, JobState, end_jobs, end_older
from tools_registry.models import Tool, ToolVersion
from tools_registry.schema_diff.reading import UndecidedError

KEPT = 5
"""Analyses kept per tool."""
AT_ONCE = 500
"""Up to this many calls are analyzed while the user waits."""
AT_ONCE_SECONDS = 2.0
CHUNK = 2_000


def start_analysis(
    tool: Tool, of: TimeRange, limit: int, user_name: str, query: str = ""
) -> DriftAnalysis:
    """Record an analysis for the worker. The caller defers the task. Needs the scope.

    `query` has no times and no terms on payloads; free text is not searched in messages. A running
    analysis of the same tool is cancelled.
    """
    tenant_id = current_tenant_id()
    analyses = DriftAnalysis.objects.for_tenant(tenant_id).filter(tool_id=tool.id)
    now = timezone.now()
    end_older(analyses, KEPT, now)
    calls = _calls(tool.name, of.start, of.end, query, now)
    return DriftAnalysis.objects.create(
        tenant_id=tenant_id,
        id=new_id(),
        tool_id=tool.id,
        tool_name=tool.name,
        created_at=now,
        created_by=user_name,
        base_number=tool.current_number or None,
        since=calls.since,
        until=calls.until,
        query=query,
        call_limit=limit,
        state=JobState.WAITING,
        call_count=calls.count(limit),
        read_count=0,
        shape="",
        problem="",
    )


def calls_of(analysis: DriftAnalysis) -> ReplayRange:
    """The calls that an analysis reads. What is overdue is so when it was created."""
    of = (analysis.tool_name, analysis.since, analysis.until)
    return _calls(*of, analysis.query, analysis.created_at)


def _calls(
    tool_name: str, since: datetime, until: datetime, query: str, now: datetime
) -> ReplayRange:
    among = Among.those_of(parse(query).wanted, now) if query else ALL
    return ReplayRange(tool_name, since, until, among)


def last_analysis(tool: Tool) -> DriftAnalysis | None:
    """The newest analysis of a tool that read calls or was not cancelled. One query."""
    analyses = DriftAnalysis.objects.for_tenant(tool.tenant_id).filter(tool_id=tool.id)
    return analyses.exclude(state=JobState.CANCELLED, read_count=0).order_by("-id").first()


def cancel_analysis(tool_id: UUID, pk: UUID, now: datetime) -> bool:
    """Ask the worker to stop. Results so far stay. False if there is nothing to stop."""
    analyses = DriftAnalysis.objects.for_tenant(current_tenant_id())
    return end_jobs(analyses.filter(tool_id=tool_id, id=pk), JobState.CANCELLED, now)


def fail_analysis(tenant_id: UUID, pk: UUID, problem: str) -> None:
    """Record that an analysis failed, and why. Results so far stay."""
    with tenant_scope(tenant_id):
        analyses = DriftAnalysis.objects.for_tenant(tenant_id).filter(id=pk)
        end_jobs(analyses, JobState.FAILED, timezone.now(), problem=problem)


def run_slice(tenant_id: UUID, pk: UUID, *, seconds: float = SLICE_SECONDS) -> bool:
    """Continue an analysis for about `seconds`. True if there is more to do.

    Raises LogPayloadError.
    """
    return slices.run_slice(partial(_run_chunk, tenant_id, pk), seconds)


def declared_by(analysis: DriftAnalysis) -> dict[Side, Declared | str | None]:
    """The schemas of the version that the analysis compares with, by side. One query.

    None if there is no schema. If a schema cannot be read: a text that says why.
    """
    versions = ToolVersion.objects.filter(tenant_id=analysis.tenant_id, tool_id=analysis.tool_id)
    version = versions.filter(number=analysis.base_number).first() if analysis.base_number else None
    if version is None:
        return dict.fromkeys(SIDES)
    return {
        "args": _declared(version.id, "args"),
        "output": None if version.output_schema is None else _declared(version.id, "output"),
    }


@lru_cache(maxsize=16)
def _declared(version_id: UUID, side: Side) -> Declared | str:
    """One schema of a version. Cached: versions never change."""
    version = ToolVersion.objects.get(tenant_id=current_tenant_id(), id=version_id)
    schema = version.input_schema if side == "args" else version.output_schema
    try:
        return Declared(schema)
    except (UndecidedError, RecursionError) as error:
        return str(error)[:300]


def _run_chunk(tenant_id: UUID, pk: UUID, deadline: float) -> bool:
    """Run one chunk in one transaction. False when the analysis has ended."""
    with tenant_scope(tenant_id):
        analyses = DriftAnalysis.objects.for_tenant(tenant_id)
        analysis = analyses.filter(id=pk).select_for_update().first()
        if analysis is None or analysis.state not in UNDER_WAY:
            return False
        calls = calls_of(analysis)
        cursor = stored_cursor(analysis.cursor_at, analysis.cursor_id)
        size = min(CHUNK, analysis.call_limit - analysis.read_count)
        chunk = calls.before(cursor, size) if size else []
        read = _fold(analysis, chunk, deadline)
        if read:
            last = chunk[read - 1]
            analysis.cursor_at, analysis.cursor_id = last.started_at, last.invocation_id
        analysis.read_count += read
        analysis.state = JobState.RUNNING
        if read == len(chunk) < CHUNK or analysis.read_count >= analysis.call_limit:
            analysis.state = JobState.DONE
            analysis.finished_at = timezone.now()
        analysis.save()
        return analysis.state == JobState.RUNNING


def _fold(analysis: DriftAnalysis, calls: Sequence[ReplayedCall], deadline: float) -> int:
    """Fold in calls until the deadline, at least a few. Returns how many. Sets `analysis.shape`."""
    observed, declared = loads(analysis.shape), declared_by(analysis)
    folds = {
        side: Fold(one if isinstance(one, Declared) else None, observed[side].shape)
        for side, one in declared.items()
    }
    read = 0
    for some in together(calls):
        events = read_events(analysis.tenant_id, [place for call in some for place in places(call)])
        for call in some:
            start = raw_of(events.get(call.start)) if call.start else b"{}"
            values: dict[Side, Value | Skipped] = {
                "args": read_args(start),
                "output": read_output(raw_of(events.get(call.end))),
            }
            for side, value in values.items():
                if isinstance(value, Value) and not value.is_missing:
                    folds[side].add(value.value, call.started_on, call.invocation_id)
                else:
                    why = "unstructured" if isinstance(value, Value) else value
                    skipped = observed[side].skipped
                    skipped[why] = skipped.get(why, 0) + 1
            read += 1
        if time.monotonic() >= deadline:
            break
    analysis.shape = dumps(observed)
    return read
