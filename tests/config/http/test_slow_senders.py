"""Slow or missing bodies: such senders are disconnected, and others are served."""

import contextlib
import gzip
import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from urllib.parse import urlsplit

import pytest

from audit.intake.admission import PLACES
from audit.models import Batch
from config.http.slow_senders import (
    BYTES_PER_S,
    GRACE_S,
    TimedBody,
    _ages_s,
    _Wait,
    cut_off,
)
from config.process.supervise import WEB_THREADS
from tenants.scope import tenant_scope
from tests.support.event_requests import NDJSON, lines
from tests.support.factories import Cast, make_call, make_ingest_key
from tests.support.installation import until
from tests.support.server import LiveServer

GOOD = lines(make_call())


@contextmanager
def connected(server: LiveServer) -> Iterator[socket.socket]:
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port or 0), timeout=60) as client:
        yield client


def head(path: str, *headers: str) -> bytes:
    return "\r\n".join((f"POST {path} HTTP/1.1", "Host: localhost", *headers, "", "")).encode()


def is_ended(client: socket.socket) -> bool:
    """Wait until the server closes the connection; the response does not matter."""
    with contextlib.suppress(ConnectionResetError):
        while client.recv(65536):
            pass
    return True


@pytest.mark.slow
@pytest.mark.sampled("slow senders", 1)
def test_senders_holding_all_places_without_sending_are_disconnected(
    live_server: LiveServer, acme: Cast
) -> None:
    key = f"Authorization: Bearer {make_ingest_key(acme.tenant)}"
    ways = [
        ("Content-Encoding: gzip\r\nTransfer-Encoding: chunked", b"5\r\n\x1f\x8b"),
        ("Content-Length: 5000000", b"x" * 100_000),
        ("Expect: 100-continue\r\nContent-Length: 1000", b""),
        *[("Content-Length: 1000", GOOD[:100])] * (PLACES - 3),
    ]
    slow: list[socket.socket] = []
    parts = urlsplit(live_server.url)
    honest = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)

    def send() -> int:
        named = {"Authorization": key[15:], "Content-Type": NDJSON}
        body = gzip.compress(GOOD)
        honest.request("POST", "/api/v1/events", body, {**named, "Content-Encoding": "gzip"})
        answer = honest.getresponse()
        answer.read()
        return answer.status

    with ExitStack() as stack, contextlib.closing(honest):

        def begin(how: str, begun: bytes) -> None:
            client = stack.enter_context(connected(live_server))
            request = head("/api/v1/events", key, f"Content-Type: {NDJSON}", how)
            client.sendall(request + begun)
            slow.append(client)

        def is_full() -> bool:
            begin(*ways[-1])  # takes the last free place, if there is one
            return send() == HTTPStatus.SERVICE_UNAVAILABLE

        assert send() == HTTPStatus.OK
        for way in ways:
            begin(*way)
        until(is_full)
        until(lambda: send() == HTTPStatus.OK)
        assert all(is_ended(client) for client in slow)
        assert send() == HTTPStatus.OK
    with tenant_scope(acme.tenant.id):
        batches = Batch.objects.for_tenant(acme.tenant.id)
        assert {batch.event_count for batch in batches} == {2}, "no event of a slow sender"


@pytest.mark.slow
@pytest.mark.sampled("slow senders", 1)
def test_slow_forms_do_not_block_health_probes(live_server: LiveServer) -> None:
    """Slow forms occupy every thread at first; sending one needs no key."""
    cookie = f"Cookie: csrftoken={'x' * 32}"  # without it the form is not read
    kind = "Content-Type: application/x-www-form-urlencoded"
    form = head("/login", cookie, kind, "Content-Length: 99")
    with ExitStack() as stack:
        slow = [stack.enter_context(connected(live_server)) for _ in range(WEB_THREADS + 4)]
        stop = threading.Event()

        def dribble() -> None:
            while not stop.wait(0.3):
                for client in slow:
                    with contextlib.suppress(OSError):
                        client.send(b"x")

        dribbling = threading.Thread(target=dribble)
        for client in slow:
            client.sendall(form + b"username=")
        dribbling.start()
        answer: int | None = None
        try:
            parts = urlsplit(live_server.url)
            # The probe has the same address as the slow senders. If it waits as long as they do,
            # it may be closed with them (ADR 0006).
            for _ in range(3):
                probe = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
                with contextlib.closing(probe), contextlib.suppress(http.client.RemoteDisconnected):
                    probe.request("GET", "/healthz")
                    answer = probe.getresponse().status
                    break
            assert answer == HTTPStatus.OK
            assert all(is_ended(client) for client in slow)
        finally:
            stop.set()
            dribbling.join()


@pytest.mark.parametrize(
    ("waited_s", "received", "expected"),
    [
        (GRACE_S - 1, 0, False),
        (GRACE_S + 1, 0, True),
        (GRACE_S + 1, 2 * BYTES_PER_S, False),
        (GRACE_S + 3, 2 * BYTES_PER_S, True),
    ],
)
def test_allowed_time_grows_with_the_bytes_received(
    waited_s: float, received: int, expected: bool
) -> None:
    wait = _Wait("127.0.0.1", 8000, began_at=1000.0, received=received)
    assert wait.is_over(1000.0 + waited_s, GRACE_S) is expected


def test_received_bytes_count_for_the_next_wait() -> None:
    seen: list[int] = []

    class Stream:
        def read(self, size: int, /) -> bytes:
            return b"x" * size

        readline = read

    @contextmanager
    def waiting(wait: _Wait) -> Iterator[None]:
        seen.append(wait.received)
        yield

    environ = {"wsgi.input": Stream(), "REMOTE_ADDR": "10.0.0.7", "SERVER_PORT": "8000"}
    body = TimedBody(environ, waiting)
    assert (body.read(10), body.readline(5), body.read(1)) == (b"x" * 10, b"x" * 5, b"x")
    assert seen == [0, 10, 15]


def test_only_idle_connections_of_the_address_and_port_are_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as stack:
        port = server.getsockname()[1]
        clients, served = [], []
        for _ in range(2):
            clients.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), 60)))
            served.append(stack.enter_context(server.accept()[0]))
        assert cut_off("127.0.0.2", port, 2, 0.0) == 0
        assert cut_off("no address", port, 2, 0.0) == 0
        assert cut_off("127.0.0.1", port + 1, 2, 0.0) == 0
        assert cut_off("127.0.0.1", port, 2, 3600.0) == 0, "no connection is an hour old"
        until(lambda: _ages_s(served[0])[0] > 0.05)  # the kernel's resolution is some milliseconds
        served[0].sendall(b"x")
        assert clients[0].recv(1) == b"x"
        assert cut_off("127.0.0.1", port, 1, 0.0) == 1
        assert clients[1].recv(1) == b"", "the one that was idle longer is closed"
        served[1].close()
        assert cut_off("127.0.0.1", port, 2, 0.0) == 1
        assert clients[0].recv(1) == b""
