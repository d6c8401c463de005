"""Rebuild the index from the log beside the real one, to prove that they agree or to repair it.

Each tenant's log is read in the order of its ledger, into a shadow (`audit.index.shadow`) and
through the same code as an arriving batch (`audit.index.indexing`). Traces and rollups are then
derived from the rebuilt calls. The first pass reads one snapshot while executors keep sending. A
repair locks out writers, reads what has arrived since, and changes only the rows that differed.
Needs the owner's connection, because the application may not delete.

What cannot be rebuilt from the log stays as it is: calls with an event that was erased or cannot be
read, and their violations; such decisions; what producers and gaps say beyond the readable events;
days for which the tenant keeps no index any more, except that rows which are left there must be
what the log says. The first day that is kept is believed only if the ledger's entries prove it.

Two results depend on the moment of arrival and can differ from the log:

- A start and an end event put a call on different days and arrived at the same time. Neither found
  the row of the other, so the index has two calls. Reading the log in order makes one.
- An event belongs to one of several identical ADK calls of a request. Which one can differ, if
  another event of these calls was rejected.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID

from django.utils import timezone
from tooltrail.ledger import Kind

from audit.events.body import Line
from audit.events.candidates import Reading, read_logged
from audit.events.instants import days_since_epoch, microseconds
from audit.events.limits import LimitExceededError
from audit.index import partitions
from audit.index.decisions import Decided
from audit.index.deltas import derive
from audit.index.indexing import Indexing
from audit.index.shadow import (
    KEYS,
    OF_EVENTS,
    Comparison,
    Shadow,
    open_shadow,
)
from audit.index.writer import IndexWriter, changed_of
from audit.ledger.own_entries import own_entries
from audit.ledger.recompute import StoredBatch, remake
from audit.ledger.rows import unexplained
from audit.log.payload import LogPayloadError, unpack
from config.postgresql.aliases import OWNER
from tenants.models import TenantSetting
from tenants.scope import tenant_scope

_BATCHES_AT_ONCE = 20
_CALLS_AT_ONCE = 5_000
_BEGINNING = days_since_epoch(date.min), UUID(int=0)
type Progress = Callable[[int, int], None]
"""Called with the number of events read so far, and the total."""


@dataclass(slots=True)
class Report:
    """The result of reading one tenant's log again."""

    batches: int = 0
    events: int = 0
    calls: int = 0
    erased: int = 0
    """Events whose payload was erased."""
    unreadable: int = 0
    """Events in the log that cannot be read."""
    kept_calls: int = 0
    """Calls that were left as they are because of erased or unreadable events."""
    log_faults: list[str] = field(default_factory=list)
    """Faults of the log itself."""
    index_from: date | None = None
    """The first day for which the tenant keeps an index. Rows of earlier days may be missing."""
    index_faults: list[str] = field(default_factory=list)
    """Faults of the index that no repair can mend."""
    comparison: Comparison = field(default_factory=lambda: Comparison({}, []))
    is_repaired: bool = False

    @property
    def is_clean(self) -> bool:
        """Whether index and log agree, as far as the log can be read."""
        return self.comparison.is_clean and not (self.log_faults or self.index_faults)


