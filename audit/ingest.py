"""From the lines of a request to one committed transaction, and the answer to it.

`record_batch` does, in one transaction of the tenant's scope:

1. Is the batch id known? Then its answer again, and nothing is written.
2. Ends that came without their start are looked up; events of days the index does not have
   go to the inbox; what is left gets its positions in the log.
3. One row per call, in order of key (`upsert_invocations`). What it returns, and nothing else,
   says what this batch changed.
4. Derived from that: violations, traces, rollups, latencies, producers, each in order of key.
5. Events whose slot was taken are compared with the stored ones: the same bytes are a
   duplicate, others a conflict, which goes to the inbox. The log keeps all of them.
6. The tenant's ledger head is taken, which puts batches in order, and moved on; the batch
   is written. Commit.

Two writers lock rows in the same order, so they wait for each other but do not deadlock; if
PostgreSQL finds one all the same, the transaction is run again. Reading and judging lines is
`audit.candidates`', HTTP `audit.api`'s.
"""

import hashlib
import json
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, OperationalError
from tooltrail.ledger import SALT_LENGTH, Entry, Kind, commit_of, leaf_of

from audit import wire
from audit.batch_ids import BatchId, batch_day
from audit.body import Line
from audit.candidates import Candidate, Reading, Rejection, read_lines, reject
from audit.deltas import Changed, derive
from audit.index_writer import IndexWriter, days_since_epoch, microseconds
from audit.log import pack, read_events
from audit.merge import Call, Repeat, merge, settle_on_stored_days
from audit.window import INDEX_DAYS
from tenants.scope import tenant_scope

_ATTEMPTS = 5
_RETRY_SECONDS = 0.02  # grows with each attempt, at random, so that rivals part
_SERIALIZATION_STATES = {"40001", "40P01"}
_NO_PARTITION_STATE = "23514"
_NO_DAY = "out_of_range", "the index has no such day (any more), nor this end's call"

type _Key = tuple[int, UUID]


class BatchIdReusedError(Exception):
    """A batch id was sent before with another body: nothing is acknowledged."""


class _KnownMeanwhileError(Exception):
    """Another request has stored this batch id while we worked."""


def record_batch(
    tenant_id: UUID, body: bytes, lines: Sequence[Line], batch_id: BatchId, now: datetime
) -> str:
    """Store a request and return the JSON of its answer, which stands for a commit.

    Raises LimitExceededError for a line nested too deep, BatchIdReusedError, and
    django.db.OperationalError or InterfaceError when PostgreSQL is away; sending the same
    request again with the same id is then safe.
    """
    reading = read_lines(lines, batch_id.id, now)
    request = _Request(tenant_id, hashlib.sha256(body).digest(), reading, batch_id, now)
    return _with_retries(lambda: _Recording(request).run())


@dataclass(frozen=True, slots=True)
class _Request:
    tenant_id: UUID
    body_sha256: bytes
    reading: Reading
    batch: BatchId
    now: datetime


def _with_retries(run: Callable[[], str]) -> str:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return run()
        except _KnownMeanwhileError:
            continue  # the next run finds the stored answer
        except OperationalError as error:
            if _state(error) not in _SERIALIZATION_STATES or attempt == _ATTEMPTS:
                raise
            time.sleep(random.uniform(0, _RETRY_SECONDS * attempt))  # noqa: S311
        except IntegrityError as error:
            if _state(error) != _NO_PARTITION_STATE or attempt == _ATTEMPTS:
                raise
            INDEX_DAYS.refresh()  # a partition was dropped; its events go to the inbox now
    raise OperationalError("the same batch id is being stored over and over")


def _state(error: Exception) -> str | None:
    return getattr(error.__cause__, "sqlstate", None)


