"""The official MCP library uses every tool of a running server, and solves a case with them."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from audit.mcp.protocol import LATEST, WITH_HANDSHAKE
from audit.mcp.tools import TOOLS
from tenants.keys import create_key
from tenants.models import Scope
from tests.support.api_record import make_record
from tests.support.contracts import make_contract
from tests.support.factories import Cast, make_call, make_cast, send_events
from tests.support.ledger_log import sign
from tests.support.mcp_agent import Agent, arguments_about
from tests.support.otlp.environment import FRAMEWORKS, frameworks_python
from tests.support.server import LiveServer

pytestmark = [pytest.mark.slow, pytest.mark.sampled("mcp client", 1)]
SCRIPT = FRAMEWORKS / "mcp_official_client.py"


def run(task: str, server: LiveServer, agent: Agent, mode: str, given: Any = None) -> Any:
    """What the official client found out."""
    completed = subprocess.run(
        [frameworks_python(), str(SCRIPT), task, f"{server.url}/mcp", agent.key, mode],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def test_official_client_uses_every_tool(live_server: LiveServer) -> None:
    record = make_record(make_cast("acme"))
    agent = Agent(record.cast.tenant)
    given = {tool: arguments_about(record, tool) for tool in TOOLS}
    for mode, version in (("auto", LATEST), ("legacy", WITH_HANDSHAKE[0])):
        done = run("every-tool", live_server, agent, mode, given)
        assert done["version"] == version
        assert done["answers"].keys() == TOOLS.keys()
        assert [name for name, one in done["answers"].items() if one["is_error"]] == []
        assert all(
            {"notes", "untrusted"} <= set(one["members"]) for one in done["answers"].values()
        )
        assert done["grammar"] > 1_000


def outputs(**properties: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }


def publish(cast: Cast, **members: Any) -> None:
    key = create_key(cast.tenant, "release", [Scope.REGISTRY])[1]
    contract = make_contract(on_collision="replace", **members)
    answer = Client(headers={"Authorization": f"Bearer {key}"}).post(
        "/api/v1/tools", {"tools": [contract]}, content_type="application/json"
    )
    assert answer.status_code == 200, answer.content


def test_agent_finds_the_failing_tool_and_its_breaking_version(
    acme: Cast, live_server: LiveServer
) -> None:
    for schema in (outputs(celsius="number"), outputs(celsius="string")):
        publish(acme, name="get_weather", output_schema=schema)
    publish(acme, name="search", output_schema=outputs(hits="array"))
    start = datetime.now(UTC) - timedelta(hours=2)
    violation = {"path": "$.celsius", "code": "WRONG_TYPE", "severity": "error"}
    violation |= {"expected": "number", "received": "string"}
    guard = {"strategy": "warn", "outcome": "passed", "violations": [violation]}
    events = []
    for n in range(40):
        at = start + timedelta(minutes=n)
        version, broken = ("1", None) if n < 20 else ("2", guard)
        events += make_call(tool_version=version, guard=broken, started_at=at)
        events += make_call(tool_name="search", tool_version="1", started_at=at)
    send_events(acme.tenant, events)
    sign(acme.tenant)
    found = run("detective", live_server, Agent(acme.tenant), "auto")
    assert (found["tool"], found["version"], found["published"]) == ("get_weather", "2", 2)
    assert found["path"] == "$.celsius"
    assert ["$.celsius", "breaking"] in found["differences"]
