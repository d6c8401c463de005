"""Definitions of OpenAI, Anthropic and MCP: read, written, and what they cannot express."""

import json
from typing import Any

import pytest
from django.test import Client

from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast
from tools_registry import states
from tools_registry.changes import Publisher
from tools_registry.exchange.document import ReadTool
from tools_registry.exchange.providers import PROVIDERS, define, not_strict
from tools_registry.exchange.reading import UnreadableError, open_document
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import find_version, register_contracts

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
STRICT = {
    "type": "object",
    "properties": {"city": {"type": ["string", "null"]}, "days": {"$ref": "#/$defs/days"}},
    "required": ["city", "days"],
    "additionalProperties": False,
    "$defs": {"days": {"type": "integer", "minimum": 1}},
}


def contract(**overrides: Any) -> ToolContract:
    return ToolContract.model_validate(make_contract(**overrides))


def definition(name: str, **overrides: Any) -> dict[str, Any]:
    [one] = define([contract(**overrides)], PROVIDERS[name])
    return one.document


def tools_in(document: Any) -> list[ReadTool]:
    return [entry.read() for entry in open_document(json.dumps(document)).entries]


@pytest.mark.parametrize(
    ("document", "form"),
    [
        ([{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}], "completions"),
        ([{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}], "responses"),
        ({"type": "function", "name": "f"}, "responses"),
        ({"model": "m", "tools": [{"name": "f", "input_schema": SCHEMA}]}, "Anthropic"),
        ({"tools": [{"name": "f", "inputSchema": SCHEMA}], "nextCursor": None}, "MCP"),
        ({"jsonrpc": "2.0", "result": {"tools": [{"name": "f", "inputSchema": SCHEMA}]}}, "MCP"),
    ],
)
def test_provider_format_is_detected(document: Any, form: str) -> None:
    [detected] = open_document(json.dumps(document)).forms
    assert form in detected
    [tool] = tools_in(document)
    assert (tool.name, tool.problems) == ("f", [])
    assert tool.members is not None
    assert tool.members["input_schema"]["type"] == "object"


def test_ignored_members_are_reported() -> None:
    entry = {"name": "f", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}}
    further = {"tools": [{"name": "g", "inputSchema": SCHEMA}], "nextCursor": "abc"}
    [tool] = tools_in([entry])
    assert tool.notes == ["not imported: $[0].cache_control"]
    assert "nextCursor" in open_document(json.dumps(further)).note


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (7, "$[0]: is not a JSON object"),
        (
            {"type": "computer_20250124", "name": "computer"},
            "the provider runs (computer_20250124)",
        ),
        ({"name": "f"}, "$[0]: has no function"),
        ({"name": "", "inputSchema": SCHEMA}, "$[0].name: is not a valid"),
        ({"name": "f", "description": 7, "inputSchema": {}}, "$[0].description: Input should be"),
        ({"name": "f", "inputSchema": []}, "$[0].inputSchema: Input should be"),
        ({"name": "f", "inputSchema": {"type": "x"}}, "$[0].inputSchema: is not a usable"),
        (
            {"name": "f", "inputSchema": {}, "outputSchema": {"$ref": "http://a/"}},
            "external references",
        ),
        ({"function": {"name": "f", "parameters": 7}}, "$[0].function.parameters: Input should"),
    ],
)
def test_invalid_definition_is_reported_with_its_position(entry: Any, message: str) -> None:
    good = {"name": "g", "input_schema": SCHEMA}
    bad, fine = tools_in([entry, good])
    assert any(message in problem for problem in bad.problems), bad.problems
    assert fine.problems == []


def test_duplicate_name_is_rejected_once() -> None:
    twins = [{"name": "f", "input_schema": SCHEMA}] * 2
    first, second = tools_in(twins)
    assert (first.problems, second.problems) == ([], ["$[1].name: is already the name of $[0]"])
    with pytest.raises(UnreadableError, match="has no function"):
        open_document("{}")


@pytest.mark.parametrize("name", PROVIDERS)
def test_written_definition_is_parsed_again(name: str) -> None:
    meta = {"mcp": {"title": "F", "annotations": {"readOnlyHint": True}}}
    written = PROVIDERS[name].wrap([definition(name, input_schema=STRICT, meta=meta)])
    [tool] = tools_in(written)
    assert tool.members is not None
    assert (tool.name, tool.problems, tool.notes) == ("get_weather", [], [])
    assert tool.members["input_schema"] == STRICT
    assert tool.members.get("output_schema") == (
        {"type": "object", "required": ["celsius"]} if name == "mcp" else None
    )
    assert tool.members.get("meta", {}).get("mcp") == (meta["mcp"] if name == "mcp" else None)


