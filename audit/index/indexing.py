"""Apply the events of batches to the index: positions, rows, totals and rejections.

All indexing goes through here: from `audit.intake.ingest` when requests arrive, and from
`audit.index.reindex` when the log is read again. Both pass the events in the order of the log, and
a writer. Batches that are indexed together must not share a call.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from uuid import UUID

from tooltrail.ledger import Kind

from audit.events import wire
from audit.events.candidates import Candidate
from audit.events.redaction import are_one_but_for_marks
from audit.events.reported import (
    calls_of,
    is_fuller,
    is_no_fuller,
    is_part_of,
)
from audit.index.decisions import (
    Decided,
    decided,
    decision_key,
    insert_decisions,
    stored_places,
    without_repeats,
)
from audit.index.deltas import Changed, derive
from audit.index.interims import note_interims
from audit.index.merge import (
    Call,
    Key,
    Repeat,
    merge,
    settle_on_stored_days,
)
from audit.index.outcomes import CONFLICT, NO_DAY, Outcomes
from audit.index.writer import IndexWriter
from audit.log.payload import read_events

type MissingDays = Callable[[set[int]], set[int]]
"""Takes days since 1970, returns those that have no partitions in the index."""


@dataclass(slots=True)
class _Effects:
    """What remains to be written after the upsert, derived from its rows."""

    gaps: list[Candidate]
    changed: dict[Key, Changed] = field(default_factory=dict)
    withdrawn: list[Changed] = field(default_factory=list)
    superseding: list[Changed] = field(default_factory=list)
    absorbed: list[Changed] = field(default_factory=list)
    resettled: list[Changed] = field(default_factory=list)
    completed: list[tuple[Changed, Candidate]] = field(default_factory=list)
    in_spans: list[Candidate] = field(default_factory=list)
    decided: list[Decided] = field(default_factory=list)


class Indexing:
    """Indexes batches of a tenant inside its open scope: call `apply`, then `write`."""

    def __init__(
        self,
        tenant_id: UUID,
        writer: IndexWriter,
        missing_days: MissingDays,
        *,
        expects_new: bool = False,
    ) -> None:
        """`expects_new`: assume that started calls are new (`IndexWriter.insert_calls`)."""
        self.outcomes = Outcomes()
        self._tenant_id = tenant_id
        self._writer = writer
        self._missing_days = missing_days
        self._effects = _Effects([])
        self._expects_new = expects_new

    def apply(self, candidates: Sequence[Candidate], *, is_logged: bool = False) -> list[Candidate]:
        """Write the rows of calls, and sort events into new ones, duplicates and conflicts.

        Returns the events that belong in the log, in order, with their positions. Events that are
        read from the log (`is_logged`) already have theirs.
        """
        beside = [candidate for candidate in candidates if candidate.is_beside]
        for candidate in beside:
            self.outcomes.take(candidate, is_new=False)
        calls, repeats, homeless = self._placed(_without(candidates, beside))
        logged = [candidate for candidate in candidates if candidate not in homeless]
        if not is_logged:
            for _, of_batch in by_batch(logged):
                for position, candidate in enumerate(of_batch):
                    candidate.position = position
        changed = self._write_calls(calls)
        new_decisions = self._write_decisions(logged)
        fuller = self._settle(calls, repeats, changed)
        withdrawn, superseding = self._writer.supersede_calls(fuller)
        self._note_interims(calls)
        again = {call.key for call in fuller}
        completed = [
            (row, call.end)
            for call in calls
            if call.end is not None
            and (row := changed.get(call.key)) is not None
            and row.took_end
            and row.violation_count
            and call.key not in again
        ]
        fuller_ends = {call.key: call.end for call in fuller if call.end is not None}
        completed += [
            (row, fuller_ends[row.day, row.invocation_id.int])
            for row in superseding
            if row.violation_count
        ]
        gaps = [each for each in logged if each.kind is Kind.GAP]
        in_spans = [
            call.start
            for call in calls
            if call.start is not None
            and isinstance(call.start.event, wire.StartEvent)
            and call.start.event.traceparent is not None
            and (row := changed.get(call.key)) is not None
            and row.took_start
        ]
        self._effects = _Effects(
            gaps=gaps,
            changed=changed,
            withdrawn=withdrawn,
            superseding=superseding,
            absorbed=[],
            resettled=_resettled(withdrawn, superseding),
            completed=completed,
            in_spans=in_spans,
            decided=new_decisions,
        )
        self.absorb([*(call.end for call in fuller if call.end is not None), *beside])
        return logged

    @property
    def in_spans(self) -> list[Candidate]:
        """The new start events that name the span in which their call ran."""
        return self._effects.in_spans

    @property
    def with_findings(self) -> list[Candidate]:
        """The end events that count now, in which the server found violations."""
        return [end for _, end in self._effects.completed if end.finding is not None]

    def write(self, *, with_totals: bool = True) -> None:
        """Write what derives from the rows: violations, traces and rollups. Write producers, too.

        Without totals, the caller must write traces and rollups.
        """
        replaced = [*self._effects.withdrawn, *self._effects.absorbed]
        self._writer.write_violations(self._effects.completed, replaced)
        if with_totals:
            effects = self._effects
            counted = [*effects.changed.values(), *effects.superseding]
            withdrawn = [*effects.withdrawn, *effects.absorbed]
            self._writer.write_deltas(derive(counted, withdrawn=withdrawn, decided=effects.decided))
            self._writer.settle_traces([*effects.absorbed, *effects.resettled])
        self._settle_gaps(self._effects.gaps)
        self._writer.write_producers(self.outcomes.producers)

    def _write_calls(self, calls: Sequence[Call]) -> dict[Key, Changed]:
        """Write the rows of calls. Returns the rows in which a slot was free.

        If an end event precedes its start, all calls are written together, in order of key. Else
        two requests with halves of the same calls would wait for each other.
        """
        starting = [call for call in calls if call.start is not None]
        ending = [call for call in calls if call.start is None]
        if not self._expects_new or not all(call.is_stored for call in ending):
            return self._writer.upsert_calls(calls)
        return self._writer.upsert_calls(ending) | self._writer.insert_calls(starting)

    def _note_interims(self, calls: Sequence[Call]) -> None:
        going_on = [call for call in calls if call.interims]
        fresh = note_interims(self._writer, going_on)
        for call in going_on:
            for each in call.interims:
                self.outcomes.take(each, is_new=each in fresh)

    def _write_decisions(self, logged: Sequence[Candidate]) -> list[Decided]:
        """Write the decisions among the events. Returns what the new ones add to traces."""
        candidates = [each for each in logged if each.kind is Kind.DECISION]
        if not candidates:
            return []
        decisions, repeats = without_repeats(candidates)
        new = insert_decisions(self._writer, decisions)
        fresh = [each for each in decisions if decision_key(each) in new]
        for candidate in fresh:
            self.outcomes.take(candidate, is_new=True)
        known = [each for each in decisions if decision_key(each) not in new]
        if known:
            at = stored_places(self._writer, known)
            places = {each: at[decision_key(each)] for each in known}
            stored = read_events(self._tenant_id, places.values(), using=self._writer.using)
            for candidate, place in places.items():
                self._compare(candidate, stored[place].raw)
        for repeat in repeats:
            self._compare(repeat.candidate, repeat.first.raw)
        return [decided(each) for each in fresh]

    def _placed(
        self, candidates: Sequence[Candidate]
    ) -> tuple[list[Call], list[Repeat], set[Candidate]]:
        """The candidates as calls of days the index has; their repeats; the rejected others."""
        days = {candidate.day for candidate in candidates if candidate.kind is not Kind.GAP}
        missing = self._missing_days(days)
        calls, repeats = merge(candidates)
        alone = [call for call in calls if call.start is None]
        calls, moved = settle_on_stored_days(calls, self._writer.find_near(alone))
        repeats += moved
        homeless = {
            each for each in candidates if each.kind is Kind.DECISION and each.day in missing
        }
        if not missing:
            return calls, repeats, homeless
        placed = []
        for call in calls:
            if call.day in missing and not call.is_stored:
                homeless.update(call.events)
            else:
                placed.append(call)
        repeated = [repeat for repeat in repeats if repeat.first in homeless]
        repeats = [repeat for repeat in repeats if repeat.first not in homeless]
        homeless.update(repeat.candidate for repeat in repeated)
        for candidate in homeless:
            self.outcomes.reject(candidate, NO_DAY)
        return placed, repeats, homeless

    def _settle(
        self, calls: Sequence[Call], repeats: Iterable[Repeat], changed: dict[Key, Changed]
    ) -> list[Call]:
        """Sort events into new ones, duplicates and conflicts.

        Returns the calls that get a fuller account now.
        """
        taken: list[tuple[Call, Candidate]] = []
        for call in calls:
            row = changed.get(call.key)
            for candidate, is_taken in (
                (call.start, row is not None and row.took_start),
                (call.end, row is not None and row.took_end),
            ):
                if candidate is None:
                    continue
                if is_taken:
                    self.outcomes.take(candidate, is_new=True)
                else:
                    taken.append((call, candidate))
        fuller: set[Candidate] = set()
        for candidate, raw in self._stored(taken):
            if raw is not None and is_fuller(candidate.raw, raw):
                fuller.add(candidate)
            else:
                self._compare(candidate, raw)
        for repeat in repeats:
            self._compare(repeat.candidate, repeat.first.raw)
        return self._fuller(calls, fuller, changed)

    def _fuller(
        self, calls: Sequence[Call], candidates: set[Candidate], changed: dict[Key, Changed]
    ) -> list[Call]:
        """The calls of which `candidates` has both start and end. A single event is a conflict.

        The call may have had no end until now, and its new end may be an interim event.
        """
        if not candidates:  # in most requests
            return []
        complete = []
        for call in calls:
            events = [each for each in (call.start, call.end) if each in candidates]
            row = changed.get(call.key)
            has_end = call.end in candidates or (
                bool(call.interims) if call.end is None else row is not None and row.took_end
            )
            is_whole = call.start in candidates and has_end
            if is_whole:
                complete.append(call)
            for candidate in events:
                if is_whole:
                    self.outcomes.take(candidate, is_new=True)
                else:
                    self.outcomes.reject(candidate, CONFLICT)
        return complete

    def absorb(self, accounts: Iterable[Candidate]) -> None:
        """Withdraw stored calls whose spans these accounts contain as parts of another call.

        This happens if the middle one of three layers arrives last, or if an executor reports the
        call itself.
        """
        raws: dict[Key, bytes] = {}
        parts: dict[Key, Call] = {}
        for account in accounts:
            for day, invocation_id in calls_of(account.raw):
                if invocation_id != account.invocation_id:
                    part = Call(invocation_id, day, 0)
                    raws[part.key], parts[part.key] = account.raw, part
        if not parts:
            return
        slots = self._writer.taken_slots(list(parts.values()))
        whole = {key: (slot[:2], slot[2:]) for key, slot in slots.items() if None not in slot}
        places = [place for both in whole.values() for place in both]
        stored = read_events(self._tenant_id, places, using=self._writer.using) if places else {}
        going = [
            parts[key]
            for key, both in sorted(whole.items())
            if all(
                (raw := stored[place].raw) is not None and is_part_of(raw, raws[key])
                for place in both
            )
        ]
        self._effects.absorbed += self._writer.withdraw_calls(going)

    def _stored(
        self, taken: Sequence[tuple[Call, Candidate]]
    ) -> Iterator[tuple[Candidate, bytes | None]]:
        """The bytes of the stored events in the slots of `taken`; None for erased events."""
        if not taken:
            return
        slots = self._writer.taken_slots([call for call, _ in taken])
        places = {}
        for call, candidate in taken:
            slot = slots[call.key]
            places[candidate] = slot[:2] if candidate.kind is Kind.START else slot[2:]
        stored = read_events(self._tenant_id, list(places.values()), using=self._writer.using)
        for _, candidate in taken:
            yield candidate, stored[places[candidate]].raw

    def _compare(self, candidate: Candidate, raw: bytes | None) -> None:
        if (
            raw is None
            or raw == candidate.raw
            or is_no_fuller(candidate.raw, raw)
            or are_one_but_for_marks(candidate.raw, raw)
        ):
            self.outcomes.take(candidate, is_new=False)
        else:
            self.outcomes.reject(candidate, CONFLICT)

    def _settle_gaps(self, gaps: Sequence[Candidate]) -> None:
        first_gaps: dict[tuple[str, int, int], wire.GapEvent] = {}
        for candidate in gaps:
            assert isinstance(candidate.event, wire.GapEvent)
            first_gaps.setdefault(_gap_key(candidate.event), candidate.event)
        fresh = self._writer.write_gaps(list(first_gaps.values()))
        for candidate in gaps:
            assert isinstance(candidate.event, wire.GapEvent)
            key = _gap_key(candidate.event)
            self.outcomes.take(candidate, is_new=key in fresh)
            fresh.discard(key)


def _without(candidates: Sequence[Candidate], some: Sequence[Candidate]) -> Sequence[Candidate]:
    if not some:
        return candidates
    left_out = set(some)
    return [candidate for candidate in candidates if candidate not in left_out]


def _resettled(before: Sequence[Changed], after: Sequence[Changed]) -> list[Changed]:
    """The calls whose trace may have lost a value: their end, run id or tool is not as before."""
    stored = {(row.day, row.invocation_id): row for row in before}
    return [
        row
        for row in after
        if not row.took_end
        or (old := stored[row.day, row.invocation_id]).run_id not in (None, row.run_id)
        or old.tool_name != row.tool_name
    ]


def by_batch(candidates: Iterable[Candidate]) -> Iterator[tuple[UUID, Iterator[Candidate]]]:
    """Group candidates by batch. The candidates of a batch must be adjacent."""
    return groupby(candidates, key=attrgetter("batch_id"))


def _gap_key(gap: wire.GapEvent) -> tuple[str, int, int]:
    return gap.producer_id, gap.from_seq, gap.to_seq
