"""Erasure by filter, in the worker: starts, confirms, cancels and runs erasures.

An erasure is a job in slices (`tenants.slices`). Its dry run first finds and counts the calls.
When it is confirmed with a reason, it erases these calls and no others: the entries of its preview
and of its confirmation state them (`audit.ledger.erased_calls`).

1. `find`: walk the list of calls and note those that no hold covers. Only in dry runs.
2. `calls`: remove the events of the next calls from the log, and the index's quotes from them.
3. `log`: read the batches that may hold more of their events: sent twice, or repeated later with
   more members.
4. `archive`: destroy the keys of what is archived of the calls; a dry run counts what only the
   archive has (`audit.retention.archived_calls`).
5. `inbox`: rejected lines that mention the calls.

A chunk declares what it removes from the log by a ledger entry in the same transaction
(`audit.retention.event_removal`). Whatever a hold covers by then stays.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from audit.archive.storage import AWAY
from audit.ledger.actions import enter_all_actions
from audit.ledger.erased_calls import CONFIRMED, PREVIEWED, Stated, listed_calls
from audit.models import Erasure, ErasureCall, ErasureState
from audit.queries.call_filter import CallFilter
from audit.queries.call_list import call_chunk
from audit.queries.call_query import (
    InvalidQueryError,
    Query,
    Reader,
    parse_pinned,
)
from audit.queries.cursor import stored_cursor
from audit.queries.listed_call import ListedCall
from audit.retention.archived_calls import WAITS, count_archived, erase_archived
from audit.retention.erasure_chunk import Chunk, go_to_log
from audit.retention.erasure_targets import CallsAlteredError, Targets, previewed_calls
from audit.retention.floor import FloorError, erasure_refusal, locked_setting
from audit.retention.holds import (
    holds_in_force,
    holds_of_call,
    lock_record,
)
from audit.retention.proved_holds import HoldsAlteredError, holds_to_keep
from audit.sql import arrays
from audit.sql.run import run
from config.postgresql.aliases import KEEPER
from tenants import slices
from tenants.actions import THE_SERVER, Actor, account_of, name_of, record_action
from tenants.models import Tenant, new_id
from tenants.scope import current_tenant_id, tenant_scope
from tenants.slices import SLICE_SECONDS

_ADMIN = Reader(sees_payloads=True)
"""Only admins start an erasure. Its query is stored with UTC instants."""
CALLS_MAX = 100_000
DRY = (ErasureState.WAITING, ErasureState.COUNTING)
UNDER_WAY = (*DRY, ErasureState.CONFIRMED, ErasureState.ERASING)
_CALLS_AT_ONCE = 500


def start_erasure(tenant: Tenant, actor: Actor, query: Query, now: datetime) -> Erasure:
    """Record a dry run for the worker. The caller defers the task. Needs the scope."""
    lock_record(tenant.id)  # creates the settings row, which the keeper locks but cannot create
    erasure = Erasure.objects.create(
        tenant_id=tenant.id,
        id=new_id(),
        query=query.pinned(now),
        created_at=now,
        created_by=name_of(actor),
        state=ErasureState.WAITING,
        step="find",
        problem="",
        created_person=account_of(actor),
    )
    # Without the query: it may name a person, and the ledger cannot forget.
    record_action(tenant, actor, "erasure.count", str(erasure.id), rows=[erasure])
    return erasure


def confirm_erasure(tenant: Tenant, actor: Actor, pk: UUID, reason: str, now: datetime) -> bool:
    """Let the worker erase the counted calls. The caller defers the task.

    Returns False unless the erasure has counted calls and waits for confirmation. Raises
    CallsAlteredError if the calls are not those that were counted, and FloorError if another person
    must confirm it. Needs the scope.
    """
    erasure = find_erasure(pk)
    if erasure is None or erasure.state != ErasureState.COUNTED or not erasure.call_count:
        return False
    floor_days = locked_setting(tenant).floor_days
    if refusal := erasure_refusal(floor_days, erasure.created_person, actor):
        raise FloorError(refusal)
    stated = previewed_calls(erasure)
    counted = Erasure.objects.for_tenant(tenant.id).filter(
        id=pk, state=ErasureState.COUNTED, call_count__gt=0
    )
    confirmed = counted.update(
        state=ErasureState.CONFIRMED,
        step="calls",
        cursor_at=None,
        cursor_id=None,
        reason=reason,
        confirmed_at=now,
        confirmed_by=name_of(actor),
        finished_at=None,
    )
    if confirmed:
        record_action(
            tenant,
            actor,
            CONFIRMED,
            str(pk),
            rows=[erasure],
            reason=reason,
            **stated._asdict(),
        )
    return bool(confirmed)


def cancel_erasure(tenant: Tenant, actor: Actor, pk: UUID, now: datetime) -> bool:
    """Ask the worker to stop. What is erased already stays erased and on record.

    Returns False if there is nothing to stop.
    """
    stoppable = Erasure.objects.for_tenant(tenant.id).filter(
        id=pk, state__in=(*UNDER_WAY, ErasureState.COUNTED)
    )
    cancelled = stoppable.update(state=ErasureState.CANCELLED, finished_at=now)
    if cancelled:
        record_action(tenant, actor, "erasure.cancel", str(pk))
    return bool(cancelled)


def find_erasure(pk: UUID) -> Erasure | None:
    """The tenant's erasure with this id, or None."""
    return Erasure.objects.for_tenant(current_tenant_id()).filter(id=pk).first()


