"""Load on a whole installation; each acknowledged event must be stored once."""

import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import psycopg
import urllib3

from config.postgresql.database import with_database
from config.postgresql.roles import DATABASE
from tests.support.event_requests import NDJSON, lines, new_batch_id
from tests.support.factories import make_call
from tests.support.installation import Installation, until

CALLS = 20  # in a batch
PAUSE_S = 0.05  # pause of a sender after a 503; an executor's is longer
TRANSIENT = {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS}


@dataclass
class Load:
    """Senders that send each batch until it is acknowledged, and one in ten once more."""

    url: str
    key: str
    stop: threading.Event = field(default_factory=threading.Event)
    acknowledged: dict[str, int] = field(default_factory=dict)  # batch id: new events
    statuses: set[int] = field(default_factory=set)
    broken: int = 0
    refused: int = 0

    def run(self) -> None:
        """Send until the test stops it."""
        with urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(30)) as http:
            while not self.stop.is_set():
                body = lines(event for _ in range(CALLS) for event in make_call())
                for _ in range(1 + (random.random() < 0.1)):
                    batch_id = new_batch_id()
                    self.acknowledged[batch_id] = self._send(http, batch_id, body)
                if random.random() < 0.2:
                    http.clear()  # a new connection finds a process that has just begun to serve

    @contextmanager
    def sending(self) -> Iterator["Load"]:
        """Send in a thread until the block ends."""
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield self
        finally:
            self.stop.set()
            thread.join()

    def wait_for(self, more: int) -> None:
        """Wait until so many more batches are acknowledged: the last fault is survived."""
        goal = len(self.acknowledged) + more
        until(lambda: len(self.acknowledged) >= goal or self.stop.is_set())
        assert not self.stop.is_set(), self.statuses

    def wait_for_refusals(self, more: int) -> None:
        """Wait until so many more requests were told to retry later."""
        goal = self.refused + more
        until(lambda: self.refused >= goal or self.stop.is_set())
        assert not self.stop.is_set(), self.statuses

    def _send(self, http: urllib3.PoolManager, batch_id: str, body: bytes) -> int:
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": NDJSON,
            "Idempotency-Key": batch_id,
        }
        while True:
            try:
                answer = http.request(
                    "POST", f"{self.url}/api/v1/events", body=body, headers=headers
                )
            except urllib3.exceptions.HTTPError:
                self.broken += 1  # killed while it answered
                self.stop.wait(PAUSE_S)
                continue
            self.statuses.add(answer.status)
            if answer.status == HTTPStatus.OK:
                return int(json.loads(answer.data)["accepted"])
            if answer.status not in TRANSIENT or "Retry-After" not in answer.headers:
                self.stop.set()
                raise AssertionError(f"{answer.status}: {answer.data!r}")
            self.refused += 1
            self.stop.wait(PAUSE_S)


def assert_kept(installation: Installation, load: Load) -> None:
    """Nothing acknowledged is missing, nothing is stored twice, and all tables agree.

    The worker may append the server's own entries meanwhile, so they are left out, and everything
    is read as it was at one time.
    """
    url = with_database(installation.postgres.admin_url, DATABASE)
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

        def one(query: str) -> Any:
            row = connection.execute(query).fetchone()
            assert row is not None
            return row[0] if len(row) == 1 else row

        of_senders = "FROM batch WHERE NOT is_own"
        events = sum(load.acknowledged.values())
        stored = {str(row[0]) for row in connection.execute(f"SELECT batch_id {of_senders}")}
        assert stored == set(load.acknowledged)
        accepted = one(f"SELECT sum((answer::json ->> 'accepted')::int) {of_senders}")
        assert accepted == events
        assert one("SELECT count(start_batch_id) + count(end_batch_id) FROM invocation") == events
        assert one("SELECT count(*), count(DISTINCT invocation_id) FROM invocation") == (
            events // 2,
            events // 2,
        )
        completed = one("SELECT sum(completed_count) FROM rollup")
        assert completed == events // 2
        assert one("SELECT sum(completed_count) FROM trace") == events // 2
        logged = len(load.acknowledged) * 2 * CALLS
        assert one(f"SELECT sum(event_count) {of_senders}") == logged
        assert one("SELECT size FROM ledger_head") == one("SELECT sum(event_count) FROM batch")
        holes = """
            SELECT count(*) FROM (
                SELECT first_index - lag(first_index + event_count, 1, 0::bigint)
                    OVER (ORDER BY first_index) AS hole FROM batch
            ) AS holes WHERE hole <> 0
        """
        assert one(holes) == 0
        assert one("SELECT count(*) FROM rejected_event") == 0
