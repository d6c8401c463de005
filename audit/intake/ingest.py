"""Store the lines of a request in one transaction, and compose the answer.

Entry points: `read_request` reads and validates the lines of a request. `record_batches` stores one
request, or several requests of a tenant (`audit.intake.group_commit`). `record_in_scope` does both
for lines that are not a request of their own: spans (`audit.intake.otlp.recording`), and lines that
are sent again from the inbox (`audit.work.inbox`). Storing is one transaction in the tenant's
scope:

1. If the batch id is known, return its stored answer and write nothing.
2. Look up end events that arrived without their start. Events of days that the index does not have
   go to the inbox. The others get their positions in the log.
3. Write one row per call, in order of key (`upsert_invocations`). Only the returned rows say what
   this batch changed. The first attempt assumes that calls with a start event are new and inserts
   them without a lookup, which saves a fifth of the cost: the whole row is then this batch's. If
   such a call is already stored, the attempt fails.
4. Derive violations, traces, rollups and producers from these rows, each in order of key.
5. Compare events whose slot was taken with the stored ones. The same bytes are a duplicate, other
   bytes a conflict, which goes to the inbox. The log keeps all of them. Two kinds of events are
   added behind the sent ones: the server's findings in the outputs of new end events
   (`audit.intake.arrival`), and the spans of calls that name the span they ran in
   (`audit.intake.otlp.executors`).
6. Lock the tenant's ledger head, which puts batches in order, and advance it. Write the batch.
   Commit.

Before all that, values are removed that the tenant's admin wants kept out of the log
(`audit.events.redaction`), and principals become pseudonyms (`audit.intake.principals`). Leaves,
index and inbox are made of the rest.

All writers lock rows in the same order, so they wait for each other but do not deadlock. PostgreSQL
may still find a deadlock, for example at first attempts with events that are sent twice at the same
time. Then `audit.intake.retries` runs the transaction again. `audit.events.candidates` reads and
validates lines, `audit.index.indexing` does steps 2 to 5, and `audit.intake.api` handles HTTP.
"""

import hashlib
import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from django.db import IntegrityError, OperationalError
from tooltrail.ledger import SALT_LENGTH, Kind

from audit.events.batch_ids import BatchId, batch_day
from audit.events.body import Line
from audit.events.candidates import Candidate, Reading, read_lines
from audit.events.instants import microseconds
from audit.events.redaction import redacted
from audit.index.indexing import Indexing, by_batch
from audit.index.outcomes import Outcome
from audit.index.window import INDEX_DAYS
from audit.index.writer import IndexWriter
from audit.intake import metrics
from audit.intake.arrival import Budget, finding_event, judge_arrivals
from audit.intake.definitions import see_definitions
from audit.intake.otlp.executors import join_executors, lock_traces_of
from audit.intake.principals import hidden
from audit.intake.retries import is_of_rivals, with_retries
from audit.ledger.entries import leaf_hash
from audit.log.payload import pack
from audit.log.writer import NewBatch, append_batches, write_rejections
from audit.sql.run import Row
from config.postgresql.schema import SCHEMA
from tenants.scope import tenant_scope

_CAREFUL_S = 10.0  # a second attempt costs as much as the first; one in ten seconds is negligible


class BatchIdReusedError(Exception):
    """A batch id was sent before with another body: nothing is acknowledged."""


@dataclass(frozen=True, slots=True)
class IntakeRequest:
    """A request whose lines have been read, to be stored as the batch `batch`."""

    tenant_id: UUID
    body_sha256: bytes
    reading: Reading
    batch: BatchId
    now: datetime


type Answer = dict[str, Any]
"""The answer to a committed request. Its JSON is the body of the response."""
type Result = Answer | BatchIdReusedError
"""The answer, or the error that replaces it."""


def read_request(
    tenant_id: UUID, body: bytes, lines: Sequence[Line], batch_id: BatchId, now: datetime
) -> IntakeRequest:
    """Read and validate a request's lines, as far as this is possible without the stored calls.

    Raises LimitExceededError for a line nested too deep.
    """
    digest = hashlib.sha256(body).digest()
    return _read(tenant_id, digest, lines, batch_id, now, Budget(), is_otlp=False)


def _read(
    tenant_id: UUID,
    body_sha256: bytes,
    lines: Sequence[Line],
    batch_id: BatchId,
    now: datetime,
    budget: Budget,
    *,
    is_otlp: bool,
) -> IntakeRequest:
    kept = hidden(tenant_id, redacted(tenant_id, lines, is_otlp=is_otlp))
    reading = read_lines(kept, batch_id.id, now)
    judge_arrivals(tenant_id, reading.candidates, budget)
    return IntakeRequest(tenant_id, body_sha256, reading, batch_id, now)


