"""Rounds and tasks of a real MCP server are one call, whoever records: client, server or both."""

import json
from collections import defaultdict
from typing import Any

import pytest

from sdk.tests.integrations.calls import HERE, run_in_environment

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("recorded", ["server", "client", "both"])
def test_call_of_several_requests_is_one_call(recorded: str) -> None:
    ran = run_in_environment("mcp", HERE / "mcp" / "rounds.py", recorded)
    assert ran.returncode == 0, ran.stderr[-4000:]
    calls: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in json.loads(ran.stdout):
        calls[event["invocation_id"]].append(event)
    states_by_tool: dict[str, list[list[str]]] = defaultdict(list)
    for start, *ends in calls.values():
        assert start["type"] == "toolExecutionStart"
        states = [
            each.get("call_state") or ("failed" if each["is_error"] else "ok") for each in ends
        ]
        states_by_tool[start["tool_name"]].append(states)
    assert states_by_tool == {
        "book": [["waiting", "ok"]],
        "twice": [["waiting", "waiting", "ok"]],
        "research": [["working", "waiting", "ok"]],
        "spoil": [["working", "failed"]],
        "abandon": [["waiting"], ["waiting"]],
    }
    (spoiled,) = [each for each in calls.values() if each[0]["tool_name"] == "spoil"]
    assert spoiled[-1]["output"]["error"]["message"] == "no tea"
