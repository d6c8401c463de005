"""Definitions as served: stored once, entered in the ledger once per change, bounded."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from tooltrail.ledger import Kind
from tooltrail.tools.digest import definition_digest

from audit.events.redaction import forget_rules
from audit.intake import definitions
from audit.log.payload import unpack
from audit.models import RejectedEvent
from audit.work.inbox import send_again
from tenants.models import TenantSetting
from tenants.scope import tenant_scope
from tests.support.event_requests import post
from tests.support.factories import (
    Cast,
    make_call,
    make_definition,
    make_definitions,
    make_ingest_key,
    send_events,
)
from tests.support.legal_holds import missing_in_ledger
from tests.support.retention import index_agrees_with_log

NOW = datetime.now(UTC)
GOOD = make_definition()
WORSE = make_definition(annotations={"destructiveHint": True})


def ago(seconds: int) -> datetime:
    return NOW - timedelta(seconds=seconds)


def select(cast: Cast, text: str) -> list[tuple[Any, ...]]:
    with tenant_scope(cast.tenant.id), connection.cursor() as cursor:
        cursor.execute(text)
        stored: list[tuple[Any, ...]] = cursor.fetchall()
        return stored


def served(cast: Cast) -> list[tuple[Any, ...]]:
    return select(
        cast,
        "SELECT tool_name, digest, sighting_count, state FROM served_definition"
        " ORDER BY first_seen_at, tool_name",
    )


def changes(cast: Cast) -> list[tuple[Any, ...]]:
    return select(
        cast, "SELECT tool_name, digest FROM definition_change ORDER BY seen_at, tool_name"
    )


def entries(cast: Cast) -> list[dict[str, Any]]:
    """The ledger's entries of changes, the oldest first."""
    entries = []
    for (payload,) in select(cast, "SELECT payload FROM batch WHERE is_own ORDER BY first_index"):
        entries += [json.loads(raw) for _, raw in unpack(bytes(payload))]
    return [each for each in entries if each["type"] == Kind.DEFINITION.name.lower()]


@pytest.mark.slow
def test_list_is_entered_once_and_a_change_once(acme: Cast) -> None:
    for age, tool in ((50, GOOD), (40, GOOD), (30, WORSE), (20, WORSE)):
        answer = send_events(acme.tenant, [make_definitions(tool, seen_at=ago(age))])
        assert (answer["accepted"], answer["rejected"]) == (1, [])
    good, worse = definition_digest(GOOD), definition_digest(WORSE)
    assert served(acme) == [
        ("get_weather", good, 2, "first"),
        ("get_weather", worse, 2, "pending"),
    ]
    assert changes(acme) == [("get_weather", good), ("get_weather", worse)]
    first, second = entries(acme)
    assert first["tools"][0]["previous_digest"] is None
    assert second["server"] == "weather" and second["client_version"] == "2.0"
    (tool,) = second["tools"]
    assert (tool["digest"], tool["previous_digest"]) == (worse, good)
    assert definition_digest(tool["definition"]) == worse
    assert missing_in_ledger(acme) == []
    assert index_agrees_with_log(acme)


def test_definitions_beside_calls_are_no_events_of_the_log(acme: Cast) -> None:
    answer = send_events(acme.tenant, [*make_call(), make_definitions(GOOD)])
    assert (answer["accepted"], answer["ledger"]["size"]) == (3, 2)
    assert len(changes(acme)) == 1
    assert index_agrees_with_log(acme)


def test_entry_has_only_the_changed_tools_and_a_missing_tool_is_no_change(acme: Cast) -> None:
    other = make_definition("other")
    send_events(acme.tenant, [make_definitions(GOOD, other, seen_at=ago(50))])
    send_events(acme.tenant, [make_definitions(WORSE, seen_at=ago(40))])
    send_events(acme.tenant, [make_definitions(WORSE, other, seen_at=ago(30))])
    assert [[tool["name"] for tool in entry["tools"]] for entry in entries(acme)] == [
        ["get_weather", "other"],
        ["get_weather"],
    ]


