"""Results of real MCP servers, through our SDK, as spans and as events: read as MCP defines."""

import json
import sysconfig
from collections.abc import Callable
from typing import Any

import pytest
from tooltrail.tools.digest import definition_digest

from audit.events.judgement import PASSED, Judge
from audit.intake import arrival
from audit.models import Violation
from audit.queries.definitions import ServedTool, ToolFilter, find_definition, served_tools
from tenants.scope import tenant_scope
from tests.support.arrival_checks import register_checked_tool
from tests.support.factories import Cast, make_call, make_ingest_key, send_events
from tests.support.otlp.environment import FRAMEWORKS, frameworks_python, npm_server, run_framework
from tests.support.otlp_requests import Stored, calls
from tests.support.recount import assert_consistent
from tests.support.server import LiveServer

pytestmark = pytest.mark.slow

WEATHER = {
    "type": "object",
    "properties": {"celsius": {"type": "number"}},
    "required": ["celsius"],
    "additionalProperties": False,
}
HUMID = {"type": "object", "required": ["humidity"]}


def python_server() -> str:
    return f"{frameworks_python()} {FRAMEWORKS / 'mcp_client_server.py'} server"


SERVERS: list[tuple[Callable[[], str], str, dict[str, Any], dict[str, Any]]] = [
    (python_server, "get_weather", {"city": "London"}, {"celsius": 22.5}),
    (
        npm_server,
        "get-structured-content",
        {"location": "Chicago"},
        {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82},
    ),
]


@pytest.fixture(autouse=True)
def known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "BELIEVED_FOR", 0.0)


def recorded(
    acme: Cast, server: LiveServer, monkeypatch: pytest.MonkeyPatch, command: str, *call: str
) -> dict[str, Any]:
    """Call a tool of a server through our SDK; its result as the server sent it."""
    monkeypatch.setenv("TOOLTRAIL_URL", server.url)
    monkeypatch.setenv("TOOLTRAIL_API_KEY", make_ingest_key(acme.tenant))
    script = " ".join(["mcp_recorded.py", sysconfig.get_path("purelib"), *call, command])
    shown: dict[str, Any] = json.loads(run_framework(script, server.url, "x-api-key=none"))
    return shown


def served_by(acme: Cast) -> list[ServedTool]:
    with tenant_scope(acme.tenant.id):
        return served_tools(ToolFilter(), size=100).tools


def definition_of(acme: Cast, served: ServedTool) -> dict[str, Any]:
    assert served.definition is not None
    with tenant_scope(acme.tenant.id):
        details = find_definition(served.definition.id)
    assert details is not None
    document: dict[str, Any] = details.value
    return document


def judged(call: Stored, schema: dict[str, Any]) -> Any:
    return Judge("output", schema, schema).judge(json.dumps(call.end).encode())


def violations_of(acme: Cast) -> set[tuple[str, str]]:
    with tenant_scope(acme.tenant.id):
        rows = Violation.objects.for_tenant(acme.tenant.id)
        return {(row.path, row.code) for row in rows}


@pytest.mark.generated(1)
@pytest.mark.parametrize(("server", "tool", "args", "expected"), SERVERS, ids=["python", "npm"])
def test_structured_content_through_sdk_and_as_event(
    acme: Cast,
    live_server: LiveServer,
    monkeypatch: pytest.MonkeyPatch,
    server: Callable[[], str],
    tool: str,
    args: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    arguments = json.dumps(args, separators=(",", ":"))
    result = recorded(acme, live_server, monkeypatch, server(), tool, arguments)
    assert result["structuredContent"] == expected
    (call,) = calls(acme.tenant)
    assert call.row.state == "ok"
    assert call.end["guard"]["outcome"] == "passed", "the server's own schema"
    assert call.end["output_type"] == "CallToolResult"
    assert call.output["structuredContent"] == expected
    assert judged(call, {"type": "object", "required": list(expected)}) == PASSED
    (served,) = [each for each in served_by(acme) if each.tool_name == tool]
    definition = definition_of(acme, served)
    assert definition["outputSchema"]["type"] == "object"
    assert served.definition and served.definition.digest == definition_digest(definition)
    assert (served.server != "", served.is_unapproved) == (True, False)

    register_checked_tool(acme.tenant, name=tool, output_schema={"required": ["never"]})
    start, end = make_call(tool_name=tool, output=result)
    send_events(acme.tenant, [start, end | {"output_type": "CallToolResult"}])
    assert violations_of(acme) == {("$.never", "MISSING_REQUIRED")}
    assert_consistent(acme.tenant)


def test_error_of_a_server_is_a_failed_call(
    acme: Cast, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = python_server()
    result = recorded(acme, live_server, monkeypatch, command, "book_flight", '{"to":"London"}')
    assert result["isError"]
    (call,) = calls(acme.tenant)
    assert (call.row.state, call.row.error_type) == ("failed", "tool_error")
    assert "book_flight" in (call.row.error_message or "")


@pytest.mark.generated(1)
@pytest.mark.parametrize(
    ("schema", "kinds"), [(WEATHER, set()), (HUMID, {("$.humidity", "MISSING_REQUIRED")})]
)
def test_structured_content_in_spans_of_client_and_server(
    acme: Cast, live_server: LiveServer, schema: dict[str, Any], kinds: set[tuple[str, str]]
) -> None:
    register_checked_tool(acme.tenant, output_schema=schema)
    header = f"x-api-key={make_ingest_key(acme.tenant)}"
    run_framework("mcp_client_server.py client content", live_server.url, header)
    assert violations_of(acme) == kinds
    london = next(call for call in calls(acme.tenant) if call.row.tool_name == "get_weather")
    assert judged(london, WEATHER) == PASSED
    assert london.end["output_type"] == "CallToolResult"
    assert_consistent(acme.tenant)
