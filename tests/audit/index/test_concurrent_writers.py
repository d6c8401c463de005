"""Concurrent writers: the counts always equal those of the calls.

Four writers, each with its own connection and real commits, send all events of the same calls,
each in another order (ends before starts as often as after) and in other batches. Some events are
sent twice in a request, some requests twice under the same id. Afterwards the stored counts must
equal a GROUP BY over `invocation`, and the log (`recount.assert_consistent`).
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import urllib3

from audit.index.writer import IndexWriter
from audit.intake import ingest, retries
from audit.models import Batch, Invocation
from audit.sql import arrays
from tenants.scope import tenant_scope
from tests.support.call_histories import MIDNIGHT, Event, some_call
from tests.support.concurrent_writers import (
    Request,
    Send,
    random_batches,
    sender_in_process,
    write_at_once,
)
from tests.support.event_requests import (
    NDJSON,
    Answer,
    lines,
    new_batch_id,
    post,
)
from tests.support.factories import Cast, make_call, make_ingest_key
from tests.support.recount import assert_consistent
from tests.support.server import LiveServer

WRITERS = 4
CALLS = 150


def over_http(cast: Cast, server: LiveServer) -> Send:
    """A function that sends requests of this tenant to the server over HTTP."""
    key = make_ingest_key(cast.tenant)
    pool = urllib3.PoolManager(maxsize=WRITERS, retries=False)

    def send(request: Request) -> Answer:
        batch_id, body, _ = request
        headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": NDJSON,
            "Idempotency-Key": batch_id,
        }
        answer = pool.request("POST", f"{server.url}/api/v1/events", body=body, headers=headers)
        return Answer(answer.status, answer.headers, answer.data)

    return send


def stored_answer(answer: Answer) -> dict[str, Any]:
    """The part of a response that is equal each time the same request is sent."""
    document: dict[str, Any] = answer.json()
    document.pop("next_after_ms", None)
    return document


def check_history(cast: Cast, send: Send, seed: int) -> None:
    """Send a history with four writers, and compare what is stored with what was sent."""
    rng = random.Random(seed)
    calls = [some_call(rng, number) for number in range(CALLS)]
    events = [event for call in calls for event in call]
    shares = [random_batches(rng, events) for _ in range(WRITERS)]
    sent = {request[0]: request for share in shares for request in share}
    # Another writer sends some requests a second time, perhaps while the first is being stored.
    for share, others in zip(shares, [*shares[1:], shares[0]], strict=True):
        for request in rng.sample(others, 3):
            share.insert(rng.randrange(len(share)), request)
    answers = write_at_once([(send, share) for share in shares])

    accepted = 0
    for batch_id, (first, *repeats) in answers.items():
        assert first.status_code == 200, first.content
        for each in repeats:
            assert (each.status_code, stored_answer(each)) == (200, stored_answer(first))
        document = first.json()
        assert document["rejected"] == []
        assert document["accepted"] + document["duplicates"] == sent[batch_id][2]
        accepted += document["accepted"]
    assert set(answers) == set(sent)
    assert accepted == len(events), "each event is new to exactly one request"
    with tenant_scope(cast.tenant.id):
        stored = Invocation.objects.for_tenant(cast.tenant.id)
        states = {str(call.invocation_id): call.state for call in stored}
        logged = sum(batch.event_count for batch in Batch.objects.for_tenant(cast.tenant.id))
    assert set(states) == {call[0]["invocation_id"] for call in calls}
    assert {name for name, state in states.items() if state == "open"} == {
        call[0]["invocation_id"] for call in calls if len(call) == 1
    }
    assert logged == sum(count for _, _, count in sent.values())
    assert_consistent(cast.tenant)


@pytest.fixture
def no_retries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A deadlock is an error instead of a reason to retry."""
    monkeypatch.setattr(retries, "_SERIALIZATION_STATES", frozenset())
    yield


