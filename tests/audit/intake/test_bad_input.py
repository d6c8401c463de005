"""Invalid requests over real HTTP: the specified answer, nothing lost, and never a 500.

Each request goes to the web server as it runs in production. `test_events_api.py` tests far more
cases with the view alone; here are cases that need a server, a socket and a client, and generated
ones.
"""

import contextlib
import gzip
import http.client
import json
import os
import socket
import zlib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.models import Batch, Invocation, RejectedEvent
from config.zstd import zstd
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.event_requests import (
    NDJSON,
    Answer,
    lines,
    new_batch_id,
    post,
)
from tests.support.factories import (
    Cast,
    make_call,
    make_cast,
    make_ingest_key,
)
from tests.support.server import LiveServer

MIB = 1024 * 1024

type Send = Callable[..., Answer]


@pytest.fixture
def send(live_server: LiveServer, acme: Cast) -> Send:
    """Post a body as acme, an iterable in chunks; `headers` such as `content_encoding="gzip"`."""
    key = make_ingest_key(acme.tenant)
    host = urlsplit(live_server.url).netloc

    def send(body: bytes | Iterable[bytes], **headers: str) -> Answer:
        given = {"authorization": f"Bearer {key}", "content_type": NDJSON, **headers}
        client = http.client.HTTPConnection(host, timeout=30)
        with contextlib.closing(client):
            # The server may answer and close the connection before all is sent.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                named = {name.replace("_", "-"): value for name, value in given.items()}
                client.request("POST", "/api/v1/events", body, named)
            answer = client.getresponse()
            return Answer(answer.status, dict(answer.headers), answer.read())

    return send


def stored(cast: Cast) -> tuple[int, int, int]:
    """The numbers of calls, rejected events and batches of a tenant."""
    with tenant_scope(cast.tenant.id):
        calls, inbox, batches = (
            model.objects.for_tenant(cast.tenant.id).count()
            for model in (Invocation, RejectedEvent, Batch)
        )
    return calls, inbox, batches


def error(answer: Answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


GOOD = lines(make_call())


def nested(depth: int) -> bytes:
    """A start event whose JSON is nested `depth` deep."""
    start = json.dumps(make_call(args="HERE", is_open=True)[0])
    return start.replace('"HERE"', "[" * (depth - 1) + "]" * (depth - 1)).encode()


def long_line(size: int) -> bytes:
    """A line that compresses to about a tenth: below the allowed ratio, above the size."""
    return b"".join(os.urandom(8).hex().encode() + b"x" * 84 for _ in range(size // 100 + 1))


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"authorization": ""}, 401, "missing_key"),
        ({"authorization": "Bearer"}, 401, "malformed_key"),
        ({"authorization": "Bearer tt_x"}, 401, "malformed_key"),
        ({"authorization": "Bearer tt_é"}, 401, "missing_key"),  # a header is ASCII
        ({"authorization": "Bearer " + "x" * 5000}, 401, "malformed_key"),
        ({"authorization": "Basic eDp5"}, 401, "missing_key"),
        ({"content_type": "application/json"}, 415, "media_type"),
        ({"content_type": ""}, 415, "media_type"),
        ({"content_encoding": "br"}, 415, "encoding"),
        ({"content_encoding": "gzip, gzip"}, 415, "encoding"),
    ],
)
def test_invalid_header_is_rejected(
    send: Send, acme: Cast, headers: dict[str, str], status: int, code: str
) -> None:
    assert error(send(GOOD, **headers)) == (status, code)
    assert stored(acme) == (0, 0, 0)


def test_key_without_the_scope_is_rejected(send: Send, acme: Cast) -> None:
    key = create_key(acme.tenant, "reader", [Scope.READ, Scope.REGISTRY])[1]
    answer = send(GOOD, authorization=f"Bearer {key}")
    assert error(answer) == (403, "missing_scope")
    assert stored(acme) == (0, 0, 0)


def test_key_forged_for_another_tenant_is_rejected(send: Send, acme: Cast, globex: Cast) -> None:
    """The forged key has a valid checksum."""
    kind, _, key_id, secret, _ = make_ingest_key(acme.tenant).split("_")
    body = f"{kind}_{globex.tenant.id.hex}_{key_id}_{secret}"
    forged = f"{body}_{zlib.crc32(body.encode()):08x}"
    assert error(send(GOOD, authorization=f"Bearer {forged}")) == (401, "unknown_key")
    assert stored(acme) == stored(globex) == (0, 0, 0)