def reindex(tenant_id: UUID, *, repair: bool, progress: Progress) -> Report:
    """Compare a tenant's index with its log. With `repair`, correct it to match the log.

    Takes as long as storing the whole log did. Needs temporary disk space as large as the index.
    During a repair, writers of all tenants wait: as long as reading what arrived meanwhile takes.
    """
    report = Report()
    with tenant_scope(tenant_id):
        altered = unexplained(tenant_id, [TenantSetting])
    with open_shadow(OWNER) as shadow:
        replay = _Replay(tenant_id, shadow, report)
        with tenant_scope(tenant_id, using=OWNER):
            # A single snapshot of log and index: each batch commits both together.
            shadow.set_up("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            if altered:  # somebody could have moved the day to hide what they changed
                report.index_faults += [f"{each}: no day is believed expired" for each in altered]
            else:
                report.index_from = _index_from(tenant_id)
            replay.read(progress)
            replay.keep_what_was_lost()
            days = _days(shadow, report)
            report.calls = replay.derive_totals()
            report.comparison = shadow.compare(days)
        if repair and not (report.comparison.is_clean or altered):
            with tenant_scope(tenant_id, using=OWNER):
                shadow.lock_out_writers()
                replay.read(progress, with_totals=True)
                shadow.repair(days)
                report.is_repaired = True
    return report


def _index_from(tenant_id: UUID) -> date | None:
    settings = TenantSetting.objects.using(OWNER).filter(tenant_id=tenant_id)
    return settings.values_list("index_from", flat=True).first()


def _days(shadow: Shadow, report: Report) -> dict[str, list[date]]:
    """The days on which each table is compared.

    Before `index_from` only rows of single events are, and only those that are left: the others are
    removed from the shadow. Partitions are dropped when all tenants' days in them have expired.
    """
    whole: dict[date, int] = {}
    for partition in partitions.existing(OWNER):
        whole[partition.day] = whole.get(partition.day, 0) + 1
    existing = [day for day, count in whole.items() if count == len(partitions.PARTITIONED_TABLES)]
    first = report.index_from or date.min
    for note, forget in (
        ("note_expired_calls", "forget_expired_calls"),
        ("note_expired_decisions", "forget_expired_decisions"),
        ("note_expired_violations", "forget_expired_violations"),
    ):
        shadow.rows(note, first=first)
        shadow.rows(forget)
    for day, count in shadow.rows("calls_without_partition", days=existing):
        fault = f"the index has no partition for {day}: {count:,} calls are gone"
        report.index_faults.append(fault)
    kept = [day for day in existing if day >= first]
    return {table: existing if table in OF_EVENTS else kept for table in KEYS}


class _Replay:
    """Reads a log into a shadow. Each `read` continues where the last one stopped."""

    def __init__(self, tenant_id: UUID, shadow: Shadow, report: Report) -> None:
        self._tenant_id = tenant_id
        self._shadow = shadow
        self._report = report
        self._next_index = 0

    def read(self, progress: Progress, *, with_totals: bool = False) -> None:
        """Index every batch that has not been read yet."""
        # The shadow grows from empty tables, so a plan made at the beginning would not fit later.
        self._shadow.set_up("SET LOCAL plan_cache_mode = force_custom_plan")
        sizes = self._shadow.rows("log_size")
        size = sizes[0][0] if sizes else 0
        for batch in self._batches():
            first_index = batch.first_index
            if first_index != self._next_index:
                self._fault(
                    f"batch {batch.batch_id} begins at {first_index}, not {self._next_index}"
                )
            self._next_index = max(self._next_index, first_index + batch.event_count)
            if not batch.is_own:  # the server's own entries about the log are no calls
                self._index(batch, with_totals)
            self._report.batches += 1
            self._report.events += batch.event_count
            progress(self._report.events, max(size, self._report.events))
        if self._next_index != size:
            self._fault(f"the ledger's head says {size} events, the log has {self._next_index}")

    def keep_what_was_lost(self) -> None:
        """Copy calls with lost events from the index into the shadow.

        Producers and gaps have no reference to an event. A producer of the index is kept if it says
        at least what the readable events say. An erasure removes no gap, but retention does.
        """
        lost = self._report.erased + self._report.unreadable
        if not lost:
            return
        ((counted,),) = self._shadow.rows("keep_producers")
        if counted > lost:
            self._report.index_faults.append(
                f"the producers count {counted:,} events more than the log has, and {lost:,} are"
                " erased or unreadable"
            )
        own = own_entries(self._tenant_id, {Kind.RETENTION}, using=OWNER)
        if self._report.unreadable or any(own):
            self._shadow.rows("keep_gaps")
        ((self._report.kept_calls,),) = self._shadow.rows("keep_calls")
        for name in (
            "forget_kept_violations",
            "forget_kept_calls",
            "copy_kept_calls",
            "copy_kept_violations",
            "keep_decisions",
            "forget_kept_decisions",
            "copy_kept_decisions",
        ):
            self._shadow.rows(name)

    def derive_totals(self) -> int:
        """Write traces, rollups and sums of violations of the shadow. Returns how many calls."""
        self._shadow.analyze()
        self._shadow.rows("forget_violation_days")
        self._shadow.rows("rebuild_violation_days")
        count, after = 0, _BEGINNING
        writer = self._writer(timezone.now())  # these tables do not contain the time of arrival
        self._derive_decisions(writer)
        while True:
            rows = self._shadow.rows(
                "rebuilt_calls",
                day=after[0],
                invocation_id=after[1],
                call_limit=_CALLS_AT_ONCE,
            )
            writer.write_deltas(derive(changed_of(*row) for row in rows))
            count += len(rows)
            if len(rows) < _CALLS_AT_ONCE:
                return count
            after = rows[-1][0], rows[-1][1]

    def _derive_decisions(self, writer: IndexWriter) -> None:
        after = _BEGINNING
        while True:
            rows = self._shadow.rows(
                "rebuilt_decisions",
                day=after[0],
                decision_id=after[1],
                row_limit=_CALLS_AT_ONCE,
            )
            decided = (Decided(day, microseconds(at), *rest) for day, _, at, *rest in rows)
            writer.write_deltas(derive((), decided=decided))
            if len(rows) < _CALLS_AT_ONCE:
                return
            after = rows[-1][0], rows[-1][1]

    def _batches(self) -> Iterator[StoredBatch]:
        while True:
            batches = self._shadow.rows(
                "log_batches",
                next_index=self._next_index,
                batch_limit=_BATCHES_AT_ONCE,
            )
            yield from (StoredBatch(*row) for row in batches)
            if len(batches) < _BATCHES_AT_ONCE:
                return

    def _raws(self, batch_id: UUID, event_count: int, payload: bytes | None) -> list[bytes]:
        """The events of a batch, with empty bytes for an erased or lost event."""
        if payload is None:
            self._report.erased += event_count
            return [b""] * event_count
        try:
            raws = [raw for _, raw in unpack(payload)]
        except LogPayloadError as error:
            self._fault(f"the payload of batch {batch_id} {error}")
            self._report.unreadable += event_count
            return [b""] * event_count
        if len(raws) != event_count:
            self._fault(f"batch {batch_id} holds {len(raws)} events, not {event_count}")
            lost = max(0, event_count - len(raws))
            self._report.unreadable += lost
            raws = raws[:event_count] + [b""] * lost
        else:
            self._report.erased += raws.count(b"")
        return raws

    def _index(self, batch: StoredBatch, with_totals: bool) -> None:
        batch_id, received_at = batch.batch_id, batch.received_at
        raws = self._raws(batch_id, batch.event_count, batch.payload)
        reading = self._read(batch_id, received_at, raws)
        if b"" in raws:
            _name_by_leaf(batch, reading)
        known = {each.line - 1 for each in (*reading.candidates, *reading.findings)}
        lost = [position for position in range(len(raws)) if position not in known]
        if lost:
            self._shadow.rows("note_lost_places", batch_id=batch_id, positions=lost)
        indexing = Indexing(self._tenant_id, self._writer(received_at), _no_days)
        indexing.apply(reading.candidates, is_logged=True)
        indexing.write(with_totals=with_totals)

    def _read(self, batch_id: UUID, received_at: datetime, raws: list[bytes]) -> Reading:
        lines = [Line(position + 1, raw) for position, raw in enumerate(raws) if raw]
        try:
            reading = read_logged(lines, batch_id, received_at)
        except LimitExceededError as error:
            self._fault(f"batch {batch_id}: {error.message}")
            self._report.unreadable += len(lines)
            return Reading()
        for refused in reading.rejections:
            self._fault(
                f"event {refused.line - 1} of batch {batch_id} cannot be read: {refused.code}"
            )
        self._report.unreadable += len(reading.rejections)
        for candidate in reading.candidates:
            candidate.position = candidate.line - 1
        return reading

    def _writer(self, received_at: datetime) -> IndexWriter:
        return IndexWriter(received_at, using=OWNER)

    def _fault(self, what: str) -> None:
        self._report.log_faults.append(what)


def _name_by_leaf(batch: StoredBatch, reading: Reading) -> None:
    """Take each event's call from its leaf: equal events of identical ADK calls may be gone."""
    try:
        remade = remake(batch)
    except LogPayloadError:
        return
    for candidate in reading.candidates:
        entry = remade[candidate.position].entry
        if entry is not None:
            candidate.invocation_id = entry.invocation_id


def _no_days(days: set[int]) -> set[int]:
    """No day is missing: the shadow accepts every day, as each event in the log had a partition."""
    return set()
