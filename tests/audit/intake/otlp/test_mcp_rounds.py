"""States of calls of a real MCP server (2026-07-28), as our SDK and as spans report them."""

import json
import subprocess
import sysconfig
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from tooltrail.mcp_results import read_result

from audit.models import Invocation
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, make_ingest_key, make_tenant, send_events
from tests.support.otlp.environment import FRAMEWORKS, npm_server, run_framework
from tests.support.otlp_requests import calls
from tests.support.recount import assert_consistent
from tests.support.server import LiveServer
from tests.support.stored_events import stored_lines

pytestmark = [pytest.mark.slow, pytest.mark.sampled("MCP rounds", 1)]


def run(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, sdk_key: str, span_key: str, tool: str
) -> dict[str, Any]:
    """Call a tool; the SDK sends to one tenant, client and server their spans to another."""
    monkeypatch.setenv("TOOLTRAIL_URL", server.url)
    monkeypatch.setenv("TOOLTRAIL_API_KEY", sdk_key)
    script = f"mcp_rounds.py {sysconfig.get_path('purelib')} {tool}"
    printed: dict[str, Any] = json.loads(run_framework(script, server.url, f"x-api-key={span_key}"))
    return printed


def test_rounds_of_input_are_one_call_of_the_sdk(
    acme: Cast, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = make_tenant("spans")
    keys = make_ingest_key(acme.tenant), make_ingest_key(spans)
    assert run(live_server, monkeypatch, *keys, "book")["requests"] == 2
    (call,) = calls(acme.tenant)
    assert (call.row.state, call.row.interim_state) == ("ok", "waiting")
    assert call.output["content"][0]["text"] == "Booked."
    # In spans each round is a call. Nothing in the second one names the first.
    with tenant_scope(spans.id):
        rounds = Invocation.objects.for_tenant(spans.id).order_by("started_at")
        assert [one.state for one in rounds] == ["waiting", "ok"]
        assert len({one.trace_id for one in rounds}) == 1
    request, answered = (
        line for line in stored_lines(Cast(spans, *[acme.admin] * 4)) if b"result" in line
    )
    assert b"round-1" in request and b"round-1" not in answered
    for tenant in (acme.tenant, spans):
        assert_consistent(tenant)


def test_task_that_is_polled_by_its_id_is_one_call(
    acme: Cast, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = make_tenant("spans")
    keys = make_ingest_key(acme.tenant), make_ingest_key(spans)
    printed = run(live_server, monkeypatch, *keys, "research")
    assert (printed["requests"], printed["polls"], printed["text"]) == (1, 3, "Tea.")
    (call,) = calls(acme.tenant)
    assert (call.row.state, call.row.interim_state) == ("ok", "working")
    assert call.output["content"][0]["text"] == "Tea."
    reports = [line for line in stored_lines(acme) if b'"working"' in line]
    assert len(reports) == 3, "one for each poll"
    # The span of the call ends when the server returns the task; a poll is no call of a tool.
    with tenant_scope(spans.id):
        (row,) = Invocation.objects.for_tenant(spans.id)
    assert row.state == "working"
    for tenant in (acme.tenant, spans):
        assert_consistent(tenant)


def test_notification_that_a_request_is_cancelled(
    acme: Cast, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = make_tenant("spans")
    keys = make_ingest_key(acme.tenant), make_ingest_key(spans)
    assert run(live_server, monkeypatch, *keys, "wait")["cancelled"]
    for tenant in (acme.tenant, spans):
        (call,) = calls(tenant)
        assert call.row.state == "cancelled"
        assert_consistent(tenant)


@pytest.mark.parametrize(("option", "state"), [("", "ok"), ("cancel", "cancelled")])
def test_task_of_a_server_from_npm_is_one_call_by_events(
    acme: Cast, option: str, state: str
) -> None:
    node, server, _ = npm_server().split()
    folder = server.partition("/node_modules/")[0]
    completed = subprocess.run(
        [node, str(FRAMEWORKS / "mcp_task.mjs"), folder, server, *filter(None, [option])],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout.splitlines()
    start, end = make_call(tool_name="simulate-research-query", args={"topic": "tea"})
    send_events(acme.tenant, [start])
    began = datetime.fromisoformat(start["started_at"])
    states = []
    for second, line in enumerate(completed, 1):
        message = json.loads(line)
        output = message.get("result") or {"task": message["task"]}
        read = read_result(output)
        assert read is not None
        report = end | {
            "event_id": str(uuid4()),
            "ended_at": (began + timedelta(seconds=second)).isoformat(),
            "output_type": "CallToolResult",
            "output": output,
            "call_state": read.call_state,
        }
        assert send_events(acme.tenant, [report])["rejected"] == []
        with tenant_scope(acme.tenant.id):
            (row,) = Invocation.objects.for_tenant(acme.tenant.id)
        states.append(row.state)
    assert set(states[:-1]) == {"working"} and len(states) > 2, completed
    assert states[-1] == state
    assert_consistent(acme.tenant)
