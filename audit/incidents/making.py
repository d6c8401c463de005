"""Makes incidents: sets a hold on each trace of a query's calls, and then their timeline.

An incident is a job in slices (`tenants.slices`). The request that begins it sets the holds of the
first traces, so that they are in force when it is answered. The worker lists the other calls, reads
the traces one by one, and composes the timeline. The digests of its two forms become an action; the
evidence bundle proves them by its entry.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django.template.loader import render_to_string
from django.utils import timezone

from audit.incidents.reading import TooManyCallsError, around, read_trace
from audit.incidents.timeline import Head, document, words
from audit.models import Incident, LegalHold
from audit.queries.call_list import call_chunk
from audit.queries.call_query import InvalidQueryError, Query, Reader, parse_pinned
from audit.queries.cursor import NEWEST, Cursor, stored_cursor
from audit.queries.time_range import TimeRange
from audit.retention.holds import Covered, holds_in_force, set_hold
from audit.retention.retention import limits
from config.instants import iso_exact
from tenants import slices
from tenants.actions import THE_SERVER, Actor, name_of, record_action
from tenants.models import Tenant, TenantSetting, new_id
from tenants.scope import current_tenant_id, tenant_scope
from tenants.slices import SLICE_SECONDS, UNDER_WAY, JobState, percent

TRACES_MAX: Final = 50
"""Each is a legal hold, which retention and erasures compare with each call."""
CALLS_MAX: Final = 10_000
"""Of all traces: their timeline is one document."""
BEGUN, TIMELINE = "incident.begin", "incident.timeline"
_AT_ONCE: Final = 2_000
_NO_CALLS: Final = "No call matches."
_MANY_TRACES: Final = f"The calls are of more than {TRACES_MAX} traces. Narrow the query."
_MANY_CALLS: Final = f"The traces have more than {CALLS_MAX:,} calls. Narrow the query."


class CannotBeginError(Exception):
    """There is no incident to make of these calls. The message says why."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an auditor asks for. The query is without terms on payloads."""

    title: str
    reason: str
    query: Query


def begin_incident(tenant: Tenant, actor: Actor, wanted: Wanted, now: datetime) -> Incident:
    """Set the holds of the first traces, and put the incident on record for the worker.

    The caller defers the task. Needs the scope. Raises CannotBeginError, InvalidQueryError.
    """
    trace_ids, cursor = _traces(wanted.query, now, NEWEST)
    if len(trace_ids) > TRACES_MAX:
        raise CannotBeginError(_MANY_TRACES)
    if not trace_ids and cursor is None:
        raise CannotBeginError(_NO_CALLS)
    incident = Incident(
        tenant_id=tenant.pk,
        id=new_id(),
        title=wanted.title,
        reason=wanted.reason,
        query=wanted.query.pinned(now),
        created_at=now,
        created_by=name_of(actor),
        state=JobState.WAITING,
    )
    _continue_at(incident, cursor)
    _hold(tenant, actor, incident, trace_ids, now)
    incident.save(force_insert=True)
    # Title, reason and traces are in the entries of the holds.
    record_action(tenant, actor, BEGUN, str(incident.id), rows=[incident])
    return incident


def all_incidents() -> list[Incident]:
    """The tenant's incidents, the newest first, without their timelines. One query."""
    incidents = Incident.objects.for_tenant(current_tenant_id())
    return list(incidents.defer("timeline", "page").order_by("-id"))


def find_incident(pk: UUID, *, for_update: bool = False) -> Incident | None:
    """The tenant's incident with this id, or None."""
    incidents = Incident.objects.for_tenant(current_tenant_id()).filter(id=pk)
    return (incidents.select_for_update() if for_update else incidents).first()


def run_slice(tenant_id: UUID, pk: UUID, *, seconds: float = SLICE_SECONDS) -> bool:
    """Continue to make an incident for about `seconds`. True if there is more to do."""
    return slices.run_slice(partial(_run_step, tenant_id, pk), seconds)


def done_percent(incident: Incident) -> int:
    """Progress of an incident that is under way: the traces that were read."""
    return percent(incident.read_count, len(incident.trace_ids) + 1)


def forget_old(tenant_id: UUID, now: datetime) -> None:
    """Delete incidents that are older than the tenant's payloads may be, and not held any more.

    Needs the scope.
    """
    setting = TenantSetting.objects.filter(tenant_id=tenant_id).first()
    limit = None if setting is None else limits(setting, now).payloads
    if limit is None:
        return
    stored = Incident.objects.for_tenant(tenant_id).filter(created_at__lt=limit)
    old = list(stored.exclude(state__in=UNDER_WAY).only("tenant_id", "id", "hold_ids"))
    if not old:
        return
    in_force = {hold.id for hold in holds_in_force(tenant_id)}
    over = [one for one in old if in_force.isdisjoint(one.hold_ids)]
    if over:
        stored.filter(id__in=[one.id for one in over]).delete()
        record_action(
            Tenant(id=tenant_id),
            THE_SERVER,
            "incident.forget",
            f"{len(over)} old incidents",
            rows=over,
        )


