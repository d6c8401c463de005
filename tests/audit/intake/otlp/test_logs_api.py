"""`POST /v1/logs` and `/v1/metrics`: what coding agents send, in the words of their own code."""

import json
import secrets
import time
from typing import Any

import pytest
from django.db import connection
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2

from audit.intake import metrics
from audit.models import RejectedEvent
from audit.queries.calls import trace_detail
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp_requests import JSON, PROTOBUF, calls, pairs, post, request, span

LOGS = "/v1/logs"


@pytest.fixture
def key(acme: Cast) -> str:
    return make_ingest_key(acme.tenant)


def record(body: str = "", ago_s: float = 60, **members: Any) -> dict[str, Any]:
    """An OTLP/JSON log record of `ago_s` seconds ago. `attributes` are given plainly."""
    attributes = members.pop("attributes", {})
    return {
        "timeUnixNano": str(int((time.time() - ago_s) * 1e9)),
        "attributes": pairs(attributes),
        **({"body": {"stringValue": body}} if body else {}),
        **members,
    }


def logs(*records: dict[str, Any], scope: str = "agent.events", **resource: str) -> bytes:
    """An OTLP/JSON body."""
    scope_logs = [{"scope": {"name": scope}, "logRecords": list(records)}]
    resource_logs = {"resource": {"attributes": pairs(resource)}, "scopeLogs": scope_logs}
    return json.dumps({"resourceLogs": [resource_logs]}).encode()


def as_protobuf(body: bytes) -> bytes:
    """The same request in OTLP's binary encoding. Ids must be absent."""
    message = json_format.Parse(body, logs_service_pb2.ExportLogsServiceRequest())
    return bytes(message.SerializeToString())


def claude(event: str = "tool_result", *, ago_s: float = 60, **attributes: Any) -> dict[str, Any]:
    """A record of Claude Code."""
    shared = {"event.name": event, "session.id": "s-1", "prompt.id": "p-1", "tool_name": "Bash"}
    return record(
        f"claude_code.{event}",
        ago_s,
        attributes=shared | {"tool_use_id": "toolu_1"} | attributes,
    )


RESULT: dict[str, Any] = {
    "success": "true",
    "duration_ms": "1500",
    "tool_input": '{"command": "ls"}',
    "tool_result_size_bytes": "12",
}


@pytest.mark.parametrize("media_type", [JSON, PROTOBUF])
def test_tool_result_of_claude_code_is_a_call(acme: Cast, key: str, media_type: str) -> None:
    body = logs(claude(**RESULT), record("claude_code.api_request"), **{"service.name": "cc"})
    answer = post(key, body if media_type == JSON else as_protobuf(body), media_type, path=LOGS)

    assert (answer.status_code, answer.content_type, answer.rejected) == (200, media_type, 0)
    assert answer.message == "1 log records are not tool calls and were skipped, as intended."
    (call,) = calls(acme.tenant)
    assert (call.row.tool_name, call.end["is_error"], call.row.tool_call_id) == (
        "Bash",
        False,
        "toolu_1",
    )
    assert call.start["args"] == {"command": "ls"}
    assert call.start["run_id"] == "s-1"
    assert call.start["context"]["agent"] == "claude-code"
    assert call.end["duration_ms"] == pytest.approx(1500)
    kept = call.end["otlp"]["span"]
    assert kept["name"] == "claude_code.tool_result"
    assert kept["attributes"]["tool_result_size_bytes"] == "12"  # as it was sent
    assert call.end["otlp"]["mapping_version"]


def test_skipped_record_leaves_no_span(acme: Cast, key: str) -> None:
    attributes = {"session.id": "s-1", "model": "m"}
    post(key, logs(record("claude_code.api_request", attributes=attributes)), JSON, path=LOGS)

    with tenant_scope(acme.tenant.id), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM otlp_span WHERE tenant_id = %s", [acme.tenant.id])
        assert cursor.fetchone() == (0,)


def test_failure_has_its_type_and_message(acme: Cast, key: str) -> None:
    failed: dict[str, Any] = {"success": "false", "error_type": "ShellError", "error": "exit 2"}
    post(key, logs(claude(**failed)), JSON, path=LOGS)

    (call,) = calls(acme.tenant)
    assert call.end["is_error"]
    assert (call.output["type"], call.output["message"]) == ("ShellError", "exit 2")


