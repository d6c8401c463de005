"""Streamable HTTP of all protocol versions, and what is refused."""

import json
from typing import Any

import mcp_types
import pytest
from django.test import Client

from audit.mcp import protocol
from audit.mcp.protocol import CAPABILITIES_META, LATEST, VERSION_META, WITH_HANDSHAKE
from audit.mcp.transport import BODY_MAX_BYTES
from tenants.keys import create_key
from tenants.models import Scope
from tests.support.factories import Cast
from tests.support.mcp_agent import Agent


@pytest.fixture
def agent(acme: Cast) -> Agent:
    return Agent(acme.tenant)


def post(agent: Agent, body: Any, **headers: str) -> Any:
    """The response to a body without the headers of the newest version."""
    sent = {"Authorization": f"Bearer {agent.key}"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    return Client().post("/mcp", text, content_type="application/json", headers=sent)


def request(method: str, number: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def test_newest_version_needs_no_handshake(agent: Agent) -> None:
    found = mcp_types.DiscoverResult.model_validate(agent.ask("server/discover"))
    assert set(found.supported_versions) == set(protocol.VERSIONS)
    tools = mcp_types.ListToolsResult.model_validate(agent.ask("tools/list"))
    assert len(tools.tools) == 12
    assert all(tool.output_schema and tool.description for tool in tools.tools)
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.tools)
    result = mcp_types.CallToolResult.model_validate(agent.call("latency"))
    assert not result.is_error
    response = agent.send("tools/list")
    assert response["Cache-Control"] == "no-store"
    assert "Mcp-Session-Id" not in response


def test_grammar_is_a_resource(agent: Agent) -> None:
    [resource] = agent.ask("resources/list")["resources"]
    [contents] = agent.ask("resources/read", {"uri": resource["uri"]})["contents"]
    assert "**Terms.**" in contents["text"]
    assert agent.ask("resources/templates/list")["resourceTemplates"] == []
    missing = agent.send("resources/read", {"uri": "tooltrail://docs/../secret"})
    assert missing.status_code == 400
    assert missing.json()["error"]["code"] == protocol.INVALID_PARAMS


@pytest.mark.parametrize("version", WITH_HANDSHAKE)
def test_clients_with_a_handshake(agent: Agent, version: str) -> None:
    info = {"name": "older client", "version": "1"}
    begun = post(
        agent,
        request("initialize", protocolVersion=version, capabilities={}, clientInfo=info),
    )
    assert begun.json()["result"]["protocolVersion"] == version
    session = begun["Mcp-Session-Id"]
    assert session.isascii() and session.isprintable()
    headers = {"Mcp_Session_Id": session, "MCP_Protocol_Version": version}
    noted = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(agent, noted, **headers).status_code == 202
    assert post(agent, request("ping"), **headers).json()["result"] == {}
    called = post(agent, request("tools/call", name="latency"), **headers).json()["result"]
    assert not called["isError"]
    assert "resultType" not in called
    unknown = post(agent, request("tasks/list"), **headers)
    # 404 would mean that the session has ended.
    assert unknown.status_code == 200
    assert unknown.json()["error"]["code"] == protocol.METHOD_NOT_FOUND
    message = protocol.read(request("ping"), version, {"Mcp-Session-Id": session})
    assert message.client == "older client"


@pytest.mark.parametrize("name", ["a", "aaaaa", "____", "", "=", "é"])
def test_session_of_another_server_names_no_client(agent: Agent, name: str) -> None:
    headers = {"Mcp_Session_Id": f"{'0' * 32}.{name}", "MCP_Protocol_Version": WITH_HANDSHAKE[0]}
    assert post(agent, request("ping"), **headers).json()["result"] == {}


def test_unknown_version_is_answered_with_ours(agent: Agent) -> None:
    begun = post(agent, request("initialize", protocolVersion="1999-01-01"))
    assert begun.json()["result"]["protocolVersion"] == WITH_HANDSHAKE[0]


def test_batches_are_for_the_first_version_only(agent: Agent) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    batch = [request("ping"), note, request("nothing", 2), request("ping", "three")]
    answers = post(agent, batch).json()
    assert [one["id"] for one in answers] == [1, 2, "three"]
    assert "error" in answers[1]
    assert post(agent, [note]).status_code == 202
    assert post(agent, batch, MCP_Protocol_Version="2025-06-18").status_code == 400
    assert post(agent, []).status_code == 400
    assert post(agent, [request("ping")] * (protocol.BATCH_MAX + 1)).status_code == 400


META = {VERSION_META: LATEST, CAPABILITIES_META: {}}


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"MCP_Protocol_Version": "2027-01-01"}, protocol.UNSUPPORTED_VERSION),
        ({"Mcp_Method": "tools/list"}, protocol.HEADER_MISMATCH),
        ({"Mcp_Name": "alerts"}, protocol.HEADER_MISMATCH),
        ({"Mcp_Name": "=?base64?!?="}, protocol.HEADER_MISMATCH),
    ],
)
def test_headers_that_contradict_the_body(agent: Agent, headers: dict[str, str], code: int) -> None:
    response = agent.send("tools/call", {"name": "latency"}, **headers)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == code


