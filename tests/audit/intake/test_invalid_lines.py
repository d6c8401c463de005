"""Invalid lines at every position of a batch, over real HTTP.

Only the invalid line is rejected, or the whole request with a reason. Its neighbours are stored,
or can be sent again. There is no 500, and accepted lines read back byte by byte.
"""

import contextlib
import http.client
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from audit.log.payload import unpack
from audit.models import Batch, Invocation, RejectedEvent
from config.zstd import zstd
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.event_requests import (
    NDJSON,
    Answer,
    lines,
    new_batch_id,
)
from tests.support.factories import Cast, make_call, make_ingest_key
from tests.support.recount import assert_consistent
from tests.support.server import LiveServer

MIB = 1024 * 1024
STORED = "stored"


@dataclass(frozen=True)
class Poison:
    """A line and its expected result: stored, a code in the inbox, or the code of a 413."""

    line: bytes
    fate: str
    status: int = 200


def start_with(args: bytes) -> bytes:
    """A start event with exactly these bytes as its arguments."""
    return lines(make_call(args="HERE", is_open=True)).strip().replace(b'"HERE"', args)


def start_with_text(name: str, text: bytes) -> bytes:
    """A start event with this text, already escaped, as an indexed member."""
    (event,) = make_call(is_open=True)
    return lines([event | {name: "HERE"}]).strip().replace(b"HERE", text)


def doubled(name: str, value: bytes) -> bytes:
    """A start event with a repeated member: JSON decoders differ in which one they use."""
    line = lines(make_call(is_open=True)).strip()
    return line[:-1] + b',"%b":%b}' % (name.encode(), value)


LONG = (
    b'"%b"' % os.urandom(MIB // 2).hex().encode()
)  # a text that compresses well would be rejected as a bomb
WIDE = b"{%b}" % b",".join(b'"k%d":0' % number for number in range(90_000))
MANY_KEYS = b"{%b}" % b",".join(b'"%x":0' % number for number in range(1_000_000))

CORPUS = {
    "invalid UTF-8": lambda: Poison(start_with(b'"\xc3\x28"'), "not_json"),
    "UTF-8 cut off": lambda: Poison(start_with(b'"\xe2\x82"'), "not_json"),
    "overlong UTF-8": lambda: Poison(start_with(b'"\xc0\xaf"'), "not_json"),
    "UTF-16": lambda: Poison('{"type":"x"}'.encode("utf-16"), "not_json"),
    "raw NUL": lambda: Poison(b"\x00" * 50, "not_json"),
    "NUL in a text": lambda: Poison(start_with(b'"a\x00b"'), "not_json"),
    "U+0000": lambda: Poison(start_with(b'"\\u0000"'), STORED),
    "U+0000 in a name": lambda: Poison(start_with_text("tool_name", b"a\\u0000b"), STORED),
    "lone surrogate": lambda: Poison(start_with(b'"\\ud800"'), STORED),
    "lone surrogate in a name": lambda: Poison(start_with_text("trace_id", b"t\\udfff"), STORED),
    "NaN": lambda: Poison(start_with(b"NaN"), STORED),
    "-Infinity": lambda: Poison(start_with(b"[-Infinity]"), STORED),
    "10^400": lambda: Poison(start_with(b"1" + b"0" * 400), STORED),
    "1e400": lambda: Poison(start_with(b"1e400"), STORED),
    "10^100000": lambda: Poison(start_with(b"1" + b"0" * 100_000), STORED),
    "duplicate keys": lambda: Poison(start_with(b'{"a":1,"a":2}'), STORED),
    "two names": lambda: Poison(doubled("tool_name", b'"other"'), STORED),
    "two of a kind": lambda: Poison(doubled("started_at", b'"yesterday"'), "invalid_event"),
    "depth 10,000": lambda: Poison(start_with(b"[" * 10_000 + b"]" * 10_000), "too_deep", 413),
    "depth 10,000, not closed": lambda: Poison(b'{"a":' * 10_000, "too_deep", 413),
    "as many keys as fit": lambda: Poison(start_with(WIDE), STORED),
    "a million keys": lambda: Poison(start_with(MANY_KEYS), "line_too_long", 413),
    "a string of 1 MiB": lambda: Poison(start_with(LONG[:-2000] + b'"'), STORED),
    "a longer one": lambda: Poison(start_with(LONG), "line_too_long", 413),
}
PLACES = ("first", "middle", "last", "alone", "everywhere")


@pytest.fixture
def send(live_server: LiveServer, acme: Cast) -> Callable[[bytes], Answer]:
    key = make_ingest_key(acme.tenant)
    client = http.client.HTTPConnection(urlsplit(live_server.url).netloc, timeout=60)

    def send(body: bytes) -> Answer:
        headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": NDJSON,
            "Content-Encoding": "zstd",
            "Idempotency-Key": new_batch_id(),
        }
        with contextlib.closing(client):
            client.request("POST", "/api/v1/events", zstd.compress(body), headers)
            answer = client.getresponse()
            return Answer(answer.status, dict(answer.headers), answer.read())

    return send