def test_event_naming_another_tenant_is_stored_for_the_tenant_of_the_key(
    send: Send, acme: Cast, globex: Cast
) -> None:
    events = [event | {"tenant_id": str(globex.tenant.id)} for event in make_call()]
    assert send(lines(events)).json()["accepted"] == 2
    assert stored(acme) == (1, 0, 1)
    assert stored(globex) == (0, 0, 0)


@pytest.mark.parametrize(
    ("encoding", "body", "status", "code"),
    [
        ("identity", b"", 400, "unreadable_body"),
        ("gzip", b"", 400, "unreadable_body"),
        ("gzip", GOOD, 400, "unreadable_body"),
        ("gzip", gzip.compress(GOOD)[:-4], 400, "unreadable_body"),
        ("gzip", gzip.compress(GOOD)[:20] + b"\0" * 40, 400, "unreadable_body"),
        ("zstd", zstd.compress(GOOD)[:-3], 400, "unreadable_body"),
        ("identity", b"x" * (10 * MIB), 413, "too_large"),
        ("gzip", gzip.compress(long_line(MIB)), 413, "line_too_long"),
        ("gzip", gzip.compress(long_line(10 * MIB)), 413, "line_too_long"),
        ("gzip", gzip.compress(b"0" * (40 * MIB)), 413, "ratio"),
        ("zstd", zstd.compress(b"0" * (40 * MIB)), 413, "ratio"),
        ("identity", b"{}\n" * 1001, 413, "too_many_lines"),
        ("identity", nested(65), 413, "too_deep"),
        ("identity", b"[" * 500_000, 413, "too_deep"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rejected_body_stores_nothing(
    send: Send, acme: Cast, encoding: str, body: bytes, status: int, code: str
) -> None:
    assert error(send(body, content_encoding=encoding)) == (status, code)
    assert stored(acme) == (0, 0, 0)
    assert send(GOOD).json()["accepted"] == 2, "the next request is not affected"


@pytest.mark.parametrize("compress", [gzip.compress, zstd.compress])
def test_chunked_body_needs_a_self_terminating_encoding(
    send: Send, acme: Cast, compress: Callable[[bytes], bytes]
) -> None:
    """See test_interrupted_request_stores_nothing."""
    encoding = "gzip" if compress is gzip.compress else "zstd"
    body = compress(GOOD)
    answer = send(iter([body[:100], body[100:]]), content_encoding=encoding)
    assert answer.json()["accepted"] == 2
    huge = compress(os.urandom(8 * MIB))
    chunks = (huge[at : at + MIB] for at in range(0, len(huge), MIB))
    assert error(send(chunks, content_encoding=encoding)) == (413, "too_large")
    assert error(send(iter([GOOD]))) == (411, "length_required")
    assert stored(acme) == (1, 0, 1)


FUTURE = datetime.now(UTC) + timedelta(days=2)
PAST = datetime.now(UTC) - timedelta(days=400)


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (b"no JSON", "not_json"),
        (GOOD[:200], "not_json"),
        (b"\xff\xfe" + lines(make_call(is_open=True)).strip(), "not_json"),
        (lines(make_call(is_open=True)).strip().replace(b"London", b"\xc3\x28"), "not_json"),
        (b"\x00" * 100, "not_json"),
        (b'{"type":"toolExecutionStart"}', "invalid_event"),
        (b"[" * 60 + b"]" * 60, "invalid_event"),
        (lines(make_call(tool_name="x" * 257, is_open=True)).strip(), "invalid_event"),
        (lines(make_call(started_at=FUTURE, is_open=True)).strip(), "in_future"),
        (lines(make_call(started_at=PAST, is_open=True)).strip(), "out_of_range"),
    ],
)
def test_invalid_line_goes_to_the_inbox_and_the_others_are_stored(
    send: Send, acme: Cast, bad: bytes, code: str
) -> None:
    first, second = make_call()
    answer = send(lines([first]) + bad + b"\n" + lines([second]))
    assert answer.status_code == 200
    document = answer.json()
    assert document["accepted"] == 2
    assert [(each["line"], each["code"]) for each in document["rejected"]] == [(2, code)]
    assert stored(acme) == (1, 1, 1)
    with tenant_scope(acme.tenant.id):
        (kept,) = RejectedEvent.objects.for_tenant(acme.tenant.id)
    assert bytes(kept.raw) == bad


@pytest.mark.slow
@pytest.mark.parametrize(
    "args", [b"NaN", b"-Infinity", b"1e999", b'"\\u0000"', b'"\\ud800"', b'{"a":1,"a":2}']
)
def test_unusual_argument_values_are_accepted(send: Send, acme: Cast, args: bytes) -> None:
    line = lines(make_call(args="HERE", is_open=True)).replace(b'"HERE"', args)
    assert send(line).json()["accepted"] == 1
    assert stored(acme) == (1, 0, 1)


GZIP = "Content-Encoding: gzip"
HALF = gzip.compress(GOOD)[:-9]


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("Content-Length: 999999", GOOD),  # and then the client disconnects
        ("Content-Length: -1", GOOD),
        ("Content-Length: nonsense", GOOD),
        ("Content-Length: 99999999999999999999999999", GOOD),
        ("Transfer-Encoding: chunked", GOOD),
        ("Transfer-Encoding: chunked", b"%x\r\n%b\r\n" % (len(GOOD), GOOD)),
        (f"{GZIP}\r\nTransfer-Encoding: chunked", b"%x\r\n%b\r\n" % (len(HALF), HALF)),
        (f"{GZIP}\r\nTransfer-Encoding: chunked", b"%x\r\n%b" % (len(HALF) + 9, HALF)),
    ],
)
def test_interrupted_request_stores_nothing(
    live_server: LiveServer, send: Send, acme: Cast, head: str, body: bytes
) -> None:
    """The sender will retry with the same id, and must not get 422."""
    parts = urlsplit(live_server.url)
    batch_id = new_batch_id()
    request = (
        "POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Authorization: Bearer {make_ingest_key(acme.tenant)}\r\n"
        f"Idempotency-Key: {batch_id}\r\nContent-Type: {NDJSON}\r\n{head}\r\n\r\n"
    ).encode()
    with socket.create_connection((parts.hostname, parts.port or 0), timeout=30) as client:
        client.sendall(request + body)
        client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert b" 200 " not in client.recv(65536)
    assert stored(acme) == (0, 0, 0)
    whole = send(GOOD + lines(make_call()), idempotency_key=batch_id)
    assert (whole.status_code, whole.json()["accepted"]) == (200, 4)


