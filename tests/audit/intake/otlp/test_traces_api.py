"""`POST /v1/traces` over HTTP: encodings, keys, and the response to every error."""

import gzip
import json
import zlib
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from audit.events.limits import MAX_COMPRESSED_BYTES
from audit.events.spans import MAX_SPANS
from audit.intake.otlp import exports, recording
from audit.models import RejectedEvent
from config.http.quota import Quota
from config.zstd import zstd
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp_requests import (
    JSON,
    PROTOBUF,
    calls,
    fixture,
    pairs,
    post,
    request,
    span,
)

GENAI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
RETRYABLE = {429, 502, 503, 504}


@pytest.fixture
def key(acme: Cast) -> str:
    return make_ingest_key(acme.tenant)


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        (None, bytes),
        ("gzip", gzip.compress),
        ("identity", bytes),
        ("zstd", zstd.compress),
        ("deflate", zlib.compress),
    ],
)
@pytest.mark.parametrize("name", ["plain-otel.pb", "plain-otel.json"])
def test_body_is_accepted_in_every_encoding_and_answered_in_its_media_type(
    acme: Cast, key: str, name: str, encoding: str | None, encode: Any
) -> None:
    media_type = JSON if name.endswith("json") else PROTOBUF
    headers = {} if encoding is None else {"content_encoding": encoding}
    answer = post(key, encode(fixture(name, timezone.now())), media_type, **headers)

    assert (answer.status_code, answer.content_type) == (200, media_type)
    assert answer.message == "2 spans are not tool calls and were skipped, as intended."
    assert answer.rejected == 0
    assert len(calls(acme.tenant)) == 3


@pytest.mark.parametrize(
    ("media_type", "body", "expected"),
    [
        (PROTOBUF, b"", b""),
        (JSON, b"{}", b"{}"),
        (JSON, b'{"resourceSpans": []}', b"{}"),
        (JSON, b'{"resourceSpans": [{"scopeSpans": [{"spans": []}]}]}', b"{}"),
        (JSON, b'{"resourceSpans": null, "unknown": 1}', b"{}"),
        (PROTOBUF, b"\x0a\x00", b""),
    ],
)
def test_empty_request_succeeds(key: str, media_type: str, body: bytes, expected: bytes) -> None:
    answer = post(key, body, media_type)

    assert (answer.status_code, answer.content_type, answer.body) == (200, media_type, expected)


def test_request_with_only_tool_calls_succeeds_without_a_message(key: str) -> None:
    answer = post(key, request(span()), JSON)

    assert (answer.status_code, answer.body) == (200, b"{}")


@pytest.mark.parametrize("media_type", [PROTOBUF, JSON])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"x_api_key": "tt_nonsense"}, 401),
        ({"authorization": "Bearer tt_nonsense"}, 401),
        ({"authorization": "Basic dXNlcjpwYXNz"}, 401),
    ],
)
def test_request_without_a_valid_key_is_rejected(
    media_type: str, headers: dict[str, str], status: int
) -> None:
    answer = post("", b"", media_type, **headers)

    assert (answer.status_code, answer.content_type) == (status, media_type)
    assert answer.message
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_read_only_key_is_rejected(acme: Cast) -> None:
    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    answer = post(key, b"")

    assert (answer.status_code, answer.message) == (403, "This API key lacks the scope ingest.")


def test_key_is_accepted_in_either_header(acme: Cast, key: str) -> None:
    assert post("", request(span()), JSON, authorization=f"Bearer {key}").status_code == 200
    assert post("", request(span()), JSON, x_api_key=key).status_code == 200
    assert len(calls(acme.tenant)) == 2