@pytest.fixture
def endless_numbers() -> Iterator[None]:
    """Let this process's `json` decode long numbers, as the recount does."""
    most = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(most)


@pytest.mark.generated(6)
@pytest.mark.slow
@pytest.mark.usefixtures("endless_numbers")
@pytest.mark.parametrize("name", CORPUS)
def test_invalid_line_at_any_position_affects_no_other_line(
    send: Callable[[bytes], Answer], acme: Cast, name: str
) -> None:
    accepted, raws, refused = 0, [], []
    for place in PLACES:
        before, after = make_call(), make_call()
        poison = CORPUS[name]()  # another call each time
        good = [lines([event]).strip() for event in (*before, *after)]
        match place:
            case "first":
                sent = [poison.line, *good]
            case "middle":
                sent = [*good[:1], poison.line, *good[1:]]
            case "last":
                sent = [*good, poison.line]
            case "alone":
                sent, good = [poison.line], []
            case _ if poison.status != 200:
                continue  # one reason is enough
            case _:
                sent = [poison.line, good[0], poison.line, *good[1:], poison.line]
        answer = send(b"\n".join(sent))
        document = answer.json()
        assert answer.status_code == poison.status, (place, document)
        if poison.status != 200:
            assert document["code"] == poison.fate
            continue
        copies = sent.count(poison.line)
        if poison.fate == STORED:
            raws += sent
            accepted += len(good) + 1
            assert document["accepted"] == len(good) + 1, (place, document)
            assert document["duplicates"] == copies - 1
        else:
            raws += good
            accepted += len(good)
            refused += [poison.line] * copies
            assert document["accepted"] == len(good), (place, document)
            codes = {each["code"] for each in document["rejected"]}
            assert (codes, len(document["rejected"])) == ({poison.fate}, copies)
    assert logged(acme.tenant) == raws
    assert inbox(acme.tenant) == [line[: 64 * 1024] for line in refused]
    with tenant_scope(acme.tenant.id):
        calls = Invocation.objects.for_tenant(acme.tenant.id)
        filled = calls.filter(start_batch_id__isnull=False).count()
        filled += calls.filter(end_batch_id__isnull=False).count()
    assert filled == accepted
    assert_consistent(acme.tenant)


def logged(tenant: Tenant) -> list[bytes]:
    """Every line of the log, in order."""
    with tenant_scope(tenant.id):
        batches = Batch.objects.for_tenant(tenant.id).filter(event_count__gt=0)
        payloads = [bytes(batch.payload or b"") for batch in batches.order_by("first_index")]
    return [raw for payload in payloads for _, raw in unpack(payload)]


def inbox(tenant: Tenant) -> list[bytes]:
    """The rejected lines as stored, in order."""
    with tenant_scope(tenant.id):
        events = RejectedEvent.objects.for_tenant(tenant.id).order_by("id")
        return [bytes(event.raw) for event in events]
