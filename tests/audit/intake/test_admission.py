"""Admission of requests: served, queued or rejected with 503; and the quota of a key."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http import HTTPStatus
from uuid import UUID

import pytest
from django.db import OperationalError
from django.test import Client, override_settings

from audit.intake import door
from audit.intake.admission import (
    LINE_OF_TENANT,
    RETRY_AFTER_S,
    SLOTS_OF_TENANT,
    Admission,
    OverloadedError,
)
from audit.intake.quota import quota, settle_quota
from audit.models import Batch
from config.http.quota import HOLDS_S, Quota, QuotaExceededError
from tenants.scope import tenant_scope
from tests.support.event_requests import lines, post
from tests.support.factories import Cast, make_call, make_ingest_key
from tests.support.installation import until

TENANT, OTHER = UUID(int=1), UUID(int=2)


def test_places_are_limited_by_count_and_bytes_and_released() -> None:
    admission = Admission(places=2, bytes_max=100)
    with admission.place(60):
        with pytest.raises(OverloadedError), admission.place(41):
            pass
        with admission.place(40), pytest.raises(OverloadedError), admission.place(0):
            pass
    with admission.place(100):
        pass


def test_waiting_request_gets_the_next_free_slot() -> None:
    admission = Admission(slots=1, wait_s=60)
    stored = threading.Event()

    def store() -> None:
        with admission.slot(TENANT):
            stored.set()

    with admission.slot(TENANT):
        other = threading.Thread(target=store)
        other.start()
        until(lambda: admission.in_line == 1)
        assert not stored.is_set()
    other.join()
    assert stored.is_set()
    assert admission.in_line == 0


def test_request_is_rejected_when_no_slot_is_released_in_time() -> None:
    admission = Admission(slots=1, wait_s=0.01)
    with admission.slot(TENANT):
        with pytest.raises(OverloadedError), admission.slot(TENANT):
            pass
        admission._wait_s = 3600  # a request that waited now would wait too long for this test
        with pytest.raises(OverloadedError), admission.slot(TENANT):
            pass
    with admission.slot(TENANT):
        pass


def test_one_tenant_cannot_hold_all_slots_or_fill_the_queue() -> None:
    """Eight requests of half a minute each used to block all other tenants for as long."""
    admission = Admission(slots=3, wait_s=60)
    over, outcomes = threading.Event(), Counter[str]()

    def store(tenant_id: UUID) -> None:
        try:
            with admission.slot(tenant_id):
                outcomes["stored"] += 1
                over.wait()
        except OverloadedError:
            outcomes["rejected"] += 1

    greedy = [threading.Thread(target=store, args=(TENANT,)) for _ in range(8)]
    for thread in greedy:
        thread.start()
    until(lambda: outcomes["stored"] == SLOTS_OF_TENANT and admission.in_line == LINE_OF_TENANT)
    until(lambda: outcomes["rejected"] == len(greedy) - SLOTS_OF_TENANT - LINE_OF_TENANT)
    with admission.slot(OTHER):  # without waiting
        pass
    over.set()
    for thread in greedy:
        thread.join()
    assert outcomes["stored"] == SLOTS_OF_TENANT + LINE_OF_TENANT
    assert not admission._held
    assert not admission._waiting


def test_places_and_bytes_are_limited_per_tenant() -> None:
    admission = Admission(places_of_tenant=2, bytes_of_tenant=100)
    with admission.share(TENANT, 40), admission.share(TENANT, 40):
        with pytest.raises(OverloadedError), admission.share(TENANT, 0):
            pass
        with admission.share(OTHER, 40):
            with pytest.raises(OverloadedError), admission.share(OTHER, 61):
                pass
            with admission.share(OTHER, 60):
                pass
    with admission.share(TENANT, 100):
        pass
    assert not admission._placed
    assert not admission._bytes_placed


def test_tenant_at_its_limit_does_not_block_the_queue_for_others() -> None:
    admission = Admission(slots=3, wait_s=0.01)
    with admission.slot(TENANT), admission.slot(TENANT):
        with pytest.raises(OverloadedError), admission.slot(TENANT):
            pass
        with admission.slot(OTHER):
            admission._wait_s = 60
            waiting = threading.Thread(target=lambda: held_by(admission))
            waiting.start()
            until(lambda: admission.in_line == 1)  # it waits instead of being rejected
    waiting.join()


def test_pace_is_requested_only_while_requests_wait() -> None:
    admission = Admission(slots=1, wait_s=60)
    assert admission.next_after_ms() == 0
    with ExitStack() as held:
        held.enter_context(admission.slot(TENANT))
        waiting = threading.Thread(target=lambda: held_by(admission))
        waiting.start()
        until(lambda: admission.in_line == 1)
        admission._mean_s = 0.25
        assert admission.next_after_ms() == 250
        admission._mean_s = 0.05
        assert admission.next_after_ms() == 0
    waiting.join()
    assert admission.next_after_ms() == 0


def test_pace_is_requested_after_a_rejection() -> None:
    admission = Admission(places=1)
    with admission.place(0), pytest.raises(OverloadedError), admission.place(0):
        pass
    assert admission.next_after_ms() == 1000 * RETRY_AFTER_S
    admission._refused_at -= RETRY_AFTER_S
    assert admission.next_after_ms() == 0


def held_by(admission: Admission) -> None:
    with admission.slot(TENANT):
        pass


def test_request_without_a_place_gets_503_and_stores_nothing(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = make_ingest_key(acme.tenant)
    admission = Admission(places=1)
    monkeypatch.setattr(door, "ADMISSION", admission)
    with admission.place(0):
        refused = post(key, lines(make_call()))
    assert refused.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert int(refused.headers["Retry-After"]) > 0
    assert refused.headers["Connection"] == "close"
    assert refused.json()["code"] == "overloaded"
    with tenant_scope(acme.tenant.id):
        assert not Batch.objects.for_tenant(acme.tenant.id).exists()
    assert post(key, lines(make_call())).status_code == HTTPStatus.OK


def test_overloaded_server_answers_503_before_checking_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admission = Admission(places=1)
    monkeypatch.setattr(door, "ADMISSION", admission)
    with admission.place(0):
        assert post("no key", b"x").status_code == HTTPStatus.SERVICE_UNAVAILABLE
        refused = Client().post("/v1/traces", b"", content_type="application/x-protobuf")
    assert refused.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    assert int(refused.headers["Retry-After"]) > 0
    assert refused.headers["Content-Type"] == "application/x-protobuf"
    assert b"Too many requests at once." in refused.content
    assert post("no key", b"x").status_code == HTTPStatus.UNAUTHORIZED


def test_too_large_content_length_gets_413_without_retry_after(acme: Cast) -> None:
    key = make_ingest_key(acme.tenant)
    answer = post(key, b"x", content_length=str(1 << 40))
    assert answer.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert "Retry-After" not in answer.headers


def test_answer_contains_the_pace_under_load(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    key = make_ingest_key(acme.tenant)
    assert "next_after_ms" not in post(key, lines(make_call())).json()
    monkeypatch.setattr(Admission, "next_after_ms", lambda _: 700)
    assert post(key, lines(make_call())).json()["next_after_ms"] == 700


def test_quota_allows_a_burst_and_reports_the_retry_time() -> None:
    bucket = Quota[str](10)
    bucket.check("a")
    bucket.take("a", 250)
    with pytest.raises(QuotaExceededError) as refused:
        bucket.check("a")
    assert 14 < refused.value.retry_after_s <= 15.1
    bucket.check("b")


@pytest.mark.slow
def test_processes_share_the_quota_of_a_key(acme: Cast) -> None:
    key = (acme.tenant.id, "shared")
    per_second, request = 50, 10
    with override_settings(EVENTS_PER_SECOND=per_second):
        processes = [Quota(per_second, settle_quota) for _ in range(4)]
        stored, began = 0, time.monotonic()
        while time.monotonic() < began + 3:
            for process in processes:
                with suppress(QuotaExceededError):
                    process.check(key)
                    process.take(key, request)
                    stored += request
        seconds = time.monotonic() - began
    allowed = per_second * (HOLDS_S + seconds)
    assert allowed - per_second <= stored <= allowed + len(processes) * (per_second + request)


def test_failed_settlement_is_made_up_for() -> None:
    taken = list[int]()

    def settle(_key: str, events: int) -> float:
        taken.append(events)
        if len(taken) == 2:
            raise OperationalError("the database cannot be reached")
        return 100.0 - sum(taken)

    bucket = Quota(10, settle)
    bucket.check("a")
    bucket.take("a", 30)
    with pytest.raises(OperationalError):
        bucket.check("a")
    bucket.check("a")
    assert taken == [0, 30, 30], "nothing that was sent is forgotten"


@pytest.fixture
def small_quota() -> Iterator[None]:
    quota.cache_clear()
    with override_settings(EVENTS_PER_SECOND=1):
        yield
    quota.cache_clear()


@pytest.mark.usefixtures("small_quota")
def test_key_over_its_quota_gets_429_and_another_key_does_not(acme: Cast, globex: Cast) -> None:
    key = make_ingest_key(acme.tenant)
    many = lines(event for _ in range(20) for event in make_call())
    assert post(key, many).status_code == HTTPStatus.OK
    refused = post(key, lines(make_call()))
    assert refused.status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert int(refused.headers["Retry-After"]) >= 30
    assert refused.json()["code"] == "quota"
    assert post(make_ingest_key(globex.tenant), lines(make_call())).status_code == HTTPStatus.OK