def record_batches(requests: Sequence[IntakeRequest]) -> list[Result]:
    """Store requests of one tenant that share no call, all or none. Returns the result of each.

    Raises django.db.OperationalError or InterfaceError when PostgreSQL is away; sending the same
    requests again with the same ids is then safe.
    """
    answers = with_retries(_Recording(requests, expects_new=_EXPECTATION.is_held()).run)
    for request, answer in zip(requests, answers, strict=True):
        _count_lags(request)
        if request.reading.sightings and not isinstance(answer, BatchIdReusedError):
            with_retries(partial(_see_in_scope_of_its_own, request))
    return answers


def record_in_scope(
    tenant_id: UUID,
    body_sha256: bytes,
    lines: Sequence[Line],
    batch_id: BatchId,
    now: datetime,
    *,
    is_otlp: bool = False,
    is_late: bool = False,
    budget: Budget | None = None,
    expects_new: bool = False,
) -> Answer:
    """Store one request in the transaction of the tenant's open scope, and return its answer.

    Raises what `read_request` and `record_batches` raise, and BatchIdReusedError. The caller owns
    the transaction: run it with `with_retries`, or roll it back after an error. If a request
    becomes several batches, each has the SHA-256 of the whole body, and they share a `budget`.
    `is_late`: the events are not from a sender, so their age says nothing. `expects_new`: their
    calls are almost certainly not stored yet; set it in the first attempt only.
    """
    budget = Budget() if budget is None else budget
    request = _read(tenant_id, body_sha256, lines, batch_id, now, budget, is_otlp=is_otlp)
    (result,) = _Recording([request], expects_new=expects_new).run()
    if not is_late:
        _count_lags(request)
    see_definitions(tenant_id, request.reading.sightings, now)
    return answer_of(result)


def _see_in_scope_of_its_own(request: IntakeRequest) -> None:
    """Store the request's definitions, after its events: a repeated request changes nothing."""
    with tenant_scope(request.tenant_id):
        see_definitions(request.tenant_id, request.reading.sightings, request.now)


def answer_of(result: Result) -> Answer:
    """Return the answer, or raise the BatchIdReusedError."""
    if isinstance(result, BatchIdReusedError):
        raise result
    return result


def _count_lags(request: IntakeRequest) -> None:
    candidates = request.reading.candidates
    ended = [each for each in candidates if each.kind is Kind.END]
    ended_us = [each.ended_us for each in ended if each.interim_state is None]
    metrics.count_lags(ended_us, microseconds(request.now))


class _Expectation:
    """Whether to assume that calls with a start event are new, as almost all are.

    After a wrong assumption it is off for `_CAREFUL_S` seconds.
    """

    def __init__(self) -> None:
        self._careful_until = 0.0

    def is_held(self) -> bool:
        """Whether to assume it now. A wrong assumption costs the request a second attempt."""
        return time.monotonic() >= self._careful_until

    def take_back(self) -> None:
        """Stop assuming it for `_CAREFUL_S` seconds."""
        self._careful_until = time.monotonic() + _CAREFUL_S


_EXPECTATION = _Expectation()