def run_slice(tenant_id: UUID, pk: UUID, *, seconds: float = SLICE_SECONDS) -> bool:
    """Continue an erasure for about `seconds`. True if there is more to do.

    Raises one of `AWAY` if it has to wait for the archive; the erasure says so, too.
    """
    enter_all_actions(tenant_id)  # what people did comes before what is done for it
    targets = Targets()

    def step(_: float) -> bool:
        with tenant_scope(tenant_id):
            erasures = Erasure.objects.for_tenant(tenant_id).filter(id=pk)
            erasure = erasures.select_for_update().first()
            if erasure is None or erasure.state not in UNDER_WAY:
                return False
            if erasure.step == "find":
                _find(erasure)
                erasure.save()
                return True
        if erasure.step == "archive":
            return _forget_archived(erasure, targets)
        with tenant_scope(tenant_id, using=KEEPER):
            return _run_chunk(tenant_id, pk, targets)

    return slices.run_slice(step, seconds)


def _stored(text: str) -> CallFilter:
    """The filter of a stored query. Raises InvalidQueryError, also if it matches all calls."""
    query = parse_pinned(text, _ADMIN)
    if not query.problems and not query.terms:
        raise InvalidQueryError("It would select all calls.")
    return query.wanted


def _find(erasure: Erasure) -> None:
    erasure.state = ErasureState.COUNTING
    begin = stored_cursor(erasure.cursor_at, erasure.cursor_id)
    try:
        wanted = _stored(erasure.query)
    except InvalidQueryError as error:  # stored by an earlier version
        erasure.state, erasure.finished_at = ErasureState.FAILED, timezone.now()
        erasure.problem = f"Invalid query. Nothing was searched. {error}"
        return
    calls, cursor = call_chunk(
        wanted, now=erasure.created_at, before=begin, size=_CALLS_AT_ONCE, with_unrun=True
    )
    holds = holds_in_force(erasure.tenant_id)
    free = [
        call
        for call in calls
        if not holds_of_call(holds, call.trace_id, call.case_id, call.tool_name, call.started_at)
    ]
    ErasureCall.objects.bulk_create(
        [
            ErasureCall(
                tenant_id=erasure.tenant_id,
                erasure_id=erasure.id,
                started_at=call.started_at,
                invocation_id=call.invocation_id,
            )
            for call in free
        ]
        + [
            ErasureCall(
                tenant_id=erasure.tenant_id,
                erasure_id=erasure.id,
                started_at=decided_at,
                invocation_id=invocation_id,
            )
            for decided_at, invocation_id in _decided_calls(free)
        ],
        ignore_conflicts=True,
    )
    erasure.call_count += len(free)
    erasure.held_count += len(calls) - len(free)
    if free:
        erasure.first_started_at = free[-1].started_at
    if erasure.call_count > CALLS_MAX:
        erasure.state, erasure.finished_at = ErasureState.FAILED, timezone.now()
        erasure.problem = f"More than {CALLS_MAX:,} calls match. Narrow the query or its range."
    elif cursor is not None:
        erasure.cursor_at, erasure.cursor_id = cursor.at, cursor.id
    elif not erasure.call_count:
        erasure.state, erasure.finished_at = ErasureState.COUNTED, timezone.now()
    else:
        go_to_log(erasure)
        stated = Stated.of(listed_calls(erasure.tenant_id, erasure.id))
        record_action(
            Tenant(id=erasure.tenant_id),
            THE_SERVER,
            PREVIEWED,
            str(erasure.id),
            **stated._asdict(),
        )