@dataclass(slots=True)
class _Outcome:
    """What became of the candidates."""

    accepted: int = 0
    duplicates: int = 0
    rejections: list[Rejection] = field(default_factory=list)
    producers: dict[str, tuple[int | None, int | None, int]] = field(default_factory=dict)

    def take(self, candidate: Candidate, *, is_new: bool) -> None:
        """Count an event that is stored, now (`is_new`) or by an earlier batch."""
        self.accepted += is_new
        self.duplicates += not is_new
        self.hear(candidate.event, is_new=is_new)

    def hear(self, event: wire.WireEvent, *, is_new: bool) -> None:
        """Note how far the event's producer has come."""
        if event.producer_id is None:
            return
        if isinstance(event, wire.GapEvent):
            low, high, count = event.from_seq, event.to_seq, 0
        elif event.producer_seq is None:
            low, high, count = None, None, 0
        else:
            low, high, count = event.producer_seq, event.producer_seq, int(is_new)
        first, last, total = self.producers.get(event.producer_id, (None, None, 0))
        self.producers[event.producer_id] = (
            low if first is None else min(first, low if low is not None else first),
            high if last is None else max(last, high if high is not None else last),
            total + count,
        )


class _Recording:
    """One attempt at one request's transaction."""

    def __init__(self, request: _Request) -> None:
        self._request = request
        self._batch_id = request.batch.id
        self._batch_on = batch_day(self._batch_id)
        self._outcome = _Outcome(rejections=list(request.reading.rejections))

    def run(self) -> str:
        request = self._request
        with tenant_scope(request.tenant_id):
            self._writer = IndexWriter(request.tenant_id, self._batch_id, request.now)
            known = self._writer.run("stored_answer", batch_on=self._batch_on)
            if not known:
                return self._store(request.reading.candidates)
            answer, body_sha256 = known[0]
        if bytes(body_sha256) != request.body_sha256:
            raise BatchIdReusedError
        return str(answer)

    def _store(self, candidates: Sequence[Candidate]) -> str:
        calls, repeats = self._placed(candidates)
        refused = {rejection.line for rejection in self._outcome.rejections}
        logged = [candidate for candidate in candidates if candidate.line not in refused]
        for position, candidate in enumerate(logged):
            candidate.position = position
        changed = {_key(row): row for row in self._writer.upsert_calls(calls)}
        completed = [
            (row, call.end.event)
            for call in calls
            if call.end is not None
            and (row := changed.get((call.day, call.invocation_id))) is not None
            and row.took_end
            and row.violation_count
            and isinstance(call.end.event, wire.EndEvent)
        ]
        self._writer.write_violations(completed)
        self._writer.write_deltas(derive(changed.values()))
        self._settle(calls, repeats, changed)
        self._settle_gaps([each for each in logged if isinstance(each.event, wire.GapEvent)])
        self._writer.write_producers(self._outcome.producers)
        self._outcome.rejections.sort(key=lambda rejection: rejection.line)
        self._writer.write_rejections(self._outcome.rejections)
        return self._log(logged)

    def _placed(self, candidates: Sequence[Candidate]) -> tuple[list[Call], list[Repeat]]:
        """The candidates as calls of days the index has; the others are refused."""
        days = {candidate.day for candidate in candidates if candidate.kind is not Kind.GAP}
        missing = INDEX_DAYS.missing(days)
        calls, repeats = merge(candidates)
        alone = [call for call in calls if call.start is None]
        calls, moved = settle_on_stored_days(calls, self._writer.find_near(alone))
        repeats += moved
        if not missing:
            return calls, repeats
        homeless = {id(call) for call in calls if call.day in missing and not call.is_stored}
        gone: set[int] = set()
        for call in calls:
            if id(call) in homeless:
                for candidate in filter(None, (call.start, call.end)):
                    gone.add(candidate.line)
                    self._refuse(candidate, *_NO_DAY)
        for repeat in repeats:
            if repeat.first.line in gone:
                self._refuse(repeat.candidate, *_NO_DAY)
        return (
            [call for call in calls if id(call) not in homeless],
            [repeat for repeat in repeats if repeat.first.line not in gone],
        )

    def _settle(
        self, calls: Iterable[Call], repeats: Iterable[Repeat], changed: dict[_Key, Changed]
    ) -> None:
        """Tell new events from duplicates and conflicts."""
        taken: list[tuple[Call, Candidate]] = []
        for call in calls:
            row = changed.get((call.day, call.invocation_id))
            for candidate, took in (
                (call.start, row is not None and row.took_start),
                (call.end, row is not None and row.took_end),
            ):
                if candidate is None:
                    continue
                if took:
                    self._outcome.take(candidate, is_new=True)
                else:
                    taken.append((call, candidate))
        for candidate, raw in self._stored(taken):
            self._compare(candidate, raw)
        for repeat in repeats:
            self._compare(repeat.candidate, repeat.first.raw)

    def _stored(
        self, taken: Sequence[tuple[Call, Candidate]]
    ) -> Iterator[tuple[Candidate, bytes | None]]:
        """The bytes of the events that hold the slots of these; None for erased ones."""
        if not taken:
            return
        slots = self._writer.taken_slots([call for call, _ in taken])
        places = {}
        for call, candidate in taken:
            slot = slots[call.day, call.invocation_id]
            places[candidate.line] = slot[:2] if candidate.kind is Kind.START else slot[2:]
        stored = read_events(self._request.tenant_id, list(places.values()))
        for _, candidate in taken:
            yield candidate, stored[places[candidate.line]].raw

    def _compare(self, candidate: Candidate, raw: bytes | None) -> None:
        if raw is None or raw == candidate.raw:
            self._outcome.take(candidate, is_new=False)
        else:
            self._refuse(
                candidate, "conflict", "another event of this call and type was stored before"
            )

    def _settle_gaps(self, gaps: Sequence[Candidate]) -> None:
        said: dict[tuple[str, int, int], wire.GapEvent] = {}
        for candidate in gaps:
            assert isinstance(candidate.event, wire.GapEvent)
            said.setdefault(_gap_key(candidate.event), candidate.event)
        fresh = self._writer.write_gaps(list(said.values()))
        for candidate in gaps:
            assert isinstance(candidate.event, wire.GapEvent)
            key = _gap_key(candidate.event)
            self._outcome.take(candidate, is_new=key in fresh)
            fresh.discard(key)

    def _refuse(self, candidate: Candidate, code: str, message: str) -> None:
        self._outcome.rejections.append(reject(candidate, code, message))

    def _log(self, logged: Sequence[Candidate]) -> str:
        """Append the batch to the log; the answer."""
        request, outcome = self._request, self._outcome
        salts = os.urandom(SALT_LENGTH * len(logged))
        salted = [
            (salts[at * SALT_LENGTH : (at + 1) * SALT_LENGTH], candidate.raw)
            for at, candidate in enumerate(logged)
        ]
        leaves = _leaves(logged, salted, microseconds(request.now))
        payload = pack(salted)
        ((size,),) = self._writer.run("advance_ledger", event_count=len(logged))
        first_index = size - len(logged)
        answer: dict[str, Any] = {
            "batch_id": str(self._batch_id),
            "accepted": outcome.accepted,
            "duplicates": outcome.duplicates,
            "rejected": [
                {
                    "line": each.line,
                    "event_id": each.event_id and str(each.event_id),
                    "code": each.code,
                    "message": each.message,
                }
                for each in outcome.rejections
            ],
            "ledger": {"first_index": first_index, "size": size},
        }
        if request.batch.warning is not None:
            answer["warnings"] = [request.batch.warning]
        text = json.dumps(answer)
        stored = self._writer.run(
            "insert_batch",
            batch_on=self._batch_on,
            first_index=first_index,
            event_count=len(logged),
            body_sha256=request.body_sha256,
            answer=text,
            leaves=leaves,
            payload=payload,
        )
        if not stored:
            raise _KnownMeanwhileError
        return text


def _key(row: Changed) -> _Key:
    return days_since_epoch(row.started_on), row.invocation_id


def _gap_key(gap: wire.GapEvent) -> tuple[str, int, int]:
    return gap.producer_id, gap.from_seq, gap.to_seq


def _leaves(
    logged: Sequence[Candidate], salted: Sequence[tuple[bytes, bytes]], received_us: int
) -> bytes:
    return b"".join(
        leaf_of(
            Entry(
                candidate.kind,
                candidate.event_id,
                candidate.invocation_id,
                received_us,
                len(raw),
                commit_of(salt, raw),
            ).to_bytes()
        )
        for candidate, (salt, raw) in zip(logged, salted, strict=True)
    )
