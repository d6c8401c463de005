"""Syslog over TLS, to a real rsyslog and to receivers that break off."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from audit.models import Stream, StreamFormat, StreamWay
from audit.stream.records import Record
from audit.stream.ways.syslog import SyslogWay
from audit.stream.ways.way import SendError
from config.env import Opening, openings
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import sign
from tests.support.rsyslog import Rsyslog, need_rsyslog
from tests.support.siem_receivers import HOST, certificate
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
def rsyslog(tmp_path: Path) -> Iterator[Rsyslog]:
    need_rsyslog()
    server = Rsyslog(tmp_path)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.mark.slow
def test_rsyslog_writes_each_record_in_order_and_proved(acme: Cast, rsyslog: Rsyslog) -> None:
    call_id = '\u00e9\u2028\U0001f600 "quoted"'
    for _ in range(3):
        calls = [make_call(call_id=call_id) for _ in range(200)]
        send_events(acme.tenant, [event for call in calls for event in call])
    sign(acme.tenant)
    stream = make_stream(
        acme, StreamWay.SYSLOG, form=StreamFormat.ECS, host=HOST, port=rsyslog.port
    )
    send(acme)
    stored = read_stream(acme, stream)
    assert not stored.failure and stored.sent_count == 1_200
    rsyslog.stop()
    records = rsyslog.records
    assert [one["tooltrail"]["index"] for one in records] == list(range(1_200))
    assert {head for head, _ in rsyslog.messages} == {"localhost tooltrail calls 110"}
    keys = keys_of(acme)
    for one in records[::25]:
        assert_valid("ecs", one)
        assert one["labels"]["call_id"] == call_id
        assert verdict_of(one, keys).is_genuine


@pytest.mark.slow
def test_rsyslog_that_was_away_misses_nothing(acme: Cast, rsyslog: Rsyslog) -> None:
    send_events(acme.tenant, [event for _ in range(100) for event in make_call()])
    sign(acme.tenant)
    rsyslog.kill()
    stream = make_stream(acme, StreamWay.SYSLOG, host=HOST, port=rsyslog.port)
    send(acme)
    assert read_stream(acme, stream).failure == "The connection was refused."
    rsyslog.start()
    let_time_pass(acme)
    send(acme)
    rsyslog.stop()
    assert [one["tooltrail"]["index"] for one in rsyslog.records] == list(range(200))


@pytest.mark.slow
def test_rsyslog_takes_records_of_the_client_that_it_permits(acme: Cast, tmp_path: Path) -> None:
    need_rsyslog()
    own, stranger = certificate("tooltrail.test"), certificate("stranger.test")
    server = Rsyslog(
        tmp_path, authority=own.pem + stranger.pem + certificate().pem, permitted="tooltrail.test"
    )
    server.start()
    try:
        send_events(acme.tenant, [event for _ in range(100) for event in make_call()])
        sign(acme.tenant)
        to: dict[str, Any] = {"host": HOST, "port": server.port}
        bare = make_stream(acme, StreamWay.SYSLOG, **to)
        wrong = make_stream(
            acme, StreamWay.SYSLOG, certificate=stranger.pem, key=stranger.key, **to
        )
        send(acme)
        for refused in (read_stream(acme, bare), read_stream(acme, wrong)):
            assert refused.failure and refused.sent_count == 0 == refused.next_index
        right = make_stream(acme, StreamWay.SYSLOG, certificate=own.pem, key=own.key, **to)
        assert own.key.encode() not in bytes(right.secret_box or b"")
        assert "key" not in right.settings
        send(acme)
        stored = read_stream(acme, right)
        assert not stored.failure and stored.sent_count == 200
    finally:
        server.stop()
    assert [one["tooltrail"]["index"] for one in server.records] == list(range(200))


def test_certificate_that_tls_no_longer_takes_fails_its_stream_only(acme: Cast) -> None:
    own, weak = certificate("tooltrail.test"), certificate("weak.test", is_weak=True)
    to: dict[str, Any] = {"host": HOST, "certificate": own.pem, "key": own.key}
    stream = make_stream(acme, StreamWay.SYSLOG, **to)
    send_events(acme.tenant, make_call())
    sign(acme.tenant)
    with tenant_scope(acme.tenant.id):
        changed = {**stream.settings, "certificate": weak.pem}
        Stream.objects.for_tenant(acme.tenant.id).filter(id=stream.id).update(settings=changed)
    send(acme)
    assert "KEY_TOO_SMALL" in read_stream(acme, stream).failure


def way_to(port: int, *, trusts: bool = True) -> SyslogWay:
    context = ssl.create_default_context()
    if trusts:
        context.load_verify_locations(cadata=certificate().pem)
    allowed = openings_of(HOST)
    return SyslogWay(HOST, port, context, hostname="a b", of="calls", allowed=allowed)


def openings_of(*addresses: str) -> tuple[Opening, ...]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TOOLTRAIL_SOME_ALLOW", " ".join(addresses))
        return tuple(openings("TOOLTRAIL_SOME_ALLOW"))


class Breaking:
    """A receiver that reads so many bytes, and then ends the connection in some way."""

    def __init__(self, folder: Path, how: str, limit: int) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*certificate().write(folder))
        self._server = socket.create_server((HOST, 0))
        self._how, self._limit = how, limit
        self.port = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __enter__(self) -> "Breaking":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(20)
        self._server.close()

    def _serve(self) -> None:
        plain, _ = self._server.accept()
        with suppress(OSError), self._context.wrap_socket(plain, server_side=True) as connection:
            got = 0
            with suppress(OSError):
                while got < self._limit and (data := connection.recv(65_536)):
                    got += len(data)
                if self._how == "properly":
                    while connection.recv(65_536):
                        pass
                    connection.unwrap()
            if self._how == "reset":
                linger = b"\1\0\0\0\0\0\0\0"
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


RECORDS = [
    Record(each, 1_800_000_000_000_000, 6, b'{"x":"%b"}' % (b"y" * 3_000)) for each in range(500)
]


def test_a_receiver_that_closes_properly_has_read_everything(tmp_path: Path) -> None:
    with Breaking(tmp_path, "properly", 1) as receiver:
        way = way_to(receiver.port)
        way.send(RECORDS)
        way.settle()
        way.close()


@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_receiver_that_breaks_off_has_not_taken_the_records(tmp_path: Path, how: str) -> None:
    with Breaking(tmp_path, how, 10_000) as receiver:
        way = way_to(receiver.port)
        with pytest.raises(SendError):
            way.send(RECORDS)
            way.settle()
        way.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_CORK"), reason="only Linux keeps bytes back")
def test_a_receiver_that_closed_before_the_bytes_came_has_not_taken_them(tmp_path: Path) -> None:
    """As one that refuses a client certificate, far away: it closes before it reads anything."""
    with Breaking(tmp_path, "close", 0) as receiver:
        way = way_to(receiver.port)
        way.send([])
        assert way._connection is not None
        # Bytes stay here for 200 ms, in which the end of the connection is read.
        way._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        receiver._thread.join(20)
        way.send(RECORDS[:1])
        with pytest.raises(SendError, match="did not take all"):
            way.settle()


def test_an_unknown_certificate_is_refused(tmp_path: Path) -> None:
    refuses = pytest.raises(SendError, match="certificate is not valid")
    with Breaking(tmp_path, "close", 1) as receiver, refuses:
        way_to(receiver.port, trusts=False).send(RECORDS[:1])


def test_a_frame_is_what_rfc_5425_says() -> None:
    frame = way_to(1).frame(RECORDS[0])
    length, _, message = frame.partition(b" ")
    assert int(length) == len(message)
    assert message.startswith(b"<110>1 2027-01-15T08:00:00.000000Z ab tooltrail - calls - {")