def test_tool_that_appears_later_is_a_change(acme: Cast) -> None:
    send_events(acme.tenant, [make_definitions(GOOD, seen_at=ago(50))])
    send_events(acme.tenant, [make_definitions(GOOD, make_definition("new"), seen_at=ago(40))])
    assert [(name, state) for name, _, _, state in served(acme)] == [
        ("get_weather", "first"),
        ("new", "pending"),
    ]


def test_list_that_arrives_late_changes_nothing_after_it(acme: Cast) -> None:
    send_events(acme.tenant, [make_definitions(GOOD, seen_at=ago(50))])
    send_events(acme.tenant, [make_definitions(WORSE, seen_at=ago(20))])
    send_events(acme.tenant, [make_definitions(GOOD, seen_at=ago(30))])
    assert len(changes(acme)) == 2
    assert len(entries(acme)) == 2


def test_same_list_sent_twice_in_a_moment_is_one_change(acme: Cast) -> None:
    lists = [make_definitions(tool, seen_at=ago(30)) for tool in (GOOD, WORSE)]
    for _ in range(3):
        send_events(acme.tenant, lists)
    assert len(entries(acme)) == 2
    assert len(changes(acme)) == 2


@pytest.mark.one_node
def test_flapping_list_does_not_grow_the_ledger(acme: Cast) -> None:
    lists = [make_definitions((GOOD, WORSE)[at % 2], seen_at=ago(500 - at)) for at in range(100)]
    for at in range(0, 100, 20):
        send_events(acme.tenant, lists[at : at + 20])
    assert len(entries(acme)) == definitions.ENTRIES_PER_HOUR
    # From then on it is unknown what was in force, which is one row.
    assert len(changes(acme)) == definitions.ENTRIES_PER_HOUR + 1
    assert changes(acme)[-1] == ("get_weather", definitions.UNKNOWN)
    ((entered, unrecorded, count),) = select(
        acme, "SELECT entry_count, unrecorded_count, list_count FROM definition_server"
    )
    assert (entered, count) == (definitions.ENTRIES_PER_HOUR, 100)
    assert unrecorded == 100 - definitions.ENTRIES_PER_HOUR
    # In the next hour, it is known again.
    select_nothing = "UPDATE definition_server SET hour_at = hour_at - interval '1 h' RETURNING 1"
    select(acme, select_nothing)
    send_events(acme.tenant, [make_definitions(GOOD, seen_at=ago(5))])
    assert changes(acme)[-1] == ("get_weather", definition_digest(GOOD))
    assert len(entries(acme)) == definitions.ENTRIES_PER_HOUR + 1


def test_new_tool_behind_a_flapping_list_is_unknown_too(acme: Cast) -> None:
    lists = [make_definitions((GOOD, WORSE)[at % 2], seen_at=ago(500 - at)) for at in range(9)]
    hidden = make_definitions(make_definition("hidden"), seen_at=ago(5))
    send_events(acme.tenant, [*lists, hidden])
    assert ("hidden", definitions.UNKNOWN) in changes(acme)
    assert not any(name == "hidden" for name, *_ in served(acme))


