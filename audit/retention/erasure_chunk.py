"""A chunk of an erasure: removes events from the log and blanks what the index quotes from them.

`audit.retention.erasure` decides which step comes next. Each step is one transaction of the keeper.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID, uuid4

from django.db import models
from django.utils import timezone
from tooltrail.ledger import Kind

from audit.events.batch_ids import WINDOW_BACK
from audit.events.instants import DAY_US, microseconds
from audit.ledger.recompute import StoredBatch
from audit.models import Erasure, ErasureState, Incident, LegalHold, Note, SampledCall
from audit.queries.inbox import first_id_of
from audit.retention.erasure_targets import Targets
from audit.retention.event_removal import Removed, declare, remove_events
from audit.retention.hold_match import LoggedEvent, candidate_of, covers_event, covers_line
from audit.retention.holds import held_calls
from audit.sql import arrays
from audit.sql.run import run
from config.postgresql.aliases import KEEPER
from tenants.actions import THE_SERVER, record_action
from tenants.models import Tenant

_CALLS = 200
_BATCHES = 10
_LINES = 200
_BLANKING = (
    *("erasure_blank_calls", "erasure_blank_violations"),
    *("erasure_blank_spans", "erasure_forget_hits", "erasure_clear_cases"),
)
"""The statements that blank calls in the index once their events are gone from the log."""
_EARLY = timedelta(days=2)
"""How long before the start of a call its events may arrive: clocks differ by up to a day."""
_ID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)

type _Place = tuple[UUID, int]
"""Batch and position of an event."""


class _LockedCall(NamedTuple):
    """A row of `erasure_lock_calls`: a call and where the log has its events."""

    day: int
    """In days since 1970."""
    invocation_id: UUID
    start_batch_id: UUID | None
    start_pos: int | None
    end_batch_id: UUID | None
    end_pos: int | None
    is_held: bool

    @property
    def places(self) -> list[_Place]:
        """The places of its start and end events, as far as they are stored."""
        pairs = ((self.start_batch_id, self.start_pos), (self.end_batch_id, self.end_pos))
        return [(batch, pos) for batch, pos in pairs if batch is not None and pos is not None]


class _Decision(NamedTuple):
    """A row of `erasure_decisions`: a decision about a call and where the log has its event."""

    day: int
    """In days since 1970."""
    decision_id: UUID
    invocation_id: UUID
    batch_id: UUID
    pos: int
    is_held: bool

    @property
    def places(self) -> list[_Place]:
        """The place of its event."""
        return [(self.batch_id, self.pos)]


class Chunk:
    """The next chunk of an erasure or of its dry run, in one transaction as the keeper."""

    def __init__(
        self,
        erasure: Erasure,
        is_dry: bool,
        holds: Sequence[LegalHold],
        targets: Targets,
    ) -> None:
        self._erasure = erasure
        self._tenant_id = erasure.tenant_id
        self._is_dry = is_dry
        self._holds = holds
        self._targets = targets

    def calls(self) -> None:
        """Remove the events of the next calls, and blank these calls in the index."""
        erasure = self._erasure
        calls = self._targets.calls
        done = 0
        if erasure.cursor_at is not None and erasure.cursor_id is not None:
            done = bisect_right(calls, (erasure.cursor_at, erasure.cursor_id))
        rows = calls[done : done + _CALLS]
        if not rows:
            go_to_log(erasure, using=KEEPER)
            return
        erasure.cursor_at, erasure.cursor_id = rows[-1]
        locked = run(
            "erasure_lock_calls",
            using=KEEPER,
            days=arrays.days(sorted({microseconds(at) // DAY_US for at, _ in rows})),
            invocation_ids=arrays.uuids([pk for _, pk in rows]),
        )
        stored = [_LockedCall(*row) for row in locked]
        decisions = [
            _Decision(*row)
            for row in run(
                "erasure_decisions",
                using=KEEPER,
                invocation_ids=arrays.uuids([pk for _, pk in rows]),
            )
        ]
        held = {call.invocation_id for call in stored if call.is_held}
        held |= {each.invocation_id for each in decisions if each.is_held}
        free = [call for call in stored if call.invocation_id not in held]
        decided = [each for each in decisions if each.invocation_id not in held]
        removed, left = self._remove_events_of([*free, *decided])
        blank = [call for call in free if left.isdisjoint(call.places)]
        erased = [each for each in decided if left.isdisjoint(each.places)]
        for name in _BLANKING if blank else ():
            run(
                name,
                using=KEEPER,
                days=arrays.days([call.day for call in blank]),
                invocation_ids=arrays.uuids([call.invocation_id for call in blank]),
            )
        if erased:
            run(
                "erasure_blank_decisions",
                using=KEEPER,
                days=arrays.days([each.day for each in erased]),
                decision_ids=arrays.uuids([each.decision_id for each in erased]),
            )
            for name in ("erasure_blank_spans", "erasure_forget_hits"):
                run(
                    name,
                    using=KEEPER,
                    days=arrays.days([each.day for each in erased]),
                    invocation_ids=arrays.uuids([each.invocation_id for each in erased]),
                )
        self._clear_texts([*blank, *erased])
        started = {call.invocation_id for call in stored}
        erasure.erased_calls += len(blank)
        erasure.erased_calls += len({each.invocation_id for each in erased} - started)
        self._record(removed)

    def _clear_texts(self, calls: Sequence["_LockedCall | _Decision"]) -> None:
        """Clear what quotes these calls: notes, texts of auditors' samples, timelines."""
        of = {
            "days": arrays.days([call.day for call in calls]),
            "invocation_ids": arrays.uuids([call.invocation_id for call in calls]),
        }
        tenant_id = self._tenant_id
        notes = run("erasure_clear_notes", using=KEEPER, salt=uuid4(), **of)
        self._enter("note.erase", [Note(tenant_id=tenant_id, id=pk) for (pk,) in notes])
        sampled = run("erasure_clear_samples", using=KEEPER, **of)
        self._enter(
            "sample.erase",
            [
                SampledCall(tenant_id=tenant_id, sample_id=sample_id, position=position)
                for sample_id, position in sampled
            ],
        )
        incidents = run("erasure_clear_incidents", using=KEEPER, **of)
        self._enter("incident.erase", [Incident(tenant_id=tenant_id, id=pk) for (pk,) in incidents])

    def _enter(self, verb: str, cleared: Sequence[models.Model]) -> None:
        if cleared:
            tenant, subject = Tenant(id=self._tenant_id), str(self._erasure.id)
            record_action(tenant, THE_SERVER, verb, subject, using=KEEPER, rows=cleared)

    def _remove_events_of(
        self, calls: Sequence["_LockedCall | _Decision"]
    ) -> tuple[Removed, set[_Place]]:
        """Remove the calls' events. Returns also the places of those that stay."""
        ids = {call.invocation_id for call in calls}
        places: dict[UUID, set[int]] = {}
        for call in calls:
            for batch_id, position in call.places:
                places.setdefault(batch_id, set()).add(position)
        left: set[_Place] = set()

        def keeping(batch: StoredBatch, events: Sequence[LoggedEvent]) -> set[int]:
            # Also remove every other event of these calls in the batch: without the end event,
            # a violation that the server found in it can no longer be assigned to its call.
            ours = places[batch.batch_id] | {
                event.position for event in events if event.invocation_id in ids
            }
            held = {
                event.position for event in events if covers_event(self._holds, event.candidate)
            } & ours
            left.update((batch.batch_id, position) for position in held)
            return {event.position for event in events} - (ours - held)

        removed = self._remove(places, keeping)
        left.update((each, position) for each in removed.unread for position in places[each])
        return removed, left

    def log(self) -> None:
        """Remove the calls' other events from the next batches."""
        erasure = self._erasure
        rows = run(
            "erasure_next_batches",
            using=KEEPER,
            next_index=erasure.next_index,
            end_index=erasure.end_index,
            batch_limit=_BATCHES,
        )
        if not rows:
            erasure.cursor_at, erasure.cursor_id = None, None
            erasure.step, (erasure.next_index, _) = "archive", _in_log(erasure, KEEPER)
            return
        erasure.next_index = rows[-1][1]
        self._record(self._remove([row[0] for row in rows], self._keeping_others))

    def inbox(self) -> None:
        """Blank the next rejected lines that mention the calls; end the erasure after the last."""
        erasure = self._erasure
        assert erasure.first_started_at is not None
        lines = run(
            "erasure_next_lines",
            using=KEEPER,
            after=erasure.cursor_id or first_id_of(erasure.first_started_at - _EARLY),
            row_limit=_LINES,
        )
        ids = [pk for pk, raw, at in lines if self._is_ours(raw, at)]
        if self._is_dry:
            erasure.line_count += len(ids)
        elif ids:
            run(
                "erasure_blank_lines",
                using=KEEPER,
                ids=arrays.uuids(ids),
            )
            erasure.erased_lines += len(ids)
        if len(lines) == _LINES:
            erasure.cursor_id = lines[-1][0]
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
        ours = [event for event in events if event.invocation_id in self._targets.ids]
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
        if any(UUID(match.decode()) in self._targets.ids for match in _ID.findall(raw)):
            return True
        candidate = candidate_of(raw, received_at)  # an ADK event does not contain its id as text
        return candidate is not None and candidate.invocation_id in self._targets.ids

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
                f"The payload of batch {removed.unread[0]} is damaged. Its events were kept."
            )
        return removed

    def _record(self, removed: Removed) -> None:
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
                tenant_id=self._tenant_id,
                kind=Kind.ERASURE,
                ranges=removed.ranges,
                reason=erasure.reason,
                actor=erasure.confirmed_by,
                now=timezone.now(),
                using=KEEPER,
                erasure_id=erasure.id,
            )


def go_to_log(erasure: Erasure, *, using: str = "default") -> None:
    """Go to the step `log`. It reads only events stored by now: later ones were not confirmed."""
    erasure.step, erasure.cursor_at, erasure.cursor_id = "log", None, None
    erasure.next_index, erasure.end_index = _in_log(erasure, using)


def _in_log(erasure: Erasure, using: str) -> tuple[int, int]:
    """Where in the log events of the calls may be: the first index, and the end of the log."""
    assert erasure.first_started_at is not None
    first_at = erasure.first_started_at - _EARLY
    ((begin, end),) = run(
        "erasure_begin",
        using=using,
        first_at=first_at,
        first_day=(first_at - WINDOW_BACK).astimezone(UTC).date(),
    )
    return begin or 0, end or 0
