"""Calls of `/mcp` as calls of a tenant that the operator names."""

import json
import threading
import time
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client, override_settings

from audit.intake.group_commit import GROUP_COMMIT
from audit.mcp import methods, own_calls
from audit.mcp.own_calls import OwnCalls
from audit.mcp.protocol import WITH_HANDSHAKE
from audit.mcp.tool import Tool
from audit.mcp.tools import TOOLS
from config.version import VERSION
from tenants.models import Tenant
from tests.support.api_record import PAYLOAD, make_record
from tests.support.factories import Cast, make_call, make_cast, send_events
from tests.support.mcp_agent import WITH_PAYLOADS, Agent, arguments_about
from tests.support.pages import signed_in

SECRET = "trace-of-acme"


@pytest.fixture(autouse=True)
def line(monkeypatch: pytest.MonkeyPatch) -> OwnCalls:
    """A line of this test's own."""
    own = OwnCalls()
    monkeypatch.setattr(methods, "OWN_CALLS", own)
    return own


def recorded(tenant: Tenant) -> list[dict[str, Any]]:
    """The calls of a tenant as who may see payloads gets them from the API, the oldest first."""
    client = Client(headers={"Authorization": f"Bearer {Agent(tenant, WITH_PAYLOADS).key}"})
    calls = client.get("/api/v1/calls").json()["items"]
    return [client.get(f"/api/v1/calls/{call['invocation_id']}").json() for call in reversed(calls)]


def wait_for(count: int, tenant: Tenant) -> list[dict[str, Any]]:
    """Wait until a tenant has so many calls; the calls."""
    until = time.monotonic() + 20
    while len(calls := recorded(tenant)) < count:
        assert time.monotonic() < until, calls
        time.sleep(0.05)
    assert len(calls) == count
    return calls


@pytest.mark.slow
def test_a_use_is_a_call_without_what_it_asked_and_found(acme: Cast, globex: Cast) -> None:
    send_events(acme.tenant, make_call(trace_id=SECRET, tool_name=SECRET))
    agent = Agent(acme.tenant, WITH_PAYLOADS, name="coder")
    with override_settings(MCP_TENANT=globex.tenant.slug):
        assert agent.use("search_calls", q=f"trace:{SECRET}")["untrusted"]["items"]
        agent.use("search_calls", q=f"trace:{SECRET}")
        agent.call("get_call", invocation_id=SECRET)
        first, second, third = wait_for(3, globex.tenant)
    assert (first["tool_name"], first["tool_version"]) == ("search_calls", VERSION)
    assert [one["state"] for one in (first, second, third)] == ["ok", "ok", "failed"]
    assert first["duration_ms"] > 0
    start, end = (first[kind]["event"] for kind in ("start", "end"))
    assert start["args"].keys() == end["output"].keys() == {"digest", "bytes"}
    assert start["mcp"]["client"] == {"name": "coder"}
    assert second["start"]["event"]["args"] == start["args"], "repeats can be seen"
    assert third["start"]["event"]["args"] != start["args"]
    assert start["context"]["principal"].startswith("~"), "the key's id is a pseudonym"
    told = json.dumps([first, second, third])
    for hidden in (SECRET, acme.tenant.slug, str(acme.tenant.id), "agent's key"):
        assert hidden not in told
    page = signed_in(globex.editor).get(
        f"/calls/{start['started_at'][:10]}/{start['invocation_id']}"
    )
    assert "MCP client" in page.content.decode()
    assert SECRET not in page.content.decode()


@pytest.mark.slow
def test_no_tool_hands_a_payload_of_one_tenant_to_another(globex: Cast) -> None:
    record = make_record(make_cast("acme"))
    agent = Agent(record.cast.tenant, WITH_PAYLOADS)
    with override_settings(MCP_TENANT=globex.tenant.slug):
        results = [agent.call(tool, **arguments_about(record, tool)) for tool in TOOLS]
        calls = wait_for(len(TOOLS), globex.tenant)
    assert {call["tool_name"] for call in calls} == set(TOOLS)
    shown, kept = json.dumps(results), json.dumps(calls)
    for text in (PAYLOAD, "a/trace", str(record.failed), str(record.cast.tenant.id)):
        assert text not in kept
    assert PAYLOAD in shown


@pytest.mark.slow
def test_equal_arguments_of_two_tenants_have_different_digests(acme: Cast, globex: Cast) -> None:
    third = make_cast("initech")
    with override_settings(MCP_TENANT=globex.tenant.slug):
        for cast in (acme, third):
            Agent(cast.tenant).use("latency")
        calls = wait_for(2, globex.tenant)
    assert len({call["start"]["event"]["args"]["digest"] for call in calls}) == 2
    assert len({call["start"]["event"]["context"]["principal"] for call in calls}) == 2