class _Recording:
    """The transaction of requests that share no call. Only the first attempt expects new calls."""

    def __init__(self, requests: Sequence[IntakeRequest], *, expects_new: bool = False) -> None:
        self._requests = requests
        self._expects_new = expects_new
        self._tenant_id = requests[0].tenant_id
        self._now = max(request.now for request in requests)

    def run(self) -> list[Result]:
        try:
            return self._attempt()
        except (IntegrityError, OperationalError) as error:
            if self._expects_new and is_of_rivals(error):
                _EXPECTATION.take_back()
            raise
        finally:
            self._expects_new = False

    def _attempt(self) -> list[Result]:
        self._required = SCHEMA.required()
        # On a cluster, an INSERT without a conflict clause becomes a COPY, which row-level security
        # forbids.
        self._expects_new = self._expects_new and not SCHEMA.is_distributed
        # The pipeline is closed after the scope, so that the COMMIT is sent together with the last
        # statements. Other writers of this tenant wait for the COMMIT, and should not also wait
        # until our thread gets to run.
        with ExitStack() as pipeline:
            with tenant_scope(self._tenant_id, pipeline=pipeline):
                self._writer = IndexWriter(self._now)
                results = self._known()
                fresh = [each for each in self._requests if each.batch.id not in results]
                answers, stored = self._store(fresh) if fresh else ({}, None)
            for batch_id, first_index, count in stored.fetchall() if stored else ():
                results[batch_id] = _placed(answers[batch_id], first_index, count)
        return [results[request.batch.id] for request in self._requests]

    def _known(self) -> dict[UUID, Result]:
        """Results of the requests that were stored before, by batch id."""
        request_cursors = [
            (
                request,
                self._writer.send(
                    "stored_answer",
                    batch_on=batch_day(request.batch.id),
                    batch_id=request.batch.id,
                ),
            )
            for request in self._requests
        ]
        known: dict[UUID, Result] = {}
        for request, cursor in request_cursors:
            for answer, first_index, count, body_sha256 in cursor.fetchall():
                is_same = bytes(body_sha256) == request.body_sha256
                known[request.batch.id] = (
                    _placed(json.loads(answer), first_index, count)
                    if is_same
                    else BatchIdReusedError()
                )
        return known

    def _store(
        self, requests: Sequence[IntakeRequest]
    ) -> tuple[dict[UUID, Answer], psycopg.Cursor[Row]]:
        """Write everything. Returns answers by batch id and a cursor of places (`_placed`)."""
        indexing = Indexing(
            self._tenant_id, self._writer, INDEX_DAYS.missing, expects_new=self._expects_new
        )
        for request in requests:
            indexing.outcomes.of_batch[request.batch.id].rejections += request.reading.rejections
        candidates = [each for request in requests for each in request.reading.candidates]
        lock_traces_of(self._writer, candidates)
        logged: dict[UUID, list[Candidate]] = {request.batch.id: [] for request in requests}
        for batch_id, events in by_batch(indexing.apply(candidates)):
            logged[batch_id] += events
        for end in indexing.with_findings:
            logged[end.batch_id].append(finding_event(end, self._now))
        accounts = join_executors(self._writer, indexing.in_spans, INDEX_DAYS.missing, self._now)
        indexing.absorb(accounts)
        for account in accounts:
            logged[account.batch_id].append(account)
        received_us = microseconds(self._now)
        # Before the sums are written: from then until the commit, others wait for their rows.
        packed = [_packed(events, received_us) for events in logged.values()]
        indexing.write()
        for outcome in indexing.outcomes.of_batch.values():
            outcome.rejections.sort(key=lambda rejection: rejection.line)
        write_rejections(
            self._writer,
            [
                (batch_id, rejection)
                for batch_id, outcome in indexing.outcomes.of_batch.items()
                for rejection in outcome.rejections
            ],
        )
        answers = {
            request.batch.id: _answer(request, indexing.outcomes.of_batch[request.batch.id])
            for request in requests
        }
        stored = append_batches(
            self._writer,
            [
                _batch(request, each, answers[request.batch.id])
                for request, each in zip(requests, packed, strict=True)
            ],
        )
        self._writer.fence(self._required)
        return answers, stored


class _Packed(NamedTuple):
    """The events of a batch in the form the log stores."""

    event_count: int
    leaves: bytes
    payload: bytes


def _packed(logged: Sequence[Candidate], received_us: int) -> _Packed:
    salts = os.urandom(SALT_LENGTH * len(logged))
    salted = [
        (salts[at * SALT_LENGTH : (at + 1) * SALT_LENGTH], candidate.raw)
        for at, candidate in enumerate(logged)
    ]
    return _Packed(len(logged), _leaves(logged, salted, received_us), pack(salted))


def _leaves(
    logged: Sequence[Candidate], salted: Sequence[tuple[bytes, bytes]], received_us: int
) -> bytes:
    return b"".join(
        leaf_hash(
            candidate.kind,
            candidate.event_id,
            candidate.invocation_id,
            received_us=received_us,
            salt=salt,
            raw=raw,
        )
        for candidate, (salt, raw) in zip(logged, salted, strict=True)
    )


def _answer(request: IntakeRequest, outcome: Outcome) -> Answer:
    """The answer to a request, without its place in the ledger."""
    answer: Answer = {
        "batch_id": str(request.batch.id),
        "accepted": outcome.accepted + len(request.reading.sightings),
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
    }
    if request.batch.warning is not None:
        answer["warnings"] = [request.batch.warning]
    return answer


def _placed(answer: Answer, first_index: int, event_count: int) -> Answer:
    """The answer with its place in the ledger.

    An answer stored by an earlier version already contains it, also as the last member.
    """
    return answer | {"ledger": {"first_index": first_index, "size": first_index + event_count}}


def _batch(request: IntakeRequest, packed: _Packed, answer: Answer) -> NewBatch:
    return NewBatch(
        batch_id=request.batch.id,
        event_count=packed.event_count,
        body_sha256=request.body_sha256,
        answer=json.dumps(answer),
        leaves=packed.leaves,
        payload=packed.payload,
    )
