"""Erasure by filter, in the worker: starts, confirms, cancels and runs erasures.

An erasure is a job in slices (`tenants.slices`). Its dry run first finds and counts the calls.
When it is confirmed with a reason, it erases these calls and no others.

1. `find`: walk the list of calls and note those that no hold covers. Only in dry runs.
2. `calls`: remove the events of the next calls from the log, and the index's quotes from them.
3. `log`: read the batches that may hold more of their events: sent twice, or repeated later with
   more members.
4. `inbox`: rejected lines that mention the calls.

A chunk declares what it removes from the log by a ledger entry in the same transaction
(`audit.retention.event_removal`). Whatever a hold covers by then stays.
"""

import re
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.utils import timezone
from tooltrail.ledger import Kind

from audit.events.batch_ids import WINDOW_BACK
from audit.events.instants import DAY_US, microseconds
from audit.ledger.recompute import StoredBatch
from audit.models import (
    Erasure,
    ErasureCall,
    ErasureState,
    LegalHold,
)
from audit.queries.call_filter import CallFilter
from audit.queries.call_list import call_chunk
from audit.queries.call_query import (
    InvalidQueryError,
    Query,
    Reader,
    parse_pinned,
)
from audit.queries.cursor import stored_cursor
from audit.queries.inbox import first_id_of
from audit.retention.event_removal import Removed, declare, remove_events
from audit.retention.hold_match import (
    LoggedEvent,
    candidate_of,
    covers_event,
    covers_line,
)
from audit.retention.holds import (
    held_calls,
    holds_in_force,
    holds_of_call,
    lock_record,
)
from audit.sql import arrays
from audit.sql.run import run
from config.postgresql.aliases import KEEPER
from tenants import slices
from tenants.actions import THE_SERVER, record_action
from tenants.models import Tenant, User, new_id
from tenants.scope import current_tenant_id, tenant_scope
from tenants.slices import SLICE_SECONDS

_ADMIN = Reader(sees_payloads=True)
"""Only admins start an erasure. Its query is stored with UTC instants."""
CALLS_MAX = 100_000
DRY = (ErasureState.WAITING, ErasureState.COUNTING)
UNDER_WAY = (*DRY, ErasureState.CONFIRMED, ErasureState.ERASING)
_FOUND = 500
_CALLS = 200
_BATCHES = 10
_LINES = 200
_BLANKING = ("erasure_blank_calls", "erasure_blank_violations", "erasure_forget_hits")
"""The statements that blank calls in the index once their events are gone from the log."""
_EARLY = timedelta(days=2)
"""How long before the start of a call its events may arrive: clocks differ by up to a day."""
_ID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def start_erasure(tenant: Tenant, user: User, query: Query, now: datetime) -> Erasure:
    """Record a dry run for the worker. The caller defers the task. Needs the scope."""
    lock_record(tenant.id)  # creates the settings row, which the keeper locks but cannot create
    pk = new_id()
    # Without the query: it may name a person, and the ledger cannot forget.
    record_action(tenant, user, "erasure.count", str(pk))
    return Erasure.objects.create(
        tenant_id=tenant.id,
        id=pk,
        query=query.pinned(now),
        created_at=now,
        created_by=user.get_username(),
        state=ErasureState.WAITING,
        step="find",
        problem="",
    )


def confirm_erasure(tenant: Tenant, user: User, pk: UUID, reason: str, now: datetime) -> bool:
    """Let the worker erase the counted calls. The caller defers the task.

    Returns False unless the erasure has counted calls and waits for confirmation. Needs the scope.
    """
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
        confirmed_by=user.get_username(),
        finished_at=None,
    )
    if confirmed:
        record_action(tenant, user, "erasure.confirm", str(pk), reason=reason)
    return bool(confirmed)


def cancel_erasure(tenant: Tenant, user: User, pk: UUID, now: datetime) -> bool:
    """Ask the worker to stop. What is erased already stays erased and on record.

    Returns False if there is nothing to stop.
    """
    found = Erasure.objects.for_tenant(tenant.id).filter(
        id=pk, state__in=(*UNDER_WAY, ErasureState.COUNTED)
    )
    cancelled = found.update(state=ErasureState.CANCELLED, finished_at=now)
    if cancelled:
        record_action(tenant, user, "erasure.cancel", str(pk))
    return bool(cancelled)


def find_erasure(pk: UUID) -> Erasure | None:
    """The tenant's erasure with this id, or None."""
    return Erasure.objects.for_tenant(current_tenant_id()).filter(id=pk).first()


def run_slice(tenant_id: UUID, pk: UUID, *, seconds: float = SLICE_SECONDS) -> bool:
    """Continue an erasure for about `seconds`. True if there is more to do."""
    targets: set[UUID] = set()  # the same for each chunk; the first one that needs them fills it

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
        with tenant_scope(tenant_id, using=KEEPER):
            return _run_chunk(tenant_id, pk, targets)

    return slices.run_slice(step, seconds)