def _decided_calls(calls: Sequence[ListedCall]) -> list[tuple[datetime, UUID]]:
    """Calls of decisions that name these calls by the provider's id, and the decision's time."""
    named = [call for call in calls if call.tool_call_id is not None]
    if not named:
        return []
    return [
        (decided_at, invocation_id)
        for decided_at, invocation_id in run(
            "erasure_decided_calls",
            trace_ids=arrays.texts([call.trace_id for call in named]),
            tool_call_ids=arrays.texts([call.tool_call_id for call in named]),
        )
    ]


def _forget_archived(erasure: Erasure, targets: Targets) -> bool:
    """Let the archive forget the calls in a segment, or count them. True if there is more to do."""
    rows = Erasure.objects.for_tenant(erasure.tenant_id).filter(id=erasure.id)
    try:
        with tenant_scope(erasure.tenant_id, using=KEEPER):
            targets.read(erasure, is_dry=erasure.state in DRY, using=KEEPER)
        if erasure.state in DRY:
            count_archived(erasure, targets)
        else:
            erase_archived(erasure, targets)
    except AWAY as error:
        with tenant_scope(erasure.tenant_id):
            rows.update(problem=f"{WAITS} {error}")
        raise
    except (HoldsAlteredError, CallsAlteredError) as error:
        with tenant_scope(erasure.tenant_id):
            rows.update(state=ErasureState.FAILED, finished_at=timezone.now(), problem=str(error))
        return False
    return True


def _run_chunk(tenant_id: UUID, pk: UUID, targets: Targets) -> bool:
    """Run one chunk as the keeper. False when the erasure has ended."""
    erasures = Erasure.objects.using(KEEPER).for_tenant(tenant_id).filter(id=pk)
    erasure = erasures.select_for_update().first()
    if erasure is None or erasure.state not in UNDER_WAY:
        return False
    is_dry = erasure.state in DRY
    erasure.state = ErasureState.COUNTING if is_dry else ErasureState.ERASING
    lock_record(tenant_id, using=KEEPER)
    try:
        targets.read(erasure, is_dry=is_dry, using=KEEPER)
        holds = holds_to_keep(tenant_id, using=KEEPER)
    except (HoldsAlteredError, CallsAlteredError) as error:
        erasure.state, erasure.finished_at = ErasureState.FAILED, timezone.now()
        erasure.problem = str(error)
        erasure.save(using=KEEPER)
        return False
    chunk = Chunk(erasure, is_dry, holds, targets)
    steps: dict[str, Callable[[], None]] = {
        "calls": chunk.calls,
        "log": chunk.log,
        "inbox": chunk.inbox,
    }
    steps[erasure.step]()
    erasure.save(using=KEEPER)
    return erasure.state in UNDER_WAY