def test_encoded_name_is_read(agent: Agent) -> None:
    response = agent.send("tools/call", {"name": "latency"}, Mcp_Name="=?base64?bGF0ZW5jeQ==?=")
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", protocol.PARSE_ERROR),
        (b"\xff\xfe", protocol.PARSE_ERROR),
        ("[" * 100_000, protocol.PARSE_ERROR),
        ("1", protocol.INVALID_REQUEST),
        ({"id": 1, "method": "ping"}, protocol.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 1, "method": 1}, protocol.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, protocol.INVALID_REQUEST),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, protocol.INVALID_REQUEST),
        (request("tools/call", name="drop_tables"), protocol.INVALID_PARAMS),
        (request("tools/call", name=1), protocol.INVALID_PARAMS),
        (request("tools/call", name="latency", arguments=[]), protocol.INVALID_PARAMS),
        (request("tools/list", cursor="x"), protocol.INVALID_PARAMS),
        (request("resources/read"), protocol.RESOURCE_NOT_FOUND),
        (request("tools/delete"), protocol.METHOD_NOT_FOUND),
    ],
)
def test_bad_messages_are_errors_of_json_rpc(agent: Agent, body: Any, code: int) -> None:
    response = post(agent, body)
    assert response.status_code in {200, 400}
    assert response.json()["error"]["code"] == code


@pytest.mark.parametrize("meta", [None, {}, {VERSION_META: LATEST}, {**META, VERSION_META: "x"}])
def test_newest_version_says_in_each_request_what_it_is(agent: Agent, meta: Any) -> None:
    body = request("tools/list", _meta=meta)
    response = post(agent, body, MCP_Protocol_Version=LATEST, Mcp_Method="tools/list")
    assert response.status_code == 400
    for method in ("initialize", "ping"):
        assert agent.send(method).status_code == 404


def test_what_is_no_message_of_a_client_is_refused(agent: Agent, acme: Cast) -> None:
    authorization = {"Authorization": f"Bearer {agent.key}"}
    for method in ("GET", "DELETE", "PUT"):
        refused = Client().generic(method, "/mcp", headers=authorization)
        assert (refused.status_code, refused["Allow"]) == (405, "POST")
    assert post(agent, b"x" * (BODY_MAX_BYTES + 1)).status_code == 413
    text = Client().post("/mcp", "{}", content_type="text/plain", headers=authorization)
    assert text.status_code == 415
    sender = create_key(acme.tenant, "executor", [Scope.INGEST])[1]
    for key, status in (("", 401), ("tt_x", 401), (sender, 403)):
        refused = Client().post(
            "/mcp", "{}", content_type="application/json", headers={"X-API-Key": key}
        )
        assert refused.status_code == status
        assert (refused.headers.get("WWW-Authenticate") is not None) == (status == 401)


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://testserver", 200), ("https://evil.example", 403), ("null", 403)],
)
def test_pages_of_other_origins_are_refused(agent: Agent, origin: str, status: int) -> None:
    assert agent.send("tools/list", Origin=origin).status_code == status
