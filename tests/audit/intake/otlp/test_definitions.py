"""The span attribute `gen_ai.tool.definitions`: text or structured, bounded, stored once."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from tooltrail.tools.digest import definition_digest

from audit.intake.otlp import definitions
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_definition, make_ingest_key
from tests.support.otlp_requests import JSON, fixture, post, request, span

GOOD = make_definition()
OPENAI = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    definitions._KNOWN.clear()
    yield
    definitions._KNOWN.clear()


def served(cast: Cast) -> list[tuple[str, str, str, int]]:
    with tenant_scope(cast.tenant.id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT server, tool_name, digest, sighting_count FROM served_definition"
            " ORDER BY server, tool_name, first_seen_at"
        )
        stored: list[tuple[str, str, str, int]] = cursor.fetchall()
        return stored


def any_value(value: Any) -> dict[str, Any]:
    """A value as OTLP/JSON has it."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case str():
            return {"stringValue": value}
        case list():
            return {"arrayValue": {"values": [any_value(each) for each in value]}}
        case _:
            members = [{"key": name, "value": any_value(each)} for name, each in value.items()]
            return {"kvlistValue": {"values": members}}


def send(cast: Cast, *values: Any, agent: str | None = "support", age: int = 60) -> None:
    """A span of a request to a model for each value of the attribute."""
    started = int((time.time() - age) * 1e9)
    spans = []
    for number, value in enumerate(values):
        attributes = {"gen_ai.operation.name": "chat", definitions.ATTRIBUTE: any_value(value)}
        if agent is not None:
            attributes |= {"gen_ai.agent.name": agent, "gen_ai.agent.version": "3"}
        at = str(started + number * 1_000_000)
        spans.append(span("chat", attributes=attributes, startTimeUnixNano=at))
    body = request(*spans, **{"service.name": "desk"})
    answer = post(make_ingest_key(cast.tenant), body, JSON)
    assert (answer.status_code, answer.rejected) == (200, 0)


@pytest.mark.parametrize("form", ["text", "structured", "texts"])
def test_definitions_are_read_in_each_form(acme: Cast, form: str) -> None:
    tools = [GOOD, OPENAI]
    value: Any = {"text": json.dumps(tools), "structured": tools}.get(form)
    send(acme, value if value is not None else [json.dumps(each) for each in tools])
    assert served(acme) == [
        ("support", "f", definition_digest(OPENAI), 1),
        ("support", "get_weather", definition_digest(GOOD), 1),
    ]


def test_equal_lists_are_stored_once_a_minute_for_each_process(acme: Cast, globex: Cast) -> None:
    send(acme, json.dumps([GOOD]), json.dumps([GOOD]))
    send(acme, json.dumps([GOOD]))
    assert [count for *_, count in served(acme)] == [1]
    definitions._KNOWN.clear()
    send(acme, json.dumps([GOOD]), age=30)
    assert [count for *_, count in served(acme)] == [2]
    assert served(globex) == []
    send(globex, json.dumps([GOOD]))
    assert len(served(globex)) == 1


def test_choices_of_tools_are_no_changes(acme: Cast) -> None:
    other = make_definition("other")
    send(acme, json.dumps([GOOD, other]), json.dumps([GOOD]), json.dumps([other, GOOD]))
    with tenant_scope(acme.tenant.id), connection.cursor() as cursor:
        cursor.execute("SELECT entry_count, list_count FROM definition_server")
        assert cursor.fetchall() == [(1, 3)]


def test_span_without_agent_is_of_its_service(acme: Cast) -> None:
    send(acme, json.dumps([GOOD]), agent=None)
    assert [server for server, *_ in served(acme)] == ["desk"]


def test_secrets_are_removed_and_schemas_stay(acme: Cast) -> None:
    schema = {"type": "object", "properties": {"password": {"type": "string"}}}
    secret = "AKIA" + "A" * 16
    tool = make_definition(description=f"Use {secret}.", inputSchema=schema)
    send(acme, json.dumps([tool]))
    with tenant_scope(acme.tenant.id), connection.cursor() as cursor:
        cursor.execute("SELECT content FROM definition")
        ((content,),) = cursor.fetchall()
    assert secret not in content
    assert json.loads(content)["inputSchema"] == schema


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "{}",
        "null",
        "[1, null, {}, []]",
        '["not json"]',
        '[{"name": 1}]',
        json.dumps([make_definition("n" * 300)]),
        json.dumps([make_definition(description="x" * 300_000)]),
        "[" * 10_000,
        '[{"name": "a", "x": ' + "[" * 70 + "]" * 70 + "}]",
        "[" + "9" * 5000 + "]",
        7,
        True,
        [1, 2],
    ],
    ids=repr,
)
def test_unusable_values_are_left_out(acme: Cast, value: Any) -> None:
    send(acme, value)
    assert served(acme) == []


@pytest.mark.parametrize("text", ["\x00", "\ud800", "\u202e", "\U000e0041", "{{x}}"])
def test_hostile_texts_are_stored(acme: Cast, text: str) -> None:
    tool = make_definition(f"a{text}", description=text, _meta={text: [1e400, 10**400]})
    send(acme, json.dumps([tool]), agent=f"agent{text}".replace("\ud800", ""))
    assert len(served(acme)) == 1


def test_usable_tools_of_a_list_are_stored(acme: Cast) -> None:
    send(acme, json.dumps([{}, GOOD, GOOD | {"description": "second"}, {"name": ""}]))
    assert [digest for _, _, digest, _ in served(acme)] == [definition_digest(GOOD)]


@pytest.mark.parametrize("name", ["pydantic-ai-v2.pb", "pydantic-ai-v5.pb"])
def test_definitions_of_a_real_framework_are_stored(acme: Cast, name: str) -> None:
    answer = post(make_ingest_key(acme.tenant), fixture(name, timezone.now()))
    assert answer.status_code == 200
    assert "get_weather" in {tool for _, tool, *_ in served(acme)}


def test_different_lists_of_a_request_are_bounded(acme: Cast) -> None:
    lists = [json.dumps([make_definition(f"t{number:02}")]) for number in range(30)]
    send(acme, *lists)
    with tenant_scope(acme.tenant.id), connection.cursor() as cursor:
        cursor.execute("SELECT list_count FROM definition_server")
        assert cursor.fetchall() == [(definitions.LISTS_MAX,)]