def _stored(text: str) -> CallFilter:
    """The filter of a stored query. Raises InvalidQueryError, also if it matches all calls."""
    query = parse_pinned(text, _ADMIN)
    if not query.problems and not query.terms:
        raise InvalidQueryError("it asks for all calls.")
    return query.wanted


def _find(erasure: Erasure) -> None:
    erasure.state = ErasureState.COUNTING
    begin = stored_cursor(erasure.cursor_at, erasure.cursor_id)
    try:
        wanted = _stored(erasure.query)
    except InvalidQueryError as error:  # stored by an earlier version
        erasure.state, erasure.finished_at = ErasureState.FAILED, timezone.now()
        erasure.problem = f"Invalid query, nothing was searched: {error}"
        return
    calls, cursor = call_chunk(wanted, now=erasure.created_at, before=begin, size=_FOUND)
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
        ],
        ignore_conflicts=True,
    )
    erasure.call_count += len(free)
    erasure.held_count += len(calls) - len(free)
    if free:
        erasure.first_started_at = free[-1].started_at
    if erasure.call_count > CALLS_MAX:
        erasure.state, erasure.finished_at = ErasureState.FAILED, timezone.now()
        erasure.problem = f"More than {CALLS_MAX:,} calls: narrow the query, or its range."
    elif cursor is not None:
        erasure.cursor_at, erasure.cursor_id = cursor.at, cursor.id
    elif not erasure.call_count:
        erasure.state, erasure.finished_at = ErasureState.COUNTED, timezone.now()
    else:
        _go_to_log(erasure)


def _run_chunk(tenant_id: UUID, pk: UUID, targets: set[UUID]) -> bool:
    """Run one chunk as the keeper. False when the erasure has ended."""
    erasures = Erasure.objects.using(KEEPER).for_tenant(tenant_id).filter(id=pk)
    erasure = erasures.select_for_update().first()
    if erasure is None or erasure.state not in UNDER_WAY:
        return False
    is_dry = erasure.state in DRY
    erasure.state = ErasureState.COUNTING if is_dry else ErasureState.ERASING
    lock_record(tenant_id, using=KEEPER)
    # The step of the locked row counts: another worker may have advanced it since it was read.
    if erasure.step != "calls" and not targets:
        found = run("erasure_targets", erasure_id=pk, using=KEEPER)
        targets.update(row[0] for row in found)
    chunk = _Chunk(erasure, is_dry, holds_in_force(tenant_id, using=KEEPER), targets)
    steps: dict[str, Callable[[], None]] = {
        "calls": chunk.calls,
        "log": chunk.log,
        "inbox": chunk.inbox,
    }
    steps[erasure.step]()
    erasure.save(using=KEEPER)
    return erasure.state in UNDER_WAY


