"""Compares the arguments of a query's calls with those of the tool's other calls, in the worker.

A comparison is a job in slices (`tenants.slices`). Its first step chooses calls of both sides,
evenly over the range; the next ones read their arguments from the log; the last one applies the
rules of `audit.apart`. It stores names of arguments, types, counts, digests of values and ids of
calls, and no value: pages read that from a call that has it (docs/adr/0011).
"""

import time
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Final
from uuid import UUID

import msgspec
from django.utils import timezone

from audit.apart.arguments import FoundArgument, Observed, Read, Waiting, find, loads, seen_in
from audit.apart.finding import tool_of_arguments, within
from audit.events.outputs import Value, read_args
from audit.log.payload import read_events
from audit.models import ArgumentComparison
from audit.queries.apart import read_places
from audit.queries.call_query import ANYBODY, InvalidQueryError, Query, parse_pinned
from audit.queries.time_range import TimeRange
from tenants import slices
from tenants.models import new_id
from tenants.scope import current_tenant_id, tenant_scope
from tenants.slices import SLICE_SECONDS, UNDER_WAY, JobState, end_jobs

SIDE_CALLS: Final = 3_000
"""The most calls of each side whose arguments are read."""
KEPT_FOR: Final = timedelta(days=1)
CHUNK: Final = 250
"""Calls read between two looks at the clock."""
_INVALID: Final = "The query is no longer valid."


def start_comparison(query: Query, of: TimeRange, now: datetime, by: str) -> ArgumentComparison:
    """Record a comparison for the worker. The caller defers the task. Needs the scope.

    Raises InvalidQueryError, CannotCompareError.
    """
    tool = tool_of_arguments(query)
    return ArgumentComparison.objects.create(
        tenant_id=current_tenant_id(),
        id=new_id(),
        created_at=now,
        created_by=by,
        query=query.pinned(now),
        tool_name=tool,
        since=of.start,
        until=of.end,
        state=JobState.WAITING,
        call_count=0,
        read_count=0,
        erased_count=0,
        tested_count=0,
        observed="",
        differences="[]",
        problem="",
    )


def find_comparison(pk: UUID) -> ArgumentComparison | None:
    """A comparison of the scope's tenant, or None."""
    return ArgumentComparison.objects.for_tenant(current_tenant_id()).filter(id=pk).first()


def cancel_comparison(pk: UUID, now: datetime) -> bool:
    """Ask the worker to stop. False if there is nothing to stop."""
    comparisons = ArgumentComparison.objects.for_tenant(current_tenant_id()).filter(id=pk)
    return end_jobs(comparisons, JobState.CANCELLED, now, observed="")


def fail_comparison(tenant_id: UUID, pk: UUID, problem: str) -> None:
    """Record that a comparison failed, and why."""
    with tenant_scope(tenant_id):
        comparisons = ArgumentComparison.objects.for_tenant(tenant_id).filter(id=pk)
        end_jobs(comparisons, JobState.FAILED, timezone.now(), problem=problem, observed="")


def forget_old(now: datetime) -> None:
    """Delete comparisons older than `KEPT_FOR`, in any state. Needs the scope."""
    comparisons = ArgumentComparison.objects.for_tenant(current_tenant_id())
    comparisons.filter(created_at__lt=now - KEPT_FOR).delete()


def differences_of(comparison: ArgumentComparison) -> list[FoundArgument]:
    """What a finished comparison found."""
    return msgspec.json.decode(comparison.differences, type=list[FoundArgument])


def run_slice(tenant_id: UUID, pk: UUID, *, seconds: float = SLICE_SECONDS) -> bool:
    """Continue a comparison for about `seconds`. True if there is more to do.

    Raises LogPayloadError.
    """
    return slices.run_slice(partial(_run_step, tenant_id, pk), seconds)


def _run_step(tenant_id: UUID, pk: UUID, deadline: float) -> bool:
    """Run one step in one transaction. False when the comparison has ended."""
    with tenant_scope(tenant_id):
        comparisons = ArgumentComparison.objects.for_tenant(tenant_id)
        one = comparisons.filter(id=pk).select_for_update().first()
        if one is None or one.state not in UNDER_WAY:
            return False
        if one.state == JobState.WAITING:
            one.state = JobState.RUNNING
            try:
                observed = _chosen(one)
            except InvalidQueryError:  # stored by an earlier version
                one.state, one.problem, observed = JobState.FAILED, _INVALID, Observed()
            one.call_count = len(observed.waiting)
        else:
            observed = loads(one.observed)
            _read(one, observed, deadline)
        one.observed = observed.dumps()
        if one.state == JobState.RUNNING and not observed.waiting:
            differences, one.tested_count = find(observed.read)
            one.differences = msgspec.json.encode(differences).decode()
            one.state = JobState.DONE
        if one.state != JobState.RUNNING:
            one.observed, one.finished_at = "", timezone.now()
        one.save()
        return one.state == JobState.RUNNING


def _chosen(one: ArgumentComparison) -> Observed:
    """The calls of both sides whose arguments are to be read, by their place in the log."""
    of = TimeRange(one.since, one.until, timezone.get_current_timezone())
    wanted = within(parse_pinned(one.query, ANYBODY).wanted, of, one.created_at)
    places = read_places(wanted, one.tool_name, of, one.created_at, SIDE_CALLS)
    traces: dict[str, int] = {}
    numbers = count()
    waiting = []
    for is_selected, trace_id, day, invocation_id, batch_id, position in places:
        if trace_id not in traces:
            traces[trace_id] = next(numbers)
        waiting.append(
            Waiting(
                is_selected,
                traces[trace_id],
                f"{day}",
                f"{invocation_id}",
                f"{batch_id}",
                position,
            )
        )
    # Calls of one batch side by side, as a batch is unpacked whole.
    return Observed(sorted(waiting, key=lambda call: (call.batch_id, call.position)))


def _read(one: ArgumentComparison, observed: Observed, deadline: float) -> None:
    """Read arguments until the deadline, those of a chunk at least."""
    while observed.waiting:
        some = observed.waiting[-CHUNK:]
        del observed.waiting[-CHUNK:]
        places = {(UUID(call.batch_id), call.position): call for call in some}
        events = read_events(one.tenant_id, places)
        for place, call in places.items():
            event = events.get(place)
            value = read_args(None if event is None else event.raw)
            one.read_count += 1
            if not isinstance(value, Value):
                one.erased_count += value == "erased"
                continue
            seen = seen_in(value.value, one.id.hex)
            observed.read.append(
                Read(call.is_selected, call.trace, call.day, call.invocation_id, seen)
            )
        if time.monotonic() >= deadline:
            return