@pytest.mark.parametrize(
    ("body", "media_type", "headers", "status"),
    [
        (b"\xff" * 20, PROTOBUF, {}, 400),
        (b"\x0a\x05\x12", PROTOBUF, {}, 400),
        (b"{", JSON, {}, 400),
        (b"[]", JSON, {}, 400),
        (b"\xff\xfe", JSON, {}, 400),
        (b"[" * 100_000, JSON, {}, 400),
        (b'{"resourceSpans": 1}', JSON, {}, 400),
        (b'{"resourceSpans": [1]}', JSON, {}, 400),
        (b"no gzip", PROTOBUF, {"content_encoding": "gzip"}, 400),
        (gzip.compress(b"x" * 1_000)[:-9], PROTOBUF, {"content_encoding": "gzip"}, 400),
        (zlib.compress(b"x" * 1_000)[:-3], PROTOBUF, {"content_encoding": "deflate"}, 400),
        (zlib.compress(b"\x00" * 30_000_000), PROTOBUF, {"content_encoding": "deflate"}, 413),
        (b"", PROTOBUF, {"content_encoding": "br"}, 415),
        (b"", "text/plain", {}, 415),
        (b"x" * (MAX_COMPRESSED_BYTES + 1), PROTOBUF, {}, 413),
        (gzip.compress(b"\x00" * 30_000_000), PROTOBUF, {"content_encoding": "gzip"}, 413),
        (gzip.compress(b" " * 30_000_000), JSON, {"content_encoding": "gzip"}, 413),
        (b'{"resourceSpans":[' + b"{}," * 1_000_000 + b"{}]}", JSON, {}, 413),
    ],
)
def test_invalid_request_is_rejected_permanently_with_a_message(
    acme: Cast, key: str, body: bytes, media_type: str, headers: dict[str, str], status: int
) -> None:
    answer = post(key, body, media_type, **headers)

    assert answer.status_code == status not in RETRYABLE
    assert answer.content_type == (JSON if media_type == "text/plain" else media_type)
    assert answer.message
    assert calls(acme.tenant) == []


def _frame(field: int, body: bytes) -> bytes:
    length, size = b"", len(body)
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([field << 3 | 2]) + length + bytes([size]) + body


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(_frame(1, _frame(2, b"\x12\x00" * (MAX_SPANS + 1))), id="spans"),
        pytest.param(b"\x0a\x00" * (4 * MAX_SPANS + 1), id="resources"),
    ],
)
def test_millions_of_empty_spans_are_rejected(key: str, body: bytes) -> None:
    assert post(key, body).status_code == 413


def test_only_post_is_allowed(key: str) -> None:
    answer = Client().get("/v1/traces", headers={"x-api-key": key})

    assert (answer.status_code, answer["Allow"]) == (405, "POST")