class _Chunk:
    """The next chunk of an erasure or of its dry run, in one transaction as the keeper."""

    def __init__(
        self,
        erasure: Erasure,
        is_dry: bool,
        holds: Sequence[LegalHold],
        targets: Collection[UUID],
    ) -> None:
        self._erasure = erasure
        self._tenant_id = erasure.tenant_id
        self._is_dry = is_dry
        self._holds = holds
        self._targets = targets

    def calls(self) -> None:
        erasure = self._erasure
        found = run(
            "erasure_next_calls",
            using=KEEPER,
            erasure_id=erasure.id,
            at=erasure.cursor_at,
            id=erasure.cursor_id,
            row_limit=_CALLS,
        )
        if not found:
            _go_to_log(erasure, using=KEEPER)
            return
        erasure.cursor_at, erasure.cursor_id = found[-1]
        calls = run(
            "erasure_lock_calls",
            using=KEEPER,
            days=arrays.days(sorted({microseconds(at) // DAY_US for at, _ in found})),
            invocation_ids=arrays.uuids([pk for _, pk in found]),
        )
        places: dict[UUID, set[int]] = {}
        for *_, start_batch, start, end_batch, end, is_held in calls:
            for batch_id, position in ((start_batch, start), (end_batch, end)):
                if batch_id is not None and not is_held:
                    places.setdefault(batch_id, set()).add(position)
        free = {pk for _, pk, *_, is_held in calls if not is_held}
        left: set[tuple[UUID, int]] = set()

        def keeping(batch: StoredBatch, events: Sequence[LoggedEvent]) -> set[int]:
            # Also remove every other event of these calls in the batch: without the end event,
            # a violation that the server found in it can no longer be assigned to its call.
            ours = places[batch.batch_id] | {
                event.position for event in events if event.invocation_id in free
            }
            held = {
                event.position for event in events if covers_event(self._holds, event.candidate)
            } & ours
            left.update((batch.batch_id, position) for position in held)
            return {event.position for event in events} - (ours - held)

        removed = self._remove(places, keeping)
        left.update((each, position) for each in removed.unread for position in places[each])
        blank = [
            (day, pk)
            for day, pk, start_batch, start, end_batch, end, is_held in calls
            if not (is_held or (start_batch, start) in left or (end_batch, end) in left)
        ]
        for name in _BLANKING if blank else ():
            run(
                name,
                using=KEEPER,
                days=arrays.days([day for day, _ in blank]),
                invocation_ids=arrays.uuids([pk for _, pk in blank]),
            )
        erasure.erased_calls += len(blank)
        self._tell(removed)

    def log(self) -> None:
        erasure = self._erasure
        found = run(
            "erasure_next_batches",
            using=KEEPER,
            next_index=erasure.next_index,
            end_index=erasure.end_index,
            batch_limit=_BATCHES,
        )
        if not found:
            erasure.step, erasure.cursor_at, erasure.cursor_id = "inbox", None, None
            return
        erasure.next_index = found[-1][1]
        self._tell(self._remove([row[0] for row in found], self._keeping_others))

    def inbox(self) -> None:
        erasure = self._erasure
        assert erasure.first_started_at is not None
        found = run(
            "erasure_next_lines",
            using=KEEPER,
            after=erasure.cursor_id or first_id_of(erasure.first_started_at - _EARLY),
            row_limit=_LINES,
        )
        ids = [pk for pk, raw, at in found if self._is_ours(raw, at)]
        if self._is_dry:
            erasure.line_count += len(ids)
        elif ids:
            run(
                "erasure_blank_lines",
                using=KEEPER,
                ids=arrays.uuids(ids),
            )
            erasure.erased_lines += len(ids)
        if len(found) == _LINES:
            erasure.cursor_id = found[-1][0]
            return
        erasure.state = ErasureState.COUNTED if self._is_dry else ErasureState.DONE
        erasure.finished_at = timezone.now()
        if not self._is_dry:
            record_action(
                Tenant(id=self._tenant_id),
                THE_SERVER,
                "erasure.done",
                str(erasure.id),
                using=KEEPER,
                calls=erasure.erased_calls,
                events=erasure.erased_events,
                bytes=erasure.erased_bytes,
                lines=erasure.erased_lines,
            )

    def _keeping_others(self, _: StoredBatch, events: Sequence[LoggedEvent]) -> set[int]:
        ours = [event for event in events if event.invocation_id in self._targets]
        held = held_calls(self._tenant_id, self._holds, ours, using=KEEPER)
        going = {
            event.position
            for event in ours
            if event.invocation_id not in held and not covers_event(self._holds, event.candidate)
        }
        return {event.position for event in events} - going

    def _is_ours(self, raw: bytes, received_at: datetime) -> bool:
        """Whether a rejected line mentions one of the calls and no hold covers it."""
        if covers_line(self._holds, raw, received_at):
            return False
        if any(UUID(found.decode()) in self._targets for found in _ID.findall(raw)):
            return True
        candidate = candidate_of(raw, received_at)  # an ADK event does not contain its id as text
        return candidate is not None and candidate.invocation_id in self._targets

    def _remove(
        self,
        batch_ids: Collection[UUID],
        keeping: Callable[[StoredBatch, Sequence[LoggedEvent]], Collection[int]],
    ) -> Removed:
        removed = remove_events(
            self._tenant_id, list(batch_ids), keeping, using=KEEPER, is_dry=self._is_dry
        )
        if removed.unread:
            self._erasure.problem = (
                f"The payload of the batch {removed.unread[0]} is damaged: what it has stays."
            )
        return removed

    def _tell(self, removed: Removed) -> None:
        erasure = self._erasure
        if self._is_dry:
            erasure.event_count += removed.event_count
            erasure.byte_count += removed.byte_count
            return
        erasure.erased_events += removed.event_count
        erasure.erased_bytes += removed.byte_count
        if removed.ranges:
            assert erasure.reason is not None and erasure.confirmed_by is not None
            declare(
                self._tenant_id,
                Kind.ERASURE,
                removed.ranges,
                erasure.reason,
                erasure.confirmed_by,
                timezone.now(),
                using=KEEPER,
                erasure_id=erasure.id,
            )


def _go_to_log(erasure: Erasure, *, using: str = "default") -> None:
    """Go to the step `log`. It reads only events stored by now: later ones were not confirmed."""
    assert erasure.first_started_at is not None
    first_at = erasure.first_started_at - _EARLY
    ((begin, end),) = run(
        "erasure_begin",
        using=using,
        first_at=first_at,
        first_day=(first_at - WINDOW_BACK).astimezone(UTC).date(),
    )
    erasure.step, erasure.cursor_at, erasure.cursor_id = "log", None, None
    erasure.next_index, erasure.end_index = begin or 0, end or 0
