"""Store small requests of a tenant that wait at the same time in one transaction.

The group pays once for the transaction and for the sums of traces and hours, which nearly every
request changes. A tenant's commits wait for each other at the head of its ledger, so fewer commits
wait less (docs/adr/0006). A request that finds a free lane does not wait for others to join.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence

from django.db import InterfaceError, OperationalError
from tooltrail.ledger import Kind

from audit.intake.admission import WAIT_S, OverloadedError
from audit.intake.ingest import (
    Answer,
    IntakeRequest,
    Result,
    answer_of,
    record_batches,
)

LANES = 2
"""Transactions at once, each on its own PostgreSQL connection."""
EVENTS_MAX = 500
"""Events of one transaction."""
SMALL_EVENTS = 100
"""A request with more events is stored alone: its own transaction adds little to its cost."""
SMALL_BYTES = 128 * 1024
"""A request with a larger body is stored alone: waiting requests are held in memory."""


def is_small(line_count: int, size: int) -> bool:
    """Whether a request with this many lines and bytes is stored together with others."""
    return line_count <= SMALL_EVENTS and size <= SMALL_BYTES


class _Waiting:
    """A request that waits in line, or that the thread of another request stores."""

    def __init__(self, request: IntakeRequest) -> None:
        self.request = request
        self.events = len(request.reading.candidates)
        candidates = request.reading.candidates
        self.calls = {each.invocation_id.int for each in candidates if each.kind is not Kind.GAP}
        self.stored = threading.Event()
        """Set once the request has an outcome, or becomes the leader of a group."""
        self.outcome: Result | Exception | None = None


class GroupCommit:
    """The transactions of one process that store small requests."""

    def __init__(
        self,
        store: Callable[[Sequence[IntakeRequest]], list[Result]] = record_batches,
        lanes: int = LANES,
        wait_s: float = WAIT_S,
    ) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._lanes_left = lanes
        self._line: deque[_Waiting] = deque()
        self._wait_s = wait_s
        self._is_stuck = False

    def store(self, request: IntakeRequest) -> Answer:
        """Store a request, alone or together with others, and return its answer.

        Raises what `record_batches` raises, BatchIdReusedError, and OverloadedError when the line
        does not move.
        """
        own = _Waiting(request)
        if self._leads_at_once(own) or self._leads_after_waiting(own):
            self._lead(own)
        if isinstance(own.outcome, Exception):
            raise own.outcome
        assert own.outcome is not None
        return answer_of(own.outcome)

    @property
    def in_line(self) -> int:
        """How many requests wait for a transaction to begin."""
        return len(self._line)

    def _leads_at_once(self, own: _Waiting) -> bool:
        with self._lock:
            if self._lanes_left:
                self._lanes_left -= 1
                return True
            if self._is_stuck:
                raise OverloadedError
            self._line.append(own)
            return False

    def _leads_after_waiting(self, own: _Waiting) -> bool:
        if not own.stored.wait(self._wait_s):
            with self._lock:
                if own in self._line:
                    self._line.remove(own)
                    self._is_stuck = True
                    raise OverloadedError
            own.stored.wait()  # another thread stores it and ends as its own transaction would
        return own.outcome is None

    def _lead(self, own: _Waiting) -> None:
        with self._lock:
            group = [own, *self._company_of(own)]
        try:
            for each, outcome in zip(group, self._outcomes(group), strict=True):
                each.outcome = outcome
        finally:
            for each in group[1:]:
                if each.outcome is None:
                    each.outcome = OperationalError("storing was interrupted")
                each.stored.set()
            with self._lock:
                self._is_stuck = False
                if self._line:
                    self._line.popleft().stored.set()
                else:
                    self._lanes_left += 1

    def _company_of(self, own: _Waiting) -> list[_Waiting]:
        """Take the requests out of the line that can be stored together with `own`.

        Requests of a group share no call, because transactions decide which of two events is first.
        """
        events, calls, ids = own.events, set(own.calls), {own.request.batch.id}
        company = []
        for each in list(self._line):
            if (
                each.request.tenant_id == own.request.tenant_id
                and events + each.events <= EVENTS_MAX
                and calls.isdisjoint(each.calls)
                and each.request.batch.id not in ids
            ):
                company.append(each)
                self._line.remove(each)
                events += each.events
                calls |= each.calls
                ids.add(each.request.batch.id)
        return company

    def _outcomes(self, group: Sequence[_Waiting]) -> Sequence[Result | Exception]:
        try:
            return self._store([each.request for each in group])
        except (OperationalError, InterfaceError) as error:  # PostgreSQL is away for the group
            return [error] * len(group)
        except Exception as error:
            if len(group) == 1:
                return [error]
            return [outcome for each in group for outcome in self._outcomes([each])]


GROUP_COMMIT = GroupCommit()
"""The instance of this process."""
