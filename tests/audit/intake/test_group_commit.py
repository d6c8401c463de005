"""Concurrent small requests are stored in one transaction, and answered one by one."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, connection
from tooltrail.ledger import Kind

from audit.events.batch_ids import BatchId
from audit.events.candidates import Candidate, Reading
from audit.events.wire import WireEvent
from audit.intake import group_commit, ingest
from audit.intake.admission import OverloadedError
from audit.intake.group_commit import EVENTS_MAX, GroupCommit, is_small
from audit.intake.ingest import Answer, BatchIdReusedError, IntakeRequest, Result
from audit.models import Batch
from tenants.models import new_id
from tenants.scope import tenant_scope
from tests.support.event_requests import lines, new_batch_id, post
from tests.support.factories import Cast, make_call, make_ingest_key
from tests.support.recount import assert_consistent

TENANT = UUID(int=1)
UNREAD = cast(WireEvent, None)  # grouping does not read events


def request(
    *invocations: int, tenant_id: UUID = TENANT, batch_id: UUID | None = None, gaps: int = 0
) -> IntakeRequest:
    """A request with the starts of these invocations, and that many gaps."""
    batch = BatchId(batch_id or new_id())
    candidates = [
        Candidate(batch.id, 1, b"{}", UNREAD, uuid4(), kind, UUID(int=each))
        for kind, each in [(Kind.START, n) for n in invocations] + [(Kind.GAP, 0)] * gaps
    ]
    return IntakeRequest(tenant_id, b"", Reading(candidates), batch, datetime.now(UTC))


def answer_to(request: IntakeRequest) -> Result:
    """An answer that is different for each request."""
    return {"batch_id": str(request.batch.id)}


class Store:
    """Replaces PostgreSQL: records each group, and blocks it until `release`."""

    def __init__(self, answer: Callable[[IntakeRequest], Result] | None = None) -> None:
        self.groups: list[list[IntakeRequest]] = []
        self.goes = threading.Semaphore(0)
        self.began = threading.Event()
        self._answer = answer or answer_to

    def __call__(self, requests: Sequence[IntakeRequest]) -> list[Result]:
        self.groups.append(list(requests))
        self.began.set()
        assert self.goes.acquire(timeout=60)
        return [self._answer(each) for each in requests]

    def release(self) -> None:
        """Release all groups, later ones, too."""
        self.goes.release(100)


def until(group_commit: GroupCommit, in_line: int) -> None:
    """Wait until that many requests are in line; AssertionError after 20 seconds."""
    deadline = time.monotonic() + 20
    while group_commit.in_line != in_line:
        assert time.monotonic() < deadline, f"{group_commit.in_line} in line, not {in_line}"
        time.sleep(0.002)


class Together:
    """Requests that wait while the first one is being stored."""

    def __init__(self, store: Store, pool: ThreadPoolExecutor, **options: Any) -> None:
        self.store, self.pool = store, pool
        # On a busy machine, requests may be in line for longer than the default permits.
        self.group_commit = GroupCommit(store, lanes=1, **({"wait_s": 60.0} | options))
        self.first = pool.submit(self.group_commit.store, request(10**6))
        assert store.began.wait(20)

    def submit(self, *requests: IntakeRequest) -> list[Future[Answer]]:
        """Submit these requests one after the other."""
        futures = []
        for each in requests:
            in_line = self.group_commit.in_line
            futures.append(self.pool.submit(self.group_commit.store, each))
            until(self.group_commit, in_line + 1)
        return futures

    def sizes(self) -> list[int]:
        """The number of requests in each transaction so far."""
        return [len(group) for group in self.store.groups]


@contextmanager
def together(store: Store | None = None, **options: Any) -> Iterator[Together]:
    """While the first request is stored, others can be submitted; released at the end."""
    store = store or Store()
    with ThreadPoolExecutor(12) as pool:
        try:
            yield Together(store, pool, **options)
        finally:
            store.release()


def test_single_request_is_stored_immediately() -> None:
    store = Store()
    store.release()
    one = request(1)
    assert GroupCommit(store).store(one) == answer_to(one)
    assert store.groups == [[one]]


def test_waiting_requests_are_stored_together_in_order() -> None:
    requests = [request(n, n + 100) for n in range(1, 6)]
    with together() as here:
        futures = here.submit(*requests)
        here.store.release()
        assert [each.result(20) for each in futures] == [answer_to(each) for each in requests]
        assert here.store.groups[1:] == [requests]
        assert here.group_commit.in_line == 0


@pytest.mark.parametrize(
    ("requests", "sizes"),
    [
        ([request(1), request(2, tenant_id=UUID(int=2)), request(3)], [2, 1]),
        ([request(1, 2), request(2, 3), request(4)], [2, 1]),
        ([request(batch_id=UUID(int=7)), request(batch_id=UUID(int=7))], [1, 1]),
        ([request(gaps=2), request(gaps=2)], [2]),
        ([request(*range(n, n + 200)) for n in (1, 201, 401)] + [request(601)], [3, 1]),
    ],
    ids=["another tenant", "a shared call", "the same request twice", "only gaps", "too many"],
)
def test_group_contains_one_tenant_distinct_calls_and_limited_events(
    requests: list[IntakeRequest], sizes: list[int]
) -> None:
    with together() as here:
        futures = here.submit(*requests)
        here.store.release()
        assert [each.result(20) for each in futures] == [answer_to(each) for each in requests]
        assert here.sizes() == [1, *sizes]
        assert all(
            sum(len(each.reading.candidates) for each in group) <= EVENTS_MAX
            for group in here.store.groups
        )


def test_each_request_gets_its_own_answer_or_rejection() -> None:
    reused = request(2)
    store = Store(lambda each: BatchIdReusedError() if each is reused else answer_to(each))
    with together(store) as here:
        fine, refused = here.submit(request(1), reused)
        store.release()
        assert fine.result(20)
        with pytest.raises(BatchIdReusedError):
            refused.result(20)
        assert here.sizes() == [1, 2]


def test_failing_request_does_not_affect_the_others() -> None:
    bad = request(2)

    def answer(each: IntakeRequest) -> Result:
        if each is bad:
            raise KeyError("a defect of ours")
        return answer_to(each)

    with together(Store(answer)) as here:
        before, broken, after = here.submit(request(1), bad, request(3))
        here.store.release()
        assert before.result(20)
        assert after.result(20)
        with pytest.raises(KeyError):
            broken.result(20)
        assert here.sizes() == [1, 3, 1, 1, 1]


def test_database_failure_is_reported_to_all_waiting_requests() -> None:
    def away(_: IntakeRequest) -> Result:
        raise OperationalError("away")

    with together(Store(away)) as here:
        futures = [here.first, *here.submit(request(1), request(2))]
        here.store.release()
        for each in futures:
            with pytest.raises(OperationalError):
                each.result(20)
        assert here.sizes() == [1, 2]


@pytest.mark.slow
def test_waiting_request_is_rejected_after_the_timeout() -> None:
    with together(wait_s=0.5) as here:
        late = here.pool.submit(here.group_commit.store, request(1))
        with pytest.raises(OverloadedError):
            late.result(20)
        assert here.group_commit.in_line == 0
        with pytest.raises(OverloadedError):  # now at once
            here.group_commit.store(request(2))
        here.store.release()
        assert here.first.result(20)
        assert here.group_commit.store(request(3))


@pytest.mark.slow
def test_request_being_stored_waits_until_the_end() -> None:
    """However long it takes: it may be committed, so "retry later" could be wrong."""
    with together(wait_s=4) as here:  # enough for both to be in line before the first is released
        futures = here.submit(request(1), request(2))
        here.store.goes.release()  # release the first; these are being stored now
        assert here.first.result(20)
        time.sleep(4.5)
        here.store.release()
        assert all(each.result(20) for each in futures)
        assert here.sizes() == [1, 2]


def test_small_requests_are_limited_by_events_and_bytes() -> None:
    assert is_small(group_commit.SMALL_EVENTS, group_commit.SMALL_BYTES)
    assert not is_small(group_commit.SMALL_EVENTS + 1, 1)
    assert not is_small(1, group_commit.SMALL_BYTES + 1)


@pytest.mark.slow
def test_group_stores_the_same_as_separate_requests(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One transaction, a batch for each request, in order, and the same answers as alone."""
    key = make_ingest_key(acme.tenant)
    stored = make_call(trace_id="shared")
    known_id, known = new_batch_id(), lines(make_call(trace_id="shared"))
    first = post(key, known, idempotency_key=known_id).json()
    assert post(key, lines(stored)).status_code == 200
    seq: dict[str, Any] = {"producer_id": "p", "trace_id": "shared"}
    gap = {"type": "gap", "producer_id": "p", "from_seq": 3, "to_seq": 4, "reason": "disk"}
    bodies = [
        (lines(make_call(**seq, producer_seq=1)), new_batch_id()),
        (lines(stored) + lines(make_call(**seq, is_error=True)), new_batch_id()),
        (known, known_id),
        (lines(make_call()), known_id),
        (b"not JSON\n" + lines([stored[1] | {"duration_ms": 7.5}]), new_batch_id()),
        (lines([gap | {"count": 2}, *make_call(**seq, is_open=True)]), new_batch_id()),
    ]
    holding, groups = threading.Event(), []

    def held(requests: Sequence[IntakeRequest]) -> list[Result]:
        groups.append(len(requests))
        assert holding.wait(60)
        return ingest.record_batches(requests)

    group_commit = GroupCommit(held, lanes=1, wait_s=60)
    monkeypatch.setattr("audit.intake.api.GROUP_COMMIT", group_commit)

    def send(body: bytes, batch_id: str) -> Any:
        try:
            return post(key, body, idempotency_key=batch_id)
        finally:
            connection.close()  # this thread's

    with ThreadPoolExecutor(len(bodies) + 1) as pool:
        try:
            pool.submit(send, lines(make_call()), new_batch_id())
            deadline = time.monotonic() + 20
            while not groups and time.monotonic() < deadline:
                time.sleep(0.002)
            futures = []
            for number, body in enumerate(bodies, 1):
                futures.append(pool.submit(send, *body))
                until(group_commit, number)
        finally:
            holding.set()
        answers = [each.result(60) for each in futures]

    # The conflict is about the duplicate's call, and one batch id is repeated: those go later.
    assert groups == [1, 4, 2]
    plain, duplicate, again, reused, conflict, lost = (each.json() for each in answers)
    assert (plain["accepted"], plain["duplicates"], plain["rejected"]) == (2, 0, [])
    assert (duplicate["accepted"], duplicate["duplicates"]) == (2, 2)
    assert again == first
    assert (answers[3].status_code, reused["code"]) == (422, "batch_id_reused")
    assert [(each["line"], each["code"]) for each in conflict["rejected"]] == [
        (1, "not_json"),
        (2, "conflict"),
    ]
    assert lost["accepted"] == 2
    places = [each["ledger"]["first_index"] for each in (plain, duplicate, lost, conflict)]
    assert places == sorted(places)
    assert plain["ledger"]["size"] == duplicate["ledger"]["first_index"]
    assert duplicate["ledger"]["size"] == lost["ledger"]["first_index"]
    with tenant_scope(acme.tenant.id):
        batches = Batch.objects.for_tenant(acme.tenant.id)
        together_ids = [each["batch_id"] for each in (plain, duplicate, lost)]
        transactions = batches.filter(batch_id__in=together_ids).extra(select={"by": "xmin"})
        assert len({str(each.by) for each in transactions}) == 1
        assert len({each.received_at for each in transactions}) == 1
    assert_consistent(acme.tenant)
