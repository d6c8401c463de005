"""Annotations of MCP definitions: kept, shown on pages, and filters of calls."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from audit.queries.call_list import call_page
from audit.queries.call_query import parse
from audit.queries.hints import hints_of_tool
from tenants.scope import tenant_scope
from tests.support.factories import (
    Cast,
    make_call,
    make_cast,
    make_definition,
    make_definitions,
    send_events,
)
from tests.support.pages import signed_in
from tools_registry.annotations import HINTS, declared_hints, tools_with_hint
from tools_registry.changes import Publisher
from tools_registry.exchange.reading import open_document
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import publish_version


def publish(cast: Cast, name: str, **annotations: Any) -> Tool:
    """Publish a version as an import of an MCP definition does."""
    contract = ToolContract.model_validate(
        {
            "name": name,
            # The meta does not make a contract another one.
            "description": json.dumps(annotations),
            "input_schema": {"type": "object"},
            "meta": {"mcp": {"annotations": annotations}} if annotations else {},
        }
    )
    with tenant_scope(cast.tenant.id):
        tool, _ = Tool.objects.get_or_create(tenant=cast.tenant, name=name)
        publish_version(tool, contract, Publisher(cast.editor))
        return tool


def listed_tools(cast: Cast, query: str) -> list[str]:
    with tenant_scope(cast.tenant.id):
        page = call_page(parse(query).wanted, now=timezone.now(), before=None, size=50)
        return sorted(call.tool_name for call in page.calls)


@pytest.mark.parametrize(
    ("meta", "hints"),
    [
        ({}, []),
        ({"mcp": 1}, []),
        ({"mcp": {"annotations": [1]}}, []),
        ({"mcp": {"annotations": {"destructiveHint": "true", "readOnlyHint": False}}}, []),
        ({"mcp": {"annotations": dict.fromkeys(HINTS.values(), True)}}, list(HINTS)),
        ({"openai": {"annotations": {"destructiveHint": True}}}, []),
    ],
)
def test_only_stated_hints_of_mcp_count(meta: dict[str, Any], hints: list[str]) -> None:
    assert declared_hints(meta) == hints


def test_calls_are_found_by_what_their_tools_declare(acme: Cast) -> None:
    publish(acme, "wipe", destructiveHint=True, title="destructiveHint")
    publish(acme, "look", readOnlyHint=True, idempotentHint=True, destructiveHint=False)
    publish(acme, "plain", title="destructiveHint")
    other = make_cast("other")
    publish(other, "elsewhere", destructiveHint=True)
    for name in ("wipe", "look", "plain", "elsewhere", "unknown"):
        send_events(acme.tenant, make_call(tool_name=name))
    assert listed_tools(acme, "is:destructive") == ["wipe"]
    assert listed_tools(acme, "is:read-only") == listed_tools(acme, "is:idempotent") == ["look"]
    assert listed_tools(acme, "is:open-world") == []
    assert listed_tools(acme, "NOT is:destructive tool:wipe") == []
    assert listed_tools(acme, "(is:destructive OR is:idempotent) state:ok") == ["look", "wipe"]
    with tenant_scope(acme.tenant.id):
        assert tools_with_hint(acme.tenant.id, "destructive") == ["wipe"]


def test_current_version_decides(acme: Cast) -> None:
    publish(acme, "wipe", destructiveHint=True)
    send_events(acme.tenant, make_call(tool_name="wipe"))
    publish(acme, "wipe", destructiveHint=False, idempotentHint=True)
    assert listed_tools(acme, "is:destructive") == []
    assert listed_tools(acme, "is:idempotent") == ["wipe"]


def serve(cast: Cast, age_s: int, server: str = "s", **annotations: Any) -> None:
    """A server lists its tool wipe."""
    served = make_definition("wipe", annotations=annotations)
    seen_at = timezone.now() - timedelta(seconds=age_s)
    answer = send_events(cast.tenant, [make_definitions(served, server=server, seen_at=seen_at)])
    assert answer["rejected"] == []


def call_at(cast: Cast, age_s: int, trace: str, server: str | None = None) -> list[dict[str, Any]]:
    started_at = timezone.now() - timedelta(seconds=age_s)
    start, end = make_call(tool_name="wipe", trace_id=trace, started_at=started_at)
    if server is not None:
        start["mcp"] = {"server": {"name": server, "version": "2"}}
    send_events(cast.tenant, [start, end])
    return [start, end]


def traces(cast: Cast, query: str) -> list[str]:
    with tenant_scope(cast.tenant.id):
        page = call_page(parse(query).wanted, now=timezone.now(), before=None, size=50)
        return sorted(call.trace_id for call in page.calls)


def test_definition_in_force_counts_before_the_registry(acme: Cast) -> None:
    publish(acme, "wipe", idempotentHint=True)
    serve(acme, 80)
    serve(acme, 60, readOnlyHint=True)
    serve(acme, 30, readOnlyHint=False, destructiveHint=True)
    for age_s, trace in ((100, "earlier"), (70, "unsaid"), (50, "reads"), (20, "destroys")):
        call_at(acme, age_s, trace)
    assert traces(acme, "is:read-only") == ["reads"]
    assert traces(acme, "is:destructive") == ["destroys"]
    assert traces(acme, "is:idempotent") == ["earlier", "unsaid"], "by the registry"
    assert traces(acme, "NOT is:destructive") == ["earlier", "reads", "unsaid"]


def test_definition_of_the_calls_own_server_counts_alone(acme: Cast) -> None:
    serve(acme, 60, "reader", readOnlyHint=True)
    serve(acme, 60, "wiper", destructiveHint=True)
    for server in ("reader", "wiper", "another", None):
        call_at(acme, 20, str(server), server)
    assert traces(acme, "is:read-only") == ["None", "another", "reader"]
    assert traces(acme, "is:destructive") == ["None", "another", "wiper"]
    other = make_cast("other")
    call_at(other, 20, "elsewhere")
    assert traces(other, "is:destructive") == []


def test_page_of_a_call_shows_hints_of_the_definition_in_force(acme: Cast) -> None:
    publish(acme, "wipe", idempotentHint=True)
    serve(acme, 60, readOnlyHint=True)
    serve(acme, 30, readOnlyHint=False, destructiveHint=True)
    shown = []
    for age_s in (50, 20, 90):
        start, _ = call_at(acme, age_s, "t")
        address = f"/calls/{start['started_at'][:10]}/{start['invocation_id']}"
        text = signed_in(acme.viewer).get(address).content.decode()
        shown.append([hint for hint in HINTS if f"?q=is:{hint}" in text])
    assert shown == [["read-only"], ["destructive"], ["idempotent"]]


@pytest.mark.slow
def test_hints_are_on_the_pages_of_tool_and_call(acme: Cast) -> None:
    tool = publish(acme, "wipe", destructiveHint=True)
    events = make_call(tool_name="wipe")
    send_events(acme.tenant, events)
    client = signed_in(acme.viewer)
    call = f"/calls/{events[0]['started_at'][:10]}/{events[0]['invocation_id']}"
    for address in (f"/tools/{tool.pk}", call):
        assert "/calls/?q=is:destructive" in client.get(address).content.decode()
    publish(acme, "wipe")
    for address in (f"/tools/{tool.pk}", call):
        assert "is:destructive" not in client.get(address).content.decode()
    with tenant_scope(acme.tenant.id):
        assert hints_of_tool("wipe") == []
        assert hints_of_tool("unknown") is None


def test_import_keeps_annotations() -> None:
    definition = {
        "name": "wipe",
        "inputSchema": {"type": "object"},
        "annotations": {"destructiveHint": True},
    }
    (entry,) = open_document(json.dumps({"tools": [definition]}).encode()).entries
    members = entry.read().members
    assert members is not None
    assert declared_hints(members["meta"]) == ["destructive"]
