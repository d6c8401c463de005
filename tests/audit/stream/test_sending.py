"""Sending: in order, at least once; the cursor follows what receivers acknowledged."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise

import pytest
from django.utils import timezone

from audit.ledger.status import ledger_status
from audit.models import StreamFormat, StreamOf, StreamWay
from audit.stream import sending
from audit.stream.lag import lag_of
from audit.stream.streams import (
    allow_payloads,
    delete_stream,
    pause_stream,
    replay_stream,
    resume_stream,
)
from audit.stream.trying import try_stream
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import sign
from tests.support.siem_receivers import HOST, TOKEN, HttpsReceiver, https_receiver
from tests.support.streams import (
    allow,
    assert_valid,
    keys_of,
    let_time_pass,
    make_stream,
    read_stream,
    send,
    verdict_of,
)


@pytest.fixture(autouse=True)
def receivers_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, HOST)


@pytest.fixture
def receiver() -> Iterator[HttpsReceiver]:
    with https_receiver() as running:
        yield running


def log_calls(cast: Cast, count: int) -> None:
    """Store calls in batches of a hundred, and sign them."""
    for begin in range(0, count, 100):
        calls = [make_call() for _ in range(min(100, count - begin))]
        send_events(cast.tenant, [event for call in calls for event in call])
    sign(cast.tenant)


@pytest.mark.slow
def test_each_record_arrives_once_in_order_and_proved(acme: Cast, receiver: HttpsReceiver) -> None:
    log_calls(acme, 1_300)
    stream = make_stream(acme, StreamWay.HTTPS, url=receiver.url, authorization="Bearer x")
    send(acme)
    assert receiver.indexes == list(range(2_600))
    assert {head["authorization"] for head in receiver.heads} == {"Bearer x"}
    keys = keys_of(acme)
    for one in receiver.records[::50]:
        assert_valid("ocsf", one)
        assert verdict_of(one, keys).is_genuine
    stored = read_stream(acme, stream)
    assert stored.sent_count == 2_600 and not stored.failure and stored.claim is None
    assert stored.next_index >= 2_600


def test_a_stream_of_actions_has_no_calls(acme: Cast, receiver: HttpsReceiver) -> None:
    log_calls(acme, 5)
    make_stream(acme, StreamWay.HTTPS, of=StreamOf.ACTIONS, form=StreamFormat.ECS, url=receiver.url)
    send(acme)
    assert not {one["tooltrail"]["kind"] for one in receiver.records} & {"start", "end"}


@pytest.mark.slow
@pytest.mark.generated(2)
@pytest.mark.parametrize("failure", [500, 429, 0, 302, 404])
def test_a_failed_page_is_sent_again_and_nothing_is_skipped(
    acme: Cast, receiver: HttpsReceiver, failure: int
) -> None:
    log_calls(acme, 1_000)
    receiver.answers = [200, failure]
    stream = make_stream(acme, StreamWay.HTTPS, url=receiver.url)
    send(acme)
    failed = read_stream(acme, stream)
    assert failed.failure and failed.failing_since is not None
    assert failed.next_index < 2_000
    assert failed.next_attempt_at > timezone.now()
    let_time_pass(acme)
    send(acme)
    assert sorted(set(receiver.indexes)) == list(range(2_000))
    seen: list[int] = []
    for before, after in pairwise(receiver.indexes):
        assert after == before + 1 or after in receiver.indexes[: len(seen) + 1] or not seen
        seen.append(before)
    assert read_stream(acme, stream).failure == ""


@pytest.mark.slow
def test_delays_double_up_to_five_minutes(acme: Cast, receiver: HttpsReceiver) -> None:
    log_calls(acme, 1)
    stream = make_stream(acme, StreamWay.HTTPS, url=receiver.url)
    delays = []
    for _ in range(9):
        receiver.answers = [503]
        let_time_pass(acme)
        send(acme)
        delays.append((read_stream(acme, stream).next_attempt_at - timezone.now()).seconds + 1)
    assert delays[:4] == [5, 10, 20, 40]
    assert delays[-1] == 300


def test_what_is_not_allowed_is_not_connected_to(
    acme: Cast, receiver: HttpsReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, "192.0.2.1")
    log_calls(acme, 1)
    for way, given in (
        (StreamWay.HTTPS, {"url": receiver.url}),
        (StreamWay.SYSLOG, {"host": HOST, "port": receiver.port}),
        (StreamWay.SPLUNK, {"url": receiver.url, "token": TOKEN}),
        (
            StreamWay.S3,
            {
                "endpoint": receiver.url,
                "bucket": "logs",
                "access_key": "a",
                "secret_key": "b",
            },
        ),
    ):
        stream = make_stream(acme, way, **given)
        send(acme)
        assert "does not allow" in read_stream(acme, stream).failure
    assert receiver.paths == []


def test_a_certificate_that_nobody_vouches_for_is_refused(
    acme: Cast, receiver: HttpsReceiver
) -> None:
    log_calls(acme, 1)
    stream = make_stream(acme, StreamWay.HTTPS, url=receiver.url, ca="")
    send(acme)
    assert read_stream(acme, stream).failure == "TLS failed."
    assert receiver.paths == []


@pytest.mark.slow
def test_splunk_acknowledges_what_its_indexer_wrote(acme: Cast) -> None:
    log_calls(acme, 700)
    with https_receiver(is_splunk=True) as splunk:
        splunk.unacknowledged = 2
        stream = make_stream(
            acme, StreamWay.SPLUNK, url=splunk.url, token=TOKEN, has_acks=True, index="main"
        )
        send(acme)
        assert splunk.indexes == list(range(1_400))
        assert splunk.bodies[0].startswith(b'{"time":')
        assert b'"sourcetype":"tooltrail:ocsf"' in splunk.bodies[0]
        assert sum("/ack" in path for path in splunk.paths) == 3
        assert read_stream(acme, stream).sent_count == 1_400


@pytest.mark.slow
def test_splunk_without_acknowledgements_and_with_a_wrong_token(acme: Cast) -> None:
    log_calls(acme, 2)
    with https_receiver(is_splunk=True, has_acks=False) as splunk:
        make_stream(acme, StreamWay.SPLUNK, url=splunk.url, token=TOKEN)
        send(acme)
        assert splunk.indexes == [0, 1, 2, 3]
        wrong = make_stream(acme, StreamWay.SPLUNK, url=splunk.url, token="other")
        send(acme)
        assert "403: " in read_stream(acme, wrong).failure
        missing = make_stream(acme, StreamWay.SPLUNK, url=splunk.url, token=TOKEN, has_acks=True)
        send(acme)
        assert "no ackId" in read_stream(acme, missing).failure


@pytest.mark.slow
def test_a_dead_receiver_delays_no_other_stream(
    acme: Cast, receiver: HttpsReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_calls(acme, 50)
    with socket.create_server((HOST, 0)) as silent:  # it accepts, and says nothing
        dead = make_stream(acme, StreamWay.HTTPS, url=f"https://{HOST}:{silent.getsockname()[1]}")
        alive = make_stream(acme, StreamWay.HTTPS, url=receiver.url)
        with tenant_scope(acme.tenant.id):
            due = sending.due_streams(acme.tenant.id, timezone.now())
        sending.run_slice([(acme.tenant.id, pk) for pk in due], seconds=1)
    assert receiver.indexes == list(range(100))
    assert read_stream(acme, alive).sent_count == 100
    assert read_stream(acme, dead).failure and read_stream(acme, dead).next_index == 0


def test_two_workers_do_not_send_the_same_stream(acme: Cast, receiver: HttpsReceiver) -> None:
    log_calls(acme, 5)
    stream = make_stream(acme, StreamWay.HTTPS, url=receiver.url)
    place = (acme.tenant.id, stream.id)
    first = sending._Run.begin(*place)
    assert first is not None
    assert sending._Run.begin(*place) is None
    first.close()
    let_time_pass(acme)
    second = sending._Run.begin(*place)
    assert second is not None
    second.close()


def test_a_paused_stream_waits_and_goes_on_where_it_was(
    acme: Cast, receiver: HttpsReceiver
) -> None:
    log_calls(acme, 5)
    stream = make_stream(acme, StreamWay.HTTPS, url=receiver.url)
    with tenant_scope(acme.tenant.id):
        assert pause_stream(acme.tenant, acme.admin, stream)
        assert not pause_stream(acme.tenant, acme.admin, stream)
    send(acme)
    assert receiver.indexes == []
    with tenant_scope(acme.tenant.id):
        lag = lag_of(read_stream(acme, stream), ledger_status(acme.tenant.id), timezone.now())
        assert lag.state == "paused" and lag.entries >= 10 and lag.oldest_at is not None
        assert resume_stream(acme.tenant, acme.admin, stream)
    send(acme)
    assert receiver.indexes == list(range(10))


@pytest.mark.slow
def test_a_replay_sends_again_from_an_index(acme: Cast, receiver: HttpsReceiver) -> None:
    log_calls(acme, 10)
    stream = make_stream(acme, StreamWay.HTTPS, url=receiver.url)
    send(acme)
    with tenant_scope(acme.tenant.id):
        replay_stream(acme.tenant, acme.admin, read_stream(acme, stream), 13)
    send(acme)
    assert receiver.indexes == [*range(20), *range(13, 20)]


def test_changes_while_it_is_sent_stop_the_worker(acme: Cast, receiver: HttpsReceiver) -> None:
    log_calls(acme, 5)
    stream = make_stream(acme, StreamWay.HTTPS, url=receiver.url)
    run = sending._Run.begin(acme.tenant.id, stream.id)
    assert run is not None
    with tenant_scope(acme.tenant.id):
        delete_stream(acme.tenant, acme.admin, read_stream(acme, stream))
    with ThreadPoolExecutor(1) as pool:
        run.step(pool, is_late=False)
    assert run.is_over and receiver.indexes == []
    run.close()


@pytest.mark.slow
def test_payloads_leave_only_after_an_auditor_allowed_it(
    acme: Cast, receiver: HttpsReceiver
) -> None:
    send_events(acme.tenant, make_call(args={"city": "a secret place"}))
    sign(acme.tenant)
    stream = make_stream(acme, StreamWay.HTTPS, url=receiver.url)
    send(acme)
    assert b"a secret place" not in b"".join(receiver.bodies)
    with tenant_scope(acme.tenant.id):
        stored = read_stream(acme, stream)
        assert allow_payloads(acme.tenant, acme.auditor, stored, "incident 7")
        replay_stream(acme.tenant, acme.admin, stored, 0)
    send(acme)
    assert b"a secret place" in receiver.bodies[-1]
    keys = keys_of(acme)
    assert all(verdict_of(one, keys).is_genuine for one in receiver.records)


@pytest.mark.slow
def test_a_test_record_is_noted_with_its_answer(acme: Cast, receiver: HttpsReceiver) -> None:
    stream = make_stream(acme, StreamWay.HTTPS, url=receiver.url)
    try_stream(acme.tenant.id, stream.id)
    tested = read_stream(acme, stream).last_test
    assert tested is not None and tested["is_taken"] is True
    assert receiver.records[0]["test"] is True
    receiver.answers = [401]
    try_stream(acme.tenant.id, stream.id)
    tested = read_stream(acme, stream).last_test
    assert tested is not None and tested["is_taken"] is False and "401" in tested["answer"]
    assert read_stream(acme, stream).failure == ""


def test_lag_says_since_when(acme: Cast, receiver: HttpsReceiver) -> None:
    log_calls(acme, 3)
    stream = make_stream(acme, StreamWay.HTTPS, url=receiver.url)
    now = timezone.now()
    with tenant_scope(acme.tenant.id):
        status = ledger_status(acme.tenant.id)
        assert lag_of(stream, status, now).state == "current"
        late = lag_of(stream, status, now + timedelta(minutes=6))
    assert late.state == "behind" and late.seconds(now + timedelta(minutes=6)) >= 360
    send(acme)
    with tenant_scope(acme.tenant.id):
        sent = lag_of(read_stream(acme, stream), status, now + timedelta(minutes=6))
    assert (sent.state, sent.entries, sent.oldest_at) == ("current", 0, None)