def test_definition_matches_each_provider() -> None:
    shared = {"name": "get_weather", "description": "Tells the weather."}
    inner = {**shared, "parameters": SCHEMA}
    assert definition("openai") == {"type": "function", "function": inner}
    assert definition("openai-responses") == {"type": "function", "strict": False, **inner}
    assert definition("anthropic") == {**shared, "input_schema": SCHEMA}
    output = {"type": "object", "required": ["celsius"]}
    assert definition("mcp") == {**shared, "inputSchema": SCHEMA, "outputSchema": output}


def test_strict_is_kept_if_the_schema_allows_strict_mode() -> None:
    meta = {"openai": {"strict": True}}
    assert definition("openai-responses", meta=meta, input_schema=STRICT)["strict"] is True
    assert definition("openai", meta=meta, input_schema=STRICT)["function"]["strict"] is True
    [loose] = define([contract(meta=meta)], PROVIDERS["openai"])
    assert loose.document["function"]["strict"] is False
    [remark] = loose.remarks
    assert "additionalProperties is not false at $" in remark
    assert "not all properties are required at $" in remark


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({**STRICT, "anyOf": []}, "anyOf at $"),
        ({**STRICT, "properties": {"a": {"allOf": [{}]}}, "required": ["a"]}, "allOf at $.a"),
        ({**STRICT, "$defs": {"x": {"type": "object"}}}, "is not false at $defs.x"),
        (
            {**STRICT, "properties": {"a": {"items": {"not": {}}}}, "required": ["a"]},
            "not at $.a[*]",
        ),
    ],
)
def test_schemas_outside_strict_mode_are_reported(schema: dict[str, Any], message: str) -> None:
    assert list(not_strict(STRICT)) == []
    assert any(message in problem for problem in not_strict(schema))


def test_invalid_names_are_rewritten_uniquely_with_a_remark() -> None:
    contracts = [contract(name=name) for name in ("a.b", "a_b", "a/b", "x" * 70)]
    named = {
        provider: [(one.document.get("name"), one.remarks) for one in define(contracts, how)]
        for provider, how in PROVIDERS.items()
        if provider != "openai"
    }
    assert [name for name, _ in named["anthropic"]] == ["a_b_2", "a_b", "a_b_3", "x" * 70]
    assert [name for name, _ in named["openai-responses"]][3] == "x" * 64
    assert [name for name, _ in named["mcp"]][:3] == ["a.b", "a_b", "a_b_2"]
    assert "exported as a_b_2" in named["anthropic"][0][1][0]
    assert named["anthropic"][1][1] == ()


@pytest.mark.parametrize(
    ("provider", "change", "message"),
    [
        (
            "openai",
            {"description": "x" * 1025},
            "1,025 characters; the provider rejects more than 1,024",
        ),
        ("anthropic", {"input_schema": {"type": "object", "anyOf": [{}]}}, "has anyOf at the top"),
        ("anthropic", {"input_schema": {}}, "input schema does not have type object"),
        ("mcp", {"output_schema": {"type": "string"}}, "output schema does not have type object"),
    ],
)
def test_provider_limits_are_reported(provider: str, change: dict[str, Any], message: str) -> None:
    [one] = define([contract(**change)], PROVIDERS[provider])
    assert any(message in remark for remark in one.remarks)


def test_definitions_are_downloaded_with_remarks(acme: Cast) -> None:
    by = Publisher(key_id="key")
    with tenant_scope(acme.tenant.id):
        brought = [contract(), contract(name="a.b"), contract(name="gone")]
        register_contracts(acme.tenant, brought, by)
        gone = Tool.objects.get(name="gone")
        retired = find_version(gone, 1)
        assert retired is not None
        states.retire(retired, by)
        tool = Tool.objects.get(name="a.b")
    client = Client()
    client.force_login(acme.viewer)
    page = client.get("/tools/definitions").content.decode()
    for shown in ("of 2 tools", "exported as a_b", "Not supported: output schemas"):
        assert shown in page
    listed = client.get("/tools/definitions/mcp.json").json()["tools"]
    assert [one["name"] for one in listed] == ["a.b", "get_weather"]
    [one] = client.get(f"/tools/{tool.pk}/definitions/anthropic.json").json()
    assert one["name"] == "a_b"
    assert "Current version: 1" in client.get(f"/tools/{tool.pk}/definitions").content.decode()
    assert client.get("/tools/definitions/gemini.json").status_code == 404
    _, key = create_key(acme.tenant, "executor", [Scope.REGISTRY])
    api = Client(headers={"Authorization": f"Bearer {key}"})
    answer = api.get("/api/v1/registry/definitions?provider=openai&name=a.b").json()
    assert [one["function"]["name"] for one in answer["definitions"]] == ["a_b"]
    assert answer["remarks"][0]["name"] == "a.b"
    for query, status in (("provider=x", 422), ("provider=mcp&name=gone", 404), ("x=1", 422)):
        assert api.get(f"/api/v1/registry/definitions?{query}").status_code == status
