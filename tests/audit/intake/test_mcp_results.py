"""Events and spans with MCP results: indexed, validated and shown as MCP defines."""

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from audit.index.reindex import reindex
from audit.intake import arrival
from audit.models import Invocation, Violation
from audit.queries.call_list import call_page
from audit.queries.call_query import Reader, parse
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tests.support.arrival_checks import register_checked_tool
from tests.support.factories import Cast, make_call, make_ingest_key
from tests.support.otlp_requests import JSON, calls, post, request, span
from tests.support.random_requests import record_request
from tests.support.recount import assert_consistent

WEATHER = {"celsius": 22.5}
PROSE = {"type": "text", "text": "no such city"}
STRUCTURED = {"content": [PROSE], "structuredContent": WEATHER, "isError": False}
FAILED = {"content": [PROSE], "isError": True}
BROKEN = {"content": [PROSE], "structuredContent": {"days": ["two"]}}
UNSTRUCTURED = {"content": [PROSE]}


@pytest.fixture(autouse=True)
def known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "BELIEVED_FOR", 0.0)


def mcp_call(result: Any, *, is_bare: bool = False, **members: Any) -> list[dict[str, Any]]:
    output = result if is_bare else {"status": "ok", "data": result, "meta": {"took_ms": 20}}
    start, end = make_call(output=output, **members)
    return [start, end | {"output_type": "CallToolResult"}]


def states(tenant: Tenant) -> list[tuple[str, str, str | None]]:
    with tenant_scope(tenant.id):
        rows = Invocation.objects.for_tenant(tenant.id).order_by("started_at", "invocation_id")
        return [(row.state, row.error_type, row.error_message) for row in rows]


def violations_of(tenant: Tenant) -> list[tuple[str, str]]:
    with tenant_scope(tenant.id):
        rows = Violation.objects.for_tenant(tenant.id).order_by("invocation_id", "ordinal")
        return [(row.path, row.code) for row in rows]


def is_as_logged(tenant: Tenant) -> bool:
    assert_consistent(tenant)
    return reindex(tenant.id, repair=False, progress=lambda done, size: None).is_clean


@pytest.mark.slow
@pytest.mark.parametrize("is_bare", [True, False])
def test_error_result_fails_the_call_with_its_text(acme: Cast, is_bare: bool) -> None:
    assert not record_request(acme.tenant, mcp_call(FAILED, is_bare=is_bare))["rejected"]
    assert states(acme.tenant) == [("failed", "tool_error", "no such city")]
    assert is_as_logged(acme.tenant)


@pytest.mark.slow
def test_events_without_output_type_stay_as_they_were(acme: Cast) -> None:
    start, end = make_call(output=FAILED)
    record_request(acme.tenant, [start, end])
    record_request(acme.tenant, [each | {"output_type": 7} for each in make_call(output=FAILED)])
    assert states(acme.tenant) == [("ok", "", None)] * 2
    assert is_as_logged(acme.tenant)


def test_envelope_of_a_failed_call_counts_before_its_result(acme: Cast) -> None:
    output = {"status": "error", "error": {"type": "FATAL", "message": "mine"}, **FAILED}
    record_request(acme.tenant, mcp_call(output, is_bare=True, is_error=True))
    assert states(acme.tenant) == [("failed", "FATAL", "mine")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (STRUCTURED, []),
        ({"content": [{"type": "text", "text": json.dumps(WEATHER)}]}, []),
        (FAILED, []),
        (BROKEN, [("$.celsius", "MISSING_REQUIRED"), ("$.days[0]", "WRONG_TYPE")]),
        (UNSTRUCTURED, [("$", "MISSING_STRUCTURED_CONTENT")]),
    ],
    ids=["structured", "text", "error", "broken", "missing"],
)
def test_structured_content_is_validated_on_arrival(
    acme: Cast, result: Any, expected: list[tuple[str, str]]
) -> None:
    register_checked_tool(acme.tenant)
    record_request(acme.tenant, [*mcp_call(result), *mcp_call(result, is_bare=True)])
    assert violations_of(acme.tenant) == expected * 2
    assert is_as_logged(acme.tenant)


def mcp_span(result: Any, **members: Any) -> dict[str, Any]:
    attributes = {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.result": json.dumps(result),
    }
    return span("tools/call get_weather", attributes=attributes, kind=2, **members)


@pytest.mark.slow
def test_span_states_that_its_result_is_one_of_mcp(acme: Cast) -> None:
    key = make_ingest_key(acme.tenant)
    for each in (STRUCTURED, FAILED, WEATHER):
        assert post(key, request(mcp_span(each)), JSON).status_code == 200
    stored = calls(acme.tenant)
    assert [call.end.get("output_type") for call in stored] == [
        "CallToolResult",
        "CallToolResult",
        None,
    ]
    assert states(acme.tenant)[1] == ("failed", "tool_error", "no such city")
    assert is_as_logged(acme.tenant)


