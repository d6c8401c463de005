"""Random OTLP bodies: no 5xx, and log and index agree on what is stored."""

import json
import random
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from audit.events.limits import LimitExceededError
from audit.events.spans import UnreadableTraceError
from audit.index.reindex import reindex
from audit.intake.otlp.accounts import to_events
from audit.intake.otlp.mapping import map_spans
from audit.intake.otlp.otlp_json import read_json
from audit.intake.otlp.protobuf import read_protobuf
from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp.environment import FIXTURES
from tests.support.otlp_requests import (
    JSON,
    PROTOBUF,
    fixture,
    post,
)

PROTOBUFS = sorted(path.name for path in FIXTURES.glob("*.pb"))


def _read(body: bytes, is_json: bool = False) -> None:
    """Read and map a body. It may raise only errors that the view handles."""
    try:
        received = (read_json if is_json else read_protobuf)(body)
    except (UnreadableTraceError, LimitExceededError):
        return
    for call in map_spans(received.spans).calls:
        for raw in to_events(call):
            json.loads(raw)


def _mutated(body: bytes, rng: random.Random) -> bytes:
    """The body with some of its bytes changed, removed, repeated or cut off."""
    data = bytearray(body)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0:
                data[at : at + 1] = rng.randbytes(1)
            case 1:
                del data[at : at + rng.randint(1, 20)]
            case 2:
                data[at:at] = data[max(0, at - rng.randint(1, 200)) : at]
            case 3:
                data[at : at + 2] = rng.choice([b"\xff\xff", b"\x00\x00", b"\x80\x01", b'"\\'])
            case _:
                data = data[: max(1, at)]
    return bytes(data)


@pytest.mark.parametrize("name", PROTOBUFS)
def test_mutated_protobuf_is_parsed_or_rejected(name: str) -> None:
    rng = random.Random(name)
    body = (FIXTURES / name).read_bytes()
    for _ in range(400):
        _read(_mutated(body, rng))


@pytest.mark.parametrize("seed", range(4))
def test_mutated_json_is_parsed_or_rejected(seed: int) -> None:
    rng = random.Random(seed)
    body = (FIXTURES / "plain-otel.json").read_bytes()
    for _ in range(500):
        _read(_mutated(body, rng), is_json=True)


MEMBERS = [
    *("resourceSpans", "scopeSpans", "spans", "resource", "scope", "attributes", "key", "value"),
    *("stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue"),
    *("values", "traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano"),
    *("endTimeUnixNano", "status", "code", "message", "events", "links", "flags"),
    "gen_ai.operation.name",
]
JSONS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["execute_tool", "tools/call", "TOOL", "0" * 32, "5" * 32, "6" * 16]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(MEMBERS),
            inner,
            max_size=6,
        )
    ),
    max_leaves=40,
)


@pytest.mark.slow
@given(JSONS)
@settings(max_examples=300)
def test_arbitrary_json_is_parsed_or_rejected(value: Any) -> None:
    _read(json.dumps(value).encode(), is_json=True)
    span = {"traceId": "5" * 32, "spanId": "6" * 16, "attributes": [{"key": "a", "value": value}]}
    for one in (value, span | (value if isinstance(value, dict) else {})):
        body = {"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}
        _read(json.dumps(body).encode(), is_json=True)


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_arbitrary_bytes_are_parsed_or_rejected(body: bytes) -> None:
    _read(body)
    _read(body, is_json=True)
    request = trace_service_pb2.ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add().trace_state = body.hex()
    _read(request.SerializeToString() + body)


@pytest.mark.sampled("arbitrary input to the database", 2)
@pytest.mark.slow
@given(st.randoms(use_true_random=False))
@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_mutated_requests_never_cause_a_server_error(acme: Cast, rng: random.Random) -> None:
    key = make_ingest_key(acme.tenant)
    for name in ("plain-otel.pb", "mcp-server.pb", "plain-otel.json"):
        body = _mutated(fixture(name, timezone.now()), rng)
        answer = post(key, body, JSON if name.endswith("json") else PROTOBUF)
        assert answer.status_code in (200, 400, 413)
    report = reindex(acme.tenant.id, repair=False, progress=lambda done, size: None)
    assert report.is_clean, (report.log_faults, report.comparison.examples)
