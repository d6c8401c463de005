"""Recorded rows of the AI Core's trace middleware."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tooltrail import tracing
from tooltrail.tracing import WsgiTraceMiddleware, parse_traceparent, resolve_trace
from tooltrail.tracing.resolution import find_trace

from sdk.tests.support.vectors import cases


def malformed_traceparent(row: dict[str, Any]) -> bool:
    value = row["headers"].get("traceparent", "")
    # The reference takes anything with three dashes; what it too ignores is comparable.
    return value.count("-") >= 3 and parse_traceparent(value) is None


def resolve_exempt(row: dict[str, Any]) -> str | None:
    if malformed_traceparent(row):
        return "decision 16: a malformed traceparent counts as absent"
    return None


def matches(actual: str | None, recorded: str | None, digits: int) -> bool:
    if recorded == "<generated>":
        return actual is not None and re.fullmatch(f"[0-9a-f]{{{digits}}}", actual) is not None
    return actual == recorded


@cases("contracts_trace.jsonl", "trace.resolve", exempt=resolve_exempt)
def test_recorded_resolve_rows(row: dict[str, Any]) -> None:
    body = bytes.fromhex(row["body_hex"]) if "body_hex" in row else row["body"]
    resolved = resolve_trace(row["headers"], row["query"], body, row["content_type"])
    outcome = row["outcome"]
    if "raises" in outcome:  # decision 16: undecodable bodies are ignored
        outcome = {"trace_id": "<generated>", "span_id": "<generated>"}
    assert matches(resolved.trace_id, outcome["trace_id"], 32)
    assert matches(resolved.span_id, outcome["span_id"], 16)


def middleware_exempt(row: dict[str, Any]) -> str | None:
    if row["headers"].get("traceparent") == "junk":
        return "decision 16: a malformed traceparent counts as absent, so it is not echoed"
    return None


@cases("contracts_trace.jsonl", "trace.middleware", exempt=middleware_exempt)
def test_recorded_middleware_rows(row: dict[str, Any]) -> None:
    opened: list[dict[str, Any]] = []

    class Trail:
        @contextmanager
        def trace(self, trace_id: str | None = None, **context: Any) -> Iterator[None]:
            opened.append({"trace.id": trace_id, **context})
            yield

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response(f"{row['response_status']} Whatever", [])
        return []

    answer: dict[str, str] = {}
    environ = {
        f"HTTP_{name.upper().replace('-', '_')}": value for name, value in row["headers"].items()
    }
    WsgiTraceMiddleware(app, Trail())(environ, lambda status, headers: answer.update(headers))
    recorded = row["outcome"]
    assert answer.keys() == recorded["response_headers"].keys()
    for name, value in recorded["response_headers"].items():
        assert matches(answer[name], value, 32)
    # The rest of the recorded log context is the host's own logging.
    names = {"trace.id": "trace.id", "case.id": "case_id", "idempotency.key": "idempotency_key"}
    expected = {new: recorded["log_context"].get(old) for old, new in names.items()}
    for name, value in expected.items():
        assert matches(opened[0].get(name), value, 32)


@cases("contracts_trace.jsonl", "trace.normalize")
def test_recorded_normalize_rows(row: dict[str, Any]) -> None:
    """Of the same members, `resolve_trace` makes the same id; where the reference raises, none."""
    trace = find_trace({}, body=json.dumps(row["meta"]), content_type="application/json")
    expected = row["outcome"].get("returns")
    assert (trace and trace.trace_id) == expected
    if expected is not None:
        assert row["outcome"]["meta_after"]["trace_id"] == expected


def require_ids_exempt(row: dict[str, Any]) -> str | None:
    if hasattr(tracing, "require_ids"):
        return None
    return "decisions, Python API: trace.require_ids is not ours to provide"


@cases("contracts_trace.jsonl", "trace.require_ids", exempt=require_ids_exempt)
def test_recorded_require_ids_rows(row: dict[str, Any]) -> None:
    """Exempt as long as the SDK has no such function."""
    require_ids: Any = getattr(tracing, "require_ids", None)
    with pytest.raises(ValueError, match=re.escape(row["outcome"]["message"])):
        require_ids(row["meta"], row["required"])