def test_exceeded_quota_is_retryable(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = Quota[object](0.1)
    monkeypatch.setattr(exports, "quota", lambda: spent)
    body = request(*(span() for _ in range(20)))

    assert post(key, body, JSON).status_code == 200
    answer = post(key, body, JSON)
    assert (answer.status_code, answer.content_type) == (429, JSON)
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize("media_type", [PROTOBUF, JSON])
def test_unavailable_database_is_retryable(
    key: str, media_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    post(key, b"", media_type)  # the key is cached from here on

    def fail(*args: Any) -> Any:
        raise OperationalError from psycopg.OperationalError("gone")

    monkeypatch.setattr(recording, "tenant_scope", fail)
    body = fixture(f"plain-otel.{'json' if media_type == JSON else 'pb'}", timezone.now())
    answer = post(key, body, media_type)

    assert (answer.status_code, answer.content_type) == (503, media_type)
    assert (answer.headers["Retry-After"], bool(answer.message)) == ("1", True)


def test_malformed_spans_are_rejected_individually(acme: Cast, key: str) -> None:
    answer = post(
        key,
        request(
            span(),
            span(spanId="no hex"),
            span(spanId="0" * 16),
            span(traceId="12"),
            span() | {"name": 7},
            span(startTimeUnixNano="soon"),
            span(attributes={"x": "y" * 1_100_000}),
            span(attributes={**GENAI, "x": {"doubleValue": "much"}}),
        ),
        JSON,
    )

    assert (answer.status_code, answer.rejected) == (200, 7)
    assert answer.message.startswith("7 spans rejected: 1 malformed (spanId is not hex); ")
    assert len(calls(acme.tenant)) == 1


def test_calls_outside_the_index_days_go_to_the_inbox(acme: Cast, key: str) -> None:
    old = span(startTimeUnixNano="1000000000", endTimeUnixNano="2000000000")
    answer = post(key, request(old, span()), JSON)

    assert (answer.status_code, answer.rejected) == (200, 1)
    assert "the index does not have this day" in answer.message
    with tenant_scope(acme.tenant.id):
        waiting = RejectedEvent.objects.for_tenant(acme.tenant.id)
        assert [each.code for each in waiting] == ["out_of_range"] * 2
    assert len(calls(acme.tenant)) == 1


def test_json_encoding_follows_the_otlp_specification(acme: Cast, key: str) -> None:
    """Hex ids of either case, 64-bit numbers as text or number, unknown members ignored."""
    one = span(
        traceId="5B8EFFF798038103D269B633813FC60C",
        spanId="EEE19B7EC3C1B174",
        parentSpanId="",
        somethingNew={"a": 1},
        attributes={
            **GENAI,
            "gen_ai.usage.input_tokens": {"intValue": "812"},
            "gen_ai.usage.output_tokens": {"intValue": 64},
            "gen_ai.tool.call.arguments": {
                "kvlistValue": {
                    "values": pairs(
                        {
                            "city": "London",
                            "days": {"arrayValue": {"values": [{"intValue": 1}]}},
                            "exact": {"boolValue": True},
                            "share": {"doubleValue": 0.5},
                            "none": {},
                        }
                    )
                }
            },
        },
    )
    one["startTimeUnixNano"] = int(one["startTimeUnixNano"])
    assert post(key, request(one), JSON).body == b"{}"

    (call,) = calls(acme.tenant)
    assert call.row.trace_id == "5b8efff798038103d269b633813fc60c"
    assert (call.row.prompt_tokens, call.row.completion_tokens) == (812, 64)
    assert call.row.parent_invocation_id is None
    assert call.start["args"] == {
        "city": "London",
        "days": [1],
        "exact": True,
        "share": 0.5,
        "none": None,
    }


def test_lone_surrogate_is_replaced(acme: Cast, key: str) -> None:
    body = request(span(), span(attributes={**GENAI, "gen_ai.tool.call.result": "cut"}))
    assert post(key, body.replace(b'"cut"', b'"cut \\ud83d"'), JSON).body == b"{}"

    assert {call.output for call in calls(acme.tenant)} == {"cut �", None}


@pytest.mark.sampled("large or many", 2)
@pytest.mark.slow
def test_request_may_contain_more_calls_than_a_batch(acme: Cast, key: str) -> None:
    body = request(*(span(attributes={**GENAI, "n": str(n)}) for n in range(1_201)))

    assert [post(key, body, JSON).body for _ in range(2)] == [b"{}", b"{}"]
    assert len(calls(acme.tenant)) == 1_201


@pytest.mark.slow
def test_span_outcomes_are_counted_in_the_metrics(key: str) -> None:
    def counted() -> dict[str, float]:
        lines = Client().get("/metrics").content.decode().splitlines()
        return {
            line.split('"')[1]: float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith("tooltrail_spans_total{")
        }

    before = counted()
    other = span(name="chat", attributes={"gen_ai.operation.name": "chat"})
    post(key, request(span(), other, other | {"spanId": "1" * 16}, span(spanId="x")), JSON)

    gained = {name: total - before[name] for name, total in counted().items()}
    assert gained == {"call": 1, "decision": 0, "merged": 0, "skipped": 2, "refused": 1}


def test_log_contains_the_original_span(acme: Cast, key: str) -> None:
    one = span(attributes={**GENAI, "custom": {"intValue": "7"}}, kind=1, flags=257)
    post(key, request(one, scope="my-agent", **{"service.name": "shop"}), JSON)

    (call,) = calls(acme.tenant)
    assert call.end["otlp"]["span"] == {
        "trace_id": one["traceId"],
        "span_id": one["spanId"],
        "name": one["name"],
        "kind": 1,
        "start_time_unix_nano": int(one["startTimeUnixNano"]),
        "end_time_unix_nano": int(one["endTimeUnixNano"]),
        "attributes": {**GENAI, "custom": 7},
        "flags": 257,
        "scope": {"name": "my-agent"},
        "resource": {"service.name": "shop"},
    }
    assert json.loads(json.dumps(call.start["otlp"]["span"]))["span_id"] == one["spanId"]


def test_skipped_spans_that_name_a_tool_are_named_in_the_answer(key: str) -> None:
    """Nothing said why the dashboard of a user of an unknown instrumentation stayed empty."""
    unknown = {"acme.tool.name": "get_weather", "acme.tool.input": "{}"}
    guardrail = {"gen_ai.operation.name": "run_guardrail", "gen_ai.tool.name": "get_weather"}
    answer = post(
        key,
        request(
            span("acme.run", attributes=unknown),
            span("acme.run", attributes=unknown),
            span("chat", attributes={"gen_ai.operation.name": "chat"}),
            span("guard", attributes=guardrail),
            span("tools", attributes={"metadata": '{"langgraph_node": "tools"}'}),
            scope="acme-agents",
        ),
        JSON,
    )

    assert (answer.status_code, answer.rejected) == (200, 0)
    assert answer.message == (
        "2 spans name a tool but have no mark of a tool call, and were skipped:"
        " 'acme.run' of 'acme-agents'."
        " 3 spans are not tool calls and were skipped, as intended."
    )