CALL = lines(make_call()).splitlines()
LINES = st.one_of(
    st.sampled_from(CALL),
    st.builds(lambda *_: lines(make_call(is_open=True)).strip(), st.integers()),
    st.binary(max_size=60),
    st.text(max_size=30).map(lambda text: json.dumps({"type": text}).encode()),
    st.builds(
        lambda line, at, junk: line[:at] + junk + line[at:],
        st.sampled_from(CALL),
        st.integers(0, 600),
        st.binary(max_size=3),
    ),
)


@pytest.fixture(scope="module")
def umbrella() -> Cast:
    """The tenant of the generated requests."""
    return make_cast("umbrella")


@pytest.mark.sampled("arbitrary input to the database", 2)
@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    sent=st.lists(LINES, min_size=1, max_size=8),
    encode=st.sampled_from([(None, bytes), ("gzip", gzip.compress), ("zstd", zstd.compress)]),
    cut=st.integers(0, 400),
)
def test_arbitrary_bodies_are_stored_or_rejected_as_a_whole(
    umbrella: Cast,
    sent: list[bytes],
    encode: tuple[str | None, Callable[[bytes], bytes]],
    cut: int,
) -> None:
    name, compress = encode
    body = compress(b"\n".join(sent))
    body = body[: max(1, len(body) - cut)] or b"\n"  # without a body the client sends no media type
    before = stored(umbrella)
    answer = post(make_ingest_key(umbrella.tenant), body, content_encoding=name)
    _, inbox, batches = stored(umbrella)
    if answer.status_code != 200:
        assert answer.status_code in (400, 413)
        assert answer.json()["code"]
        assert stored(umbrella) == before
        return
    document = answer.json()
    assert batches == before[2] + 1
    assert inbox == before[1] + len(document["rejected"])
    if name is None:
        count = sum(bool(line.strip()) for line in body.split(b"\n"))
        assert document["accepted"] + document["duplicates"] + len(document["rejected"]) == count
