"""Traces for page tests: a failed output, a guard's violation, and a trace with both."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.factories import Cast, make_call, send_events

FAILED_OUTPUT: dict[str, Any] = {
    "status": "error",
    "error": {"type": "UPSTREAM", "message": "Bad gateway", "upstream_status": 502},
    "meta": {"took_ms": 3},
}
VIOLATED_GUARD: dict[str, Any] = {
    "strategy": "warn",
    "outcome": "passed",
    "violations": [
        {
            "path": "$.unit",
            "severity": "error",
            "code": "ENUM_MISMATCH",
            "expected": "C | F",
            "received": "K",
            "message": "",
            "llmMessage": "",
        }
    ],
}
NOW = datetime.now(UTC)


def milliseconds_after_start(milliseconds: int) -> datetime:
    """A moment of the trace, which starts a minute before this module was imported."""
    return NOW - timedelta(minutes=1) + timedelta(milliseconds=milliseconds)


def send_family(cast: Cast) -> dict[str, str]:
    """Send a root call with a failed, a violating and an open child; the call ids by tool."""
    root = str(uuid.uuid4())
    calls = [
        make_call(
            tool_name="plan",
            invocation_id=root,
            started_at=milliseconds_after_start(0),
            duration_ms=4_000,
        ),
        make_call(
            tool_name="fetch_page",
            parent_invocation_id=root,
            started_at=milliseconds_after_start(500),
            duration_ms=730,
            output=FAILED_OUTPUT,
        ),
        make_call(
            tool_name="get_weather",
            parent_invocation_id=root,
            started_at=milliseconds_after_start(2_000),
            duration_ms=96,
            guard=VIOLATED_GUARD,
        ),
        make_call(
            tool_name="notify",
            parent_invocation_id=root,
            started_at=milliseconds_after_start(3_900),
            is_open=True,
            timeouts_ms=1_000,
        ),
    ]
    send_events(cast.tenant, [event for call in calls for event in call])
    return {str(call[0]["tool_name"]): str(call[0]["invocation_id"]) for call in calls}