def test_clients_with_a_handshake_are_named_with_their_version(acme: Cast, globex: Cast) -> None:
    key, version = Agent(acme.tenant).key, WITH_HANDSHAKE[0]
    authorization = {"Authorization": f"Bearer {key}", "MCP-Protocol-Version": version}

    def post(method: str, session: str = "", **params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = authorization | {"Mcp-Session-Id": session}
        return Client().post("/mcp", body, content_type="application/json", headers=headers)

    info = {"name": "older\nclient\x00", "version": "1.2"}
    begun = post("initialize", protocolVersion=version, capabilities={}, clientInfo=info)
    with override_settings(MCP_TENANT=globex.tenant.slug):
        post("tools/call", begun["Mcp-Session-Id"], name="latency")
        (call,) = wait_for(1, globex.tenant)
    assert call["start"]["event"]["mcp"]["client"] == {
        "name": "older client\ufffd",
        "version": "1.2",
    }


def wait_for_warning(line: OwnCalls) -> None:
    until = time.monotonic() + 20
    while not line._is_warned:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_nothing_is_recorded_unless_an_operator_names_a_tenant(
    acme: Cast, globex: Cast, line: OwnCalls
) -> None:
    Agent(acme.tenant).use("latency")
    with override_settings(MCP_TENANT="nobody"):
        Agent(acme.tenant).use("latency")
        wait_for_warning(line)
    with override_settings(MCP_TENANT=globex.tenant.slug):
        Agent(globex.tenant).use("latency")  # it would grow by reading itself
        Agent(acme.tenant).use("alerts")
        (call,) = wait_for(1, globex.tenant)
    assert call["tool_name"] == "alerts"
    assert recorded(acme.tenant) == []


def test_a_suspended_tenant_gets_no_call(acme: Cast, globex: Cast, line: OwnCalls) -> None:
    Tenant.objects.filter(pk=globex.tenant.pk).update(suspended_at="2026-01-01T00:00:00Z")
    with override_settings(MCP_TENANT=globex.tenant.slug):
        Agent(acme.tenant).use("latency")
        wait_for_warning(line)
    Tenant.objects.filter(pk=globex.tenant.pk).update(suspended_at=None)
    assert recorded(globex.tenant) == []


def test_a_tool_that_raises_is_a_failed_call(
    acme: Cast, globex: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise OperationalError(SECRET)

    with override_settings(MCP_TENANT=globex.tenant.slug):
        with monkeypatch.context() as patched:
            patched.setattr(Tool, "call", fail)
            assert Agent(acme.tenant).send("tools/call", {"name": "latency"}).status_code == 503
        (call,) = wait_for(1, globex.tenant)
    assert call["state"] == "failed"
    assert "output" not in call["end"]["event"]
    assert SECRET not in json.dumps(call)


def losses(tenant: Tenant) -> list[tuple[int, int]]:
    """How many events each producer gave up, and how many are missing, as the API lists them."""
    headers = {"Authorization": f"Bearer {Agent(tenant).key}"}
    answer = Client().get("/api/v1/producers", headers=headers).json()
    return [(one["given_up"], one["missing"]) for one in answer["items"]]


def test_calls_that_cannot_be_stored_are_declared(
    acme: Cast, globex: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = threading.Event()

    def away(*given: object) -> None:
        tried.set()
        raise OperationalError("away")

    monkeypatch.setattr(own_calls, "_TRIES", 1)
    agent = Agent(acme.tenant)
    with override_settings(MCP_TENANT=globex.tenant.slug):
        with monkeypatch.context() as patched:
            patched.setattr(GROUP_COMMIT, "store", away)
            agent.use("latency")
            assert tried.wait(20)
        agent.use("alerts")
        (call,) = wait_for(1, globex.tenant)
    assert call["tool_name"] == "alerts"
    assert losses(globex.tenant) == [(2, 0)]


@pytest.mark.slow
def test_a_full_line_drops_calls_and_declares_them(
    acme: Cast, globex: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = OwnCalls(waiting_max=1)
    monkeypatch.setattr(methods, "OWN_CALLS", own)
    storing, may_store = threading.Event(), threading.Event()
    store = GROUP_COMMIT.store

    def slowly(request: Any) -> Any:
        storing.set()
        assert may_store.wait(20)
        return store(request)

    monkeypatch.setattr(GROUP_COMMIT, "store", slowly)
    agent = Agent(acme.tenant)
    with override_settings(MCP_TENANT=globex.tenant.slug):
        agent.use("latency")
        assert storing.wait(20)
        for _ in range(3):  # one waits, two are dropped; none waits for the line
            agent.use("alerts")
        may_store.set()
        assert [call["tool_name"] for call in wait_for(2, globex.tenant)] == ["latency", "alerts"]
    assert losses(globex.tenant) == [(4, 0)]