@pytest.fixture
def expecting_repeats(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The server expects repeated calls, so it takes no start for a new call."""
    monkeypatch.setattr(ingest, "_CAREFUL_S", 3600.0)
    ingest._EXPECTATION.take_back()
    yield


@pytest.mark.slow
@pytest.mark.generated(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.usefixtures("no_retries", "expecting_repeats")
def test_four_concurrent_writers_produce_the_same_index_as_one(acme: Cast, seed: int) -> None:
    """Without retries: there must be no deadlock."""
    check_history(acme, sender_in_process(acme), seed)


@pytest.mark.slow
def test_four_concurrent_writers_with_new_calls_produce_the_same_index(acme: Cast) -> None:
    check_history(acme, sender_in_process(acme), seed=5)


@pytest.mark.slow
def test_four_http_clients_produce_the_same_index(acme: Cast, live_server: LiveServer) -> None:
    check_history(acme, over_http(acme, live_server), seed=4)


@pytest.mark.generated(1)
@pytest.mark.slow
@pytest.mark.parametrize("shared", ["trace_id", "tool_name", "producer_id"])
@pytest.mark.usefixtures("no_retries")
def test_writers_without_shared_calls_do_not_deadlock(acme: Cast, shared: str) -> None:
    """They share only traces, tools or producers, hundreds of them, so no other lock is first."""

    def share(writer: int) -> list[Request]:
        rng = random.Random(writer)
        names = [f"n{number}" for number in range(200)]
        requests = []
        for _ in range(6):
            own: Event = {"trace_id": f"t{writer}", "tool_name": f"t{writer}"}
            events = [
                event
                for name in rng.sample(names, len(names))
                for event in make_call(started_at=MIDNIGHT, **(own | {shared: name}))
            ]
            requests.append((new_batch_id(), lines(events), len(events)))
        return requests

    send = sender_in_process(acme)
    answers = write_at_once([(send, share(writer)) for writer in range(WRITERS)])
    assert {answer.status_code for each in answers.values() for answer in each} == {200}
    assert_consistent(acme.tenant)


@pytest.mark.slow
@pytest.mark.usefixtures("no_retries")
def test_writers_of_two_tenants_do_not_mix(acme: Cast, globex: Cast) -> None:
    """Both get exactly the same requests, at the same time."""
    rng = random.Random(5)
    events = [event for number in range(40) for event in some_call(rng, number)]
    shares = [random_batches(rng, events) for _ in range(2)]
    senders = [sender_in_process(cast) for cast in (acme, globex)]
    answers = write_at_once([(send, share) for send in senders for share in shares])
    for of_both in answers.values():
        assert [answer.status_code for answer in of_both] == [200, 200]
    for cast in (acme, globex):
        with tenant_scope(cast.tenant.id):
            assert Invocation.objects.for_tenant(cast.tenant.id).count() == 40
        assert_consistent(cast.tenant)


@pytest.mark.slow
@pytest.mark.usefixtures("no_retries")
def test_concurrent_conflicts_keep_one_event_and_reject_the_rest(acme: Cast) -> None:
    """Every writer sends other ends of the same calls: one is kept, the others are rejected."""
    calls = [make_call() for _ in range(30)]
    shares = [
        random_batches(
            random.Random(writer), [call[1] | {"duration_ms": writer + 1.0} for call in calls]
        )
        for writer in range(WRITERS)
    ]
    answers = write_at_once([(sender_in_process(acme), share) for share in shares])
    documents = [answer.json() for each in answers.values() for answer in each]
    assert sum(document["accepted"] for document in documents) == len(calls)
    refused = [each["code"] for document in documents for each in document["rejected"]]
    assert set(refused) == {"conflict"}
    total = sum(count for share in shares for _, _, count in share)
    duplicates = sum(document["duplicates"] for document in documents)
    assert len(calls) + duplicates + len(refused) == total
    assert_consistent(acme.tenant)


def test_rollup_rows_are_written_in_key_order(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if tools are in another order by quarter: two orders of locks cause a deadlock."""
    written: dict[str, Any] = {}
    send = IndexWriter.send

    def watched(writer: IndexWriter, name: str, **parameters: Any) -> Any:
        written[name] = parameters.get("tool_name")
        return send(writer, name, **parameters)

    monkeypatch.setattr(IndexWriter, "send", watched)
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    late, early = hour + timedelta(minutes=40), hour + timedelta(minutes=10)
    events = [
        *make_call(tool_name="a", started_at=late),
        *make_call(tool_name="b", started_at=early),
    ]
    assert post(make_ingest_key(acme.tenant), lines(events)).status_code == 200
    assert written["upsert_quarter_rollups"] == arrays.texts(["b", "a"])
    assert written["upsert_rollups"] == arrays.texts(["a", "b"])
    assert_consistent(acme.tenant)
