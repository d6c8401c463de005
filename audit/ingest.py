"""From the lines of a request to one committed transaction, and the answer to it.

`record_batch` does, in one transaction of the tenant's scope:

1. Is the batch id known? Then its answer again, and nothing is written.
2. Ends that came without their start are looked up; events of days the index does not have
   go to the inbox; what is left gets its positions in the log.
3. One row per call, in order of key (`upsert_invocations`). What it returns, and nothing else,
   says what this batch changed.
4. Derived from that: violations, traces, rollups, producers, each in order of key.
5. Events whose slot was taken are compared with the stored ones: the same bytes are a
   duplicate, others a conflict, which goes to the inbox. The log keeps all of them.
   What the server found in the outputs of ends that took their places (`audit.arrival`)
   becomes events behind those that were sent.
6. The tenant's ledger head is taken, which puts batches in order, and moved on; the batch
   is written. Commit.

What a tenant's admin wants kept out of the log is taken out before all that
(`audit.redaction`): leaf, index and inbox are made of what is left.

Two writers lock rows in the same order, so they wait for each other but do not deadlock; if
PostgreSQL finds one all the same, the transaction is run again. Reading and judging lines is
`audit.candidates`', steps 2 to 5 are `audit.indexing`'s, HTTP `audit.api`'s.
"""

import hashlib
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, OperationalError
from psycopg.types.numeric import Int4, Int8
from tooltrail.ledger import SALT_LENGTH, Entry, Kind, commit_of, leaf_of

from audit import metrics
from audit.arrival import finding_event, judge_arrivals
from audit.batch_ids import BatchId, batch_day
from audit.body import Line
from audit.candidates import Candidate, Reading, read_lines
from audit.index_writer import IndexWriter
from audit.indexing import Indexing, Outcome
from audit.instants import microseconds
from audit.log import pack
from audit.redaction import redacted
from audit.window import INDEX_DAYS
from tenants.scope import tenant_scope

_ATTEMPTS = 5
_RETRY_SECONDS = 0.02  # grows with each attempt, at random, so that rivals part
_SERIALIZATION_STATES = {"40001", "40P01"}
_NO_PARTITION_STATE = "23514"


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
    reading = read_lines(redacted(tenant_id, lines), batch_id.id, now)
    judge_arrivals(tenant_id, reading.candidates)
    request = _Request(tenant_id, hashlib.sha256(body).digest(), reading, batch_id, now)
    answer = with_retries(lambda: _Recording(request).run())
    _count_lags(reading, now)
    return answer


def record_in_scope(
    tenant_id: UUID, body_sha256: bytes, lines: Sequence[Line], batch_id: BatchId, now: datetime
) -> str:
    """As `record_batch`, as a part of the transaction of the tenant's open scope.

    That transaction is the caller's, to be run by `with_retries`. Of a request that becomes
    several batches each has the whole body's SHA-256.
    """
    reading = read_lines(redacted(tenant_id, lines), batch_id.id, now)
    judge_arrivals(tenant_id, reading.candidates)
    answer = _Recording(_Request(tenant_id, body_sha256, reading, batch_id, now)).run()
    _count_lags(reading, now)
    return answer


def _count_lags(reading: Reading, now: datetime) -> None:
    ended_us = [each.ended_us for each in reading.candidates if each.kind is Kind.END]
    metrics.count_lags(ended_us, microseconds(now))


@dataclass(frozen=True, slots=True)
class _Request:
    tenant_id: UUID
    body_sha256: bytes
    reading: Reading
    batch: BatchId
    now: datetime


def with_retries[T](run: Callable[[], T]) -> T:
    """Run a whole transaction, again while PostgreSQL ends it for the sake of others.

    Raises django.db.OperationalError when that goes on, or for any other reason.
    """
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


class _Recording:
    """One attempt at one request's transaction."""

    def __init__(self, request: _Request) -> None:
        self._request = request
        self._batch_id = request.batch.id
        self._batch_on = batch_day(self._batch_id)

    def run(self) -> str:
        request = self._request
        with tenant_scope(request.tenant_id):
            self._writer = IndexWriter(request.tenant_id, self._batch_id, request.now)
            known = self._writer.run("stored_answer", batch_on=self._batch_on)
            if not known:
                return self._store(request.reading)
            answer, body_sha256 = known[0]
        if bytes(body_sha256) != request.body_sha256:
            raise BatchIdReusedError
        return str(answer)

    def _store(self, reading: Reading) -> str:
        indexing = Indexing(
            self._request.tenant_id, self._writer, INDEX_DAYS.missing, reading.rejections
        )
        logged = indexing.apply(reading.candidates)
        logged += [finding_event(end, self._request.now) for end in indexing.found]
        with self._writer.pipeline():
            indexing.write()
            indexing.outcome.rejections.sort(key=lambda rejection: rejection.line)
            self._writer.write_rejections(indexing.outcome.rejections)
            return self._log(logged, indexing.outcome)

    def _log(self, logged: Sequence[Candidate], outcome: Outcome) -> str:
        """Append the batch to the log; the answer."""
        request = self._request
        salts = os.urandom(SALT_LENGTH * len(logged))
        salted = [
            (salts[at * SALT_LENGTH : (at + 1) * SALT_LENGTH], candidate.raw)
            for at, candidate in enumerate(logged)
        ]
        leaves = _leaves(logged, salted, microseconds(request.now))
        payload = pack(salted)
        ((size,),) = self._writer.run("advance_ledger", event_count=Int4(len(logged)))
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
            first_index=Int8(first_index),  # as such: psycopg would take the least type that fits
            event_count=Int4(len(logged)),
            body_sha256=request.body_sha256,
            answer=text,
            leaves=leaves,
            payload=payload,
        )
        if not stored:
            raise _KnownMeanwhileError
        return text


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