def test_records_of_one_turn_are_one_trace_and_repeats_count_once(acme: Cast, key: str) -> None:
    first = claude(**RESULT)
    second = claude(**RESULT, tool_use_id="toolu_2")
    other = claude(**RESULT, tool_use_id="toolu_3") | {}
    other["attributes"] = [
        each if each["key"] != "prompt.id" else pairs({"prompt.id": "p-2"})[0]
        for each in other["attributes"]
    ]
    for _ in range(2):
        assert post(key, logs(first, second), JSON, path=LOGS).status_code == 200
    post(key, logs(other, other), JSON, path=LOGS)

    stored = {call.row.tool_call_id: call.row.trace_id for call in calls(acme.tenant)}
    assert stored.keys() == {"toolu_1", "toolu_2", "toolu_3"}
    assert stored["toolu_1"] == stored["toolu_2"] != stored["toolu_3"]
    with tenant_scope(acme.tenant.id):
        assert not RejectedEvent.objects.for_tenant(acme.tenant.id).exists()


@pytest.mark.parametrize(
    ("decision", "source", "expected", "kind"),
    [
        ("accept", "config", "approved", "policy"),
        ("accept", "user_permanent", "approved", "person"),
        ("reject", "user_reject", "denied", "person"),
        ("reject", "user_abort", "cancelled", "person"),
        ("reject", "hook", "denied", "policy"),
    ],
)
def test_decision_of_claude_code(
    acme: Cast, key: str, decision: str, source: str, expected: str, kind: str
) -> None:
    body = logs(claude("tool_decision", decision=decision, source=source))
    for _ in range(2):
        answer = post(key, body, JSON, path=LOGS)
        assert (answer.status_code, answer.body) == (200, b"{}")

    assert decisions(acme) == [("Bash", "toolu_1", expected, kind)]


def decisions(acme: Cast) -> list[tuple[str, str | None, str, str | None]]:
    """The tenant's decisions: tool, tool call id, decision, and the kind of who decided."""
    with tenant_scope(acme.tenant.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT tool_name, tool_call_id, decision, by_kind FROM decision"
            " WHERE tenant_id = %s ORDER BY decided_at, decision_id",
            [acme.tenant.id],
        )
        return list(cursor.fetchall())


def test_decision_belongs_to_the_call_of_its_turn(acme: Cast, key: str) -> None:
    accepted = claude("tool_decision", ago_s=70, decision="accept", source="user_temporary")
    post(key, logs(accepted), JSON, path=LOGS)
    post(key, logs(claude(**RESULT)), JSON, path=LOGS)

    (call,) = calls(acme.tenant)
    with tenant_scope(acme.tenant.id):
        detail = trace_detail(call.row.trace_id)
    assert detail is not None
    assert len(detail.calls) == 1


def codex(event: str = "tool_result", **attributes: Any) -> dict[str, Any]:
    """A record of Codex. Its event name is an attribute, and it has no body."""
    shared = {"event.name": f"codex.{event}", "conversation.id": "c-1", "model": "gpt-5"}
    return record(attributes=shared | {"tool_name": "shell", "call_id": "call_1"} | attributes)


def test_codex_result_and_decision(acme: Cast, key: str) -> None:
    result = {"arguments": '{"cmd":["ls"]}', "duration_ms": "12", "success": "true"}
    failed = {"call_id": "call_2", "success": "false", "output": "exit 1", "duration_ms": "3"}
    body = logs(
        codex("tool_decision", decision="approvedforsession", source="User"),
        codex(**result, output="a.txt"),
        codex(**failed),
        codex("tool_decision", call_id="call_3", decision="denied", source="Config"),
    )
    assert post(key, body, JSON, path=LOGS).body == b"{}"

    stored = {call.row.tool_call_id: call for call in calls(acme.tenant)}
    assert stored.keys() == {"call_1", "call_2"}
    assert stored["call_1"].start["args"] == {"cmd": ["ls"]}
    assert stored["call_1"].output == "a.txt"
    assert stored["call_1"].start["context"]["model"] == "gpt-5"
    assert stored["call_2"].output["message"] == "exit 1"
    assert sorted(decisions(acme)) == [
        ("shell", "call_1", "approved", "person"),
        ("shell", "call_3", "denied", "policy"),
    ]


def gemini(**attributes: Any) -> dict[str, Any]:
    """A record of Gemini CLI."""
    shared = {
        "event.name": "gemini_cli.tool_call",
        "session.id": "g-1",
        "prompt_id": "g-1########0",
        "function_name": "read_file",
        "function_args": '{"path": "a"}',
        "duration_ms": {"intValue": "7"},
    }
    return record("Tool call: read_file.", attributes=shared | attributes)