def test_servers_and_tools_are_bounded(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "SERVERS_MAX", 2)
    monkeypatch.setattr(definitions, "TOOLS_MAX", 3)
    for number in range(5):
        tools = [make_definition(f"t{number}-{at}") for at in range(2)]
        send_events(acme.tenant, [make_definitions(*tools, server=f"s{number}")])
    names = [name for (name,) in select(acme, "SELECT name FROM definition_server ORDER BY name")]
    assert names == [definitions.OTHERS, "s0", "s1"]
    assert len(entries(acme)) == 2
    others = [each for each in changes(acme) if each[1] == definitions.UNKNOWN]
    assert len(others) == 3


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"tools": []}, "at least 1 item"),
        ({"tools": [{}]}, "tools[0] has no name"),
        ({"tools": ["text"]}, "tools[0] has no name"),
        ({"tools": [GOOD, GOOD]}, "tools[1] has the name of an earlier tool"),
        ({"tools": [make_definition("n" * 257)]}, "tools[0] has no name"),
        ({"tools": [make_definition(description="x" * 270_000)]}, "tools[0] is larger than"),
        ({"tools": [make_definition(str(at)) for at in range(1001)]}, "at most 1000 items"),
        ({"server": {}}, "server.name"),
        ({"server": None}, "server"),
        ({"seen_at": "yesterday"}, "RFC 3339"),
        ({"seen_at": (NOW + timedelta(days=2)).isoformat()}, "ahead of the server's clock"),
        ({"seen_at": (NOW - timedelta(days=40)).isoformat()}, "35 days ago"),
    ],
)
def test_unusable_list_waits_in_the_inbox(acme: Cast, broken: dict[str, Any], words: str) -> None:
    answer = send_events(acme.tenant, [make_definitions() | broken, *make_call()])
    assert answer["accepted"] == 2
    (rejected,) = answer["rejected"]
    assert words in rejected["message"]
    with tenant_scope(acme.tenant.id):
        assert RejectedEvent.objects.for_tenant(acme.tenant.id).count() == 1
    assert served(acme) == []


@pytest.mark.parametrize(
    "text", ["\x00", "\ud800", "‮txet", "\U000e0041\U000e0042", "<script>", "1" * 5000, "{{x}}"]
)
def test_hostile_texts_are_stored_as_they_are(acme: Cast, text: str) -> None:
    tool = make_definition(f"a{text[:20]}", description=text, _meta={text[:20]: 1e400})
    body = json.dumps(make_definitions(tool)).replace("Infinity", "1e400").encode()
    answer = post(make_ingest_key(acme.tenant), body)
    assert answer.json()["accepted"] == 1
    assert len(served(acme)) == 1


def test_camel_case_and_definitions_of_a_provider_are_accepted(acme: Cast) -> None:
    event = make_definitions({"type": "function", "function": {"name": "f", "parameters": {}}})
    event["seenAt"] = event.pop("seen_at")
    assert send_events(acme.tenant, [event])["accepted"] == 1
    assert [name for name, *_ in served(acme)] == ["f"]


def test_redaction_removes_patterns_and_keeps_schemas(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        TenantSetting.objects.update_or_create(
            tenant=acme.tenant,
            defaults={"redact_names": ["password"], "redact_patterns": ["hunter[0-9]"]},
        )
    forget_rules(acme.tenant.id)
    schema = {"type": "object", "properties": {"password": {"type": "string"}}}
    tool = make_definition(description="Use hunter2.", inputSchema=schema)
    send_events(acme.tenant, [make_definitions(tool)])
    ((content,),) = select(acme, "SELECT content FROM definition")
    assert "hunter2" not in content
    assert json.loads(content)["inputSchema"] == schema
    assert served(acme)[0][0] == "get_weather"
    assert "hunter2" not in json.dumps(entries(acme))


def test_tenants_do_not_share_definitions(acme: Cast, globex: Cast) -> None:
    send_events(acme.tenant, [make_definitions(GOOD)])
    assert served(globex) == []
    send_events(globex.tenant, [make_definitions(GOOD)])
    assert len(served(globex)) == len(entries(globex)) == 1


def test_list_from_the_inbox_is_stored_when_it_is_resent(acme: Cast) -> None:
    send_events(acme.tenant, [make_definitions(tools=[])])
    with tenant_scope(acme.tenant.id):
        (line,) = RejectedEvent.objects.for_tenant(acme.tenant.id)
        edited = json.dumps(make_definitions(GOOD))
        send_again(acme.tenant, acme.admin, line.id, edited, NOW)
    assert len(served(acme)) == 1