def _run_step(tenant_id: UUID, pk: UUID, _: float) -> bool:
    with tenant_scope(tenant_id):
        incident = find_incident(pk, for_update=True)
        if incident is None or incident.state not in UNDER_WAY:
            return False
        incident.state = JobState.RUNNING
        tenant, now = Tenant.objects.get(pk=tenant_id), timezone.now()
        if incident.cursor_at is not None:
            _list_more(tenant, incident, now)
        elif incident.read_count < len(incident.trace_ids):
            _read_next(incident)
        else:
            _compose(incident, now)
        incident.save()
        if incident.state == JobState.DONE:
            record_action(
                tenant,
                THE_SERVER,
                TIMELINE,
                str(incident.id),
                rows=[incident],
                sha256=incident.sha256,
                page_sha256=incident.page_sha256,
            )
        return incident.state == JobState.RUNNING


def _traces(
    query: Query, now: datetime, before: Cursor[UUID]
) -> tuple[list[str], Cursor[UUID] | None]:
    """The traces of the next calls of a query, and where to continue; None at the end."""
    calls, cursor = call_chunk(query.wanted, now=now, before=before, size=_AT_ONCE, with_unrun=True)
    return list(dict.fromkeys(call.trace_id for call in calls)), cursor


def _list_more(tenant: Tenant, incident: Incident, now: datetime) -> None:
    """Hold the traces of the next calls."""
    try:
        query = parse_pinned(incident.query, Reader())
        before = stored_cursor(incident.cursor_at, incident.cursor_id)
        traces, cursor = _traces(query, incident.created_at, before)
    except InvalidQueryError as error:  # stored by an earlier version
        _fail(incident, f"The query cannot be read any more. {error}", now)
        return
    new = [each for each in traces if each not in incident.trace_ids]
    _continue_at(incident, cursor)
    if len(incident.trace_ids) + len(new) > TRACES_MAX:
        _fail(incident, _MANY_TRACES, now)
    else:
        _hold(tenant, incident.created_by, incident, new, now)
        if cursor is None and not incident.trace_ids:
            _fail(incident, _NO_CALLS, now)


def _continue_at(incident: Incident, cursor: Cursor[UUID] | None) -> None:
    incident.cursor_at = None if cursor is None else cursor.at
    incident.cursor_id = None if cursor is None else cursor.id


def _hold(
    tenant: Tenant, actor: Actor, incident: Incident, trace_ids: Iterable[str], now: datetime
) -> None:
    for trace_id in trace_ids:
        covered = Covered(trace_id=trace_id)
        hold: LegalHold = set_hold(tenant, actor, incident.title, incident.reason, covered, now)
        incident.trace_ids.append(trace_id)
        incident.hold_ids.append(hold.id)


def _read_next(incident: Incident) -> None:
    """Read the next trace: its items and, first, its summary, a line each."""
    trace_id = incident.trace_ids[incident.read_count]
    try:
        read = read_trace(trace_id, CALLS_MAX - incident.call_count)
    except TooManyCallsError:
        _fail(incident, _MANY_CALLS, timezone.now())
        return
    incident.read_count += 1
    if read is None:
        return
    lines = [{"trace": read.summary(trace_id)}, *({"item": item} for item in read.items)]
    incident.timeline += "".join(f"{json.dumps(line)}\n" for line in lines)
    incident.call_count += read.calls
    incident.since = min(incident.since or read.start, read.start)
    incident.until = max(incident.until or read.end, read.end)


def _compose(incident: Incident, now: datetime) -> None:
    """Make the document and the page of what was read, and of what happened around it."""
    if incident.since is None or incident.until is None:
        _fail(incident, _NO_CALLS, now)
        return
    lines = [json.loads(line) for line in incident.timeline.splitlines()]
    items = [line["item"] for line in lines if "item" in line]
    tools = {item["tool_name"] for item in items if "tool_name" in item}
    of = TimeRange(incident.since, incident.until, UTC)
    items += around(of, tools, incident.hold_ids)
    head = Head(
        id=str(incident.id),
        title=incident.title,
        reason=incident.reason,
        query=incident.query,
        made_at=iso_exact(now),
        made_by=incident.created_by,
        start=iso_exact(of.start),
        end=iso_exact(of.end),
    )
    data = document(head, [line["trace"] for line in lines if "trace" in line], items)
    page = page_of(json.loads(data))
    incident.timeline, incident.page = data.decode(), page
    incident.sha256 = sha256(data).hexdigest()
    incident.page_sha256 = sha256(page.encode()).hexdigest()
    incident.state, incident.finished_at = JobState.DONE, now


def page_of(timeline: dict[str, Any]) -> str:
    """The timeline as an HTML page of its own, which needs no server and runs no script."""
    with timezone.override(UTC):
        return render_to_string(
            "incidents/timeline.html", {"timeline": timeline, "rows": rows_of(timeline["items"])}
        )


def rows_of(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items with their words, for templates."""
    return [
        {"item": item, "at": datetime.fromisoformat(item["at"]), "words": words(item)}
        for item in items
    ]


def _fail(incident: Incident, problem: str, now: datetime) -> None:
    """End the job. Holds that were set stay in force: a person decides about them."""
    if incident.hold_ids:
        problem += f" {len(incident.hold_ids)} traces are held."
    incident.state, incident.problem, incident.finished_at = JobState.FAILED, problem, now
    incident.timeline = ""