def test_gemini_calls_and_a_rejected_one(acme: Cast, key: str) -> None:
    yes, no = {"boolValue": True}, {"boolValue": False}
    body = logs(
        gemini(success=yes, decision="auto_accept"),
        gemini(success=no, error="no such file", error_type="file_not_found"),
        gemini(success=no, decision="reject", function_name="write_file"),
    )
    answer = post(key, body, JSON, path=LOGS)

    assert (answer.status_code, answer.rejected) == (200, 0)
    stored = calls(acme.tenant)
    assert [(call.row.tool_name, call.end["is_error"]) for call in stored].count(
        ("read_file", False)
    ) == 1
    assert sorted(call.end["is_error"] for call in stored) == [False, True]
    assert all(call.start["args"] == {"path": "a"} for call in stored)
    assert decisions(acme) == [("write_file", None, "denied", None)]


def test_gen_ai_event_of_a_tool_is_a_call(acme: Cast, key: str) -> None:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.conversation.id": "conv",
    }
    post(key, logs(record(eventName="gen_ai.tool", attributes=attributes)), JSON, path=LOGS)

    (call,) = calls(acme.tenant)
    assert (call.row.tool_name, call.start["run_id"]) == ("get_weather", "conv")


@pytest.mark.parametrize("logs_first", [True, False])
def test_record_written_inside_a_tools_span_is_that_spans_call(
    acme: Cast, key: str, logs_first: bool
) -> None:
    trace_id, span_id = secrets.token_hex(16), secrets.token_hex(8)
    around = span(
        "execute_tool Bash",
        traceId=trace_id,
        spanId=span_id,
        attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "Bash"},
    )
    inside = claude(**RESULT) | {"traceId": trace_id, "spanId": span_id}
    both = [("/v1/traces", request(around)), (LOGS, logs(inside))]
    for path, body in reversed(both) if logs_first else both:
        assert post(key, body, JSON, path=path).status_code == 200

    (call,) = calls(acme.tenant)
    assert call.row.trace_id == trace_id
    with tenant_scope(acme.tenant.id):
        detail = trace_detail(trace_id)
    assert detail is not None
    assert len(detail.calls) == 1


def test_record_without_a_time_or_of_no_form_is_rejected_alone(acme: Cast, key: str) -> None:
    body = logs(
        claude(**RESULT),
        claude(**RESULT) | {"timeUnixNano": "0"},
        claude(**RESULT) | {"timeUnixNano": "soon"},
        claude(**RESULT, x="y" * 1_100_000),
    )
    answer = post(key, body, JSON, path=LOGS)

    assert (answer.status_code, answer.rejected) == (200, 3)
    assert answer.message.startswith("3 log records rejected: ")
    assert len(calls(acme.tenant)) == 1


@pytest.mark.parametrize(
    "attributes",
    [
        {"duration_ms": "nan"},
        {"duration_ms": "-1"},
        {"duration_ms": "1e999"},
        {"duration_ms": {"kvlistValue": {"values": []}}},
        {"tool_name": {"arrayValue": {"values": []}}, "session.id": {"intValue": "3"}},
        {"tool_name": "\x00" * 5000, "tool_use_id": "\x00", "session.id": "\ud800"[:0]},
        {"tool_input": "[" * 5000, "success": {"bytesValue": "AA=="}},
    ],
)
def test_hostile_values_lose_no_call(acme: Cast, key: str, attributes: dict[str, Any]) -> None:
    answer = post(key, logs(claude(**attributes), claude(tool_use_id="x")), JSON, path=LOGS)

    assert (answer.status_code, answer.rejected) == (200, 0)
    assert len(calls(acme.tenant)) == 2


def test_metrics_are_taken_and_counted_and_not_read(key: str) -> None:
    def count() -> float:
        (line,) = (
            line
            for line in metrics.exposition({}).splitlines()
            if line.startswith('tooltrail_otlp_requests_total{signal="metrics"}')
        )
        return float(line.split()[-1])

    before = count()
    for path in ("/v1/metrics", "/v1/metrics/"):
        assert post(key, b"anything", PROTOBUF, path=path).body == b""
        assert post(key, b'{"resourceMetrics": []}', JSON, path=path).body == b"{}"
    assert count() == before + 4
    assert post("", b"", PROTOBUF, path="/v1/metrics").status_code == 401
    assert post(key, b"x" * (5 * 2**20 + 1), PROTOBUF, path="/v1/metrics").status_code == 413
    assert post(key, b"", PROTOBUF, path="/v1/metrics", content_encoding="br").status_code == 415


@pytest.mark.parametrize("path", ["/v1/traces/", "/api/public/otel/v1/traces"])
def test_other_paths_take_spans(acme: Cast, key: str, path: str) -> None:
    assert post(key, request(span()), JSON, path=path).status_code == 200
    assert len(calls(acme.tenant)) == 1


def test_other_encoding_is_rejected_with_those_that_are_taken(key: str) -> None:
    answer = post(key, b"", JSON, path=LOGS, content_encoding="snappy")

    assert answer.status_code == 415
    assert answer.headers["Accept-Encoding"] == "gzip, zstd, deflate, identity"