def page_of(cast: Cast, user: Any) -> str:
    client = Client()
    client.force_login(user)
    with tenant_scope(cast.tenant.id):
        call = Invocation.objects.for_tenant(cast.tenant.id).get()
    address = f"/calls/{call.started_on:%Y-%m-%d}/{call.invocation_id}"
    return client.get(address).content.decode()


@pytest.mark.parametrize(
    ("result", "shown", "hidden"),
    [
        (
            STRUCTURED,
            ["22.5", "Content", "no such city"],
            ["structuredContent", "JSON in the text"],
        ),
        (
            {"content": [{"type": "text", "text": '{"celsius": 22.50}'}]},
            ["22.50", "JSON in the text"],
            ["The executor sent no output"],
        ),
        (UNSTRUCTURED, ["no structured content", "no such city"], ["The executor sent no output"]),
    ],
    ids=["structured", "text", "missing"],
)
def test_page_shows_structured_content_and_content(
    acme: Cast, result: Any, shown: list[str], hidden: list[str]
) -> None:
    record_request(acme.tenant, mcp_call(result, started_at=timezone.now()))
    page = page_of(acme, acme.editor)
    panel = page.partition("Raw")[0]
    assert [text for text in shown if text not in panel] == []
    assert [text for text in hidden if text in panel] == []
    assert "no such city" not in page_of(acme, acme.viewer)


def test_page_names_client_server_and_protocol(acme: Cast) -> None:
    meta = {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "weather", "version": "7.1"}}}
    start, end = mcp_call(STRUCTURED | meta, started_at=timezone.now())
    stated = {"client": {"name": "desk", "version": "2"}, "server": 7, "protocol_version": "2026"}
    record_request(acme.tenant, [start | {"mcp": stated}, end | {"mcp": [1]}])
    page = page_of(acme, acme.editor)
    for name, value in (("server", "weather 7.1"), ("client", "desk 2"), ("protocol", "2026")):
        assert f"MCP {name}" in page
        assert value in page
    assert "weather 7.1" not in page_of(acme, acme.viewer)


def test_page_names_the_protocol_of_a_span(acme: Cast) -> None:
    attributes = {"mcp.method.name": "tools/call", "mcp.protocol.version": "2025-11-25"}
    each = span("tools/call get_weather", attributes=attributes)
    assert post(make_ingest_key(acme.tenant), request(each), JSON).status_code == 200
    assert "2025-11-25" in page_of(acme, acme.editor)


def found_by(cast: Cast, query: str) -> int:
    """How many calls a query finds."""
    parsed = parse(query, Reader(sees_payloads=True))
    assert not parsed.problems
    with tenant_scope(cast.tenant.id):
        return len(call_page(parsed.wanted, now=timezone.now()).calls)


STATED = {
    "client": {"name": "desk", "version": "2"},
    "server": {"name": "weather", "version": "7.1"},
    "protocol_version": "2026-07-28",
}
NAMED = {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "weather", "version": "8"}}}


@pytest.mark.slow
def test_calls_are_found_by_client_server_and_protocol(acme: Cast) -> None:
    start, end = mcp_call(STRUCTURED, started_at=timezone.now())
    record_request(acme.tenant, [start | {"mcp": STATED}, end])
    record_request(acme.tenant, mcp_call(STRUCTURED | NAMED, started_at=timezone.now()))
    record_request(acme.tenant, mcp_call(FAILED | NAMED, started_at=timezone.now()))
    record_request(acme.tenant, make_call(started_at=timezone.now()))
    attributes = {"mcp.method.name": "tools/call", "mcp.protocol.version": "2025-11-25"}
    each = span("tools/call get_weather", attributes=attributes)
    assert post(make_ingest_key(acme.tenant), request(each), JSON).status_code == 200
    for query, count in (
        ('server:"weather 7.1"', 1),
        ("server:weather*", 3),
        ("server:weather*  state:failed", 1),
        ("client:desk*", 1),
        ("client:*", 1),
        ("NOT server:*", 2),
        ("protocol:2026-07-28", 1),
        ("protocol:2025*", 1),
    ):
        assert found_by(acme, query) == count, query
    assert is_as_logged(acme.tenant)


@pytest.mark.parametrize(
    "stated",
    [7, [1], {"server": 7, "client": [], "protocol_version": {}}, {"server": {"name": 1}}, None],
)
def test_malformed_peers_are_ignored(acme: Cast, stated: Any) -> None:
    start, end = make_call(started_at=timezone.now())
    assert not record_request(acme.tenant, [start | {"mcp": stated}, end])["rejected"]
    assert found_by(acme, "server:* OR client:* OR protocol:*") == 0


@pytest.mark.slow
def test_what_the_start_states_counts_in_any_order(acme: Cast) -> None:
    for order in ((0, 1), (1, 0)):
        events = mcp_call(STRUCTURED | NAMED, started_at=timezone.now())
        events[0] |= {"mcp": STATED}
        for place in order:
            record_request(acme.tenant, [events[place]])
    assert found_by(acme, 'server:"weather 7.1" client:desk*') == 2
    assert is_as_logged(acme.tenant)
