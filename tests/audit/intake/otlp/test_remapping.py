"""`reindex --remap`: kept spans are read again, as new events beside the old ones."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from django.core.management import CommandError, call_command

from audit.index.reindex import reindex
from audit.intake.otlp import accounts, mapping, remapping
from audit.intake.otlp.conventions import MAPPING_VERSION
from audit.intake.otlp.facts import Facts, read_facts
from audit.intake.otlp.outcomes import ABSENT
from audit.models import RejectedEvent
from tenants.models import Action
from tenants.scope import tenant_scope
from tests.support.erasures import erase
from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp_requests import JSON, calls, post, request, span
from tests.support.recount import assert_consistent
from tests.support.stored_events import stored_lines

TRACE = "0af7651916cd43dd8448eb211c80319c"


@contextmanager
def older_mapping() -> Iterator[None]:
    """The mapping before the present one: it misread names, and read no arguments."""

    def read(*given: Any) -> Facts:
        facts = read_facts(*given)
        facts.tool_name += ".__call__"
        facts.arguments = ABSENT
        return facts

    with (
        patch.object(mapping, "read_facts", read),
        patch.object(accounts, "MAPPING_VERSION", MAPPING_VERSION - 1),
    ):
        yield


def tool(number: int, parent: int = 0, name: str = "get_weather") -> dict[str, Any]:
    above = {"parentSpanId": f"{parent:016x}"} if parent else {}
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": '{"city": "London"}',
    }
    ids = {"traceId": TRACE, "spanId": f"{number:016x}", **above}
    return span(f"execute_tool {name}", **ids, attributes=attributes)


def agent(number: int) -> dict[str, Any]:
    context = {"gen_ai.agent.name": "main", "gen_ai.conversation.id": "c-1"}
    return span("invoke", traceId=TRACE, spanId=f"{number:016x}", attributes=context)


@pytest.fixture
def key(acme: Cast) -> str:
    return make_ingest_key(acme.tenant)


def send(key: str, *spans: dict[str, Any]) -> None:
    answer = post(key, request(*spans, scope="agent"), JSON)
    assert (answer.status_code, answer.rejected) == (200, 0)


def run(acme: Cast, *options: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command(
        *("reindex", "--remap", "--json", "--tenant", acme.tenant.slug, *options),
        stdout=out,
        stderr=io.StringIO(),
    )
    result: dict[str, Any] = json.loads(out.getvalue())[acme.tenant.slug]
    return result


def check(acme: Cast) -> None:
    assert_consistent(acme.tenant)
    assert reindex(acme.tenant.id, repair=False, progress=lambda *_: None).is_clean
    with tenant_scope(acme.tenant.id):
        assert not RejectedEvent.objects.for_tenant(acme.tenant.id).exists()


@pytest.mark.slow
def test_calls_of_an_older_mapping_are_read_again(acme: Cast, key: str) -> None:
    with older_mapping():
        send(key, tool(2, parent=1), tool(3, parent=2, name="look_up"))
        send(key, agent(1))  # context that comes later
    send(key, tool(4, parent=1, name="of_today"))
    before = {call.row.invocation_id: call for call in calls(acme.tenant)}
    assert {call.row.tool_name for call in before.values()} == {
        "get_weather.__call__",
        "look_up.__call__",
        "of_today",
    }
    stored = stored_lines(acme)

    counted = run(acme)
    assert (counted["calls"], counted["older"], counted["changed"]) == (3, 2, 2)
    assert counted["members"] == {"tool_name": 2, "args": 2, "call_id": 2}
    assert stored_lines(acme) == stored

    assert run(acme, "--yes") == counted
    assert stored_lines(acme)[:-4] == stored
    after = {call.row.invocation_id: call for call in calls(acme.tenant)}
    assert after.keys() == before.keys()
    for invocation_id, call in after.items():
        old = before[invocation_id]
        assert call.row.tool_name in {"get_weather", "look_up", "of_today"}
        assert call.start["args"] == {"city": "London"}
        assert call.start["context"] == old.start["context"]
        assert (call.row.agent, call.row.run_id) == ("main", "c-1")
        assert call.row.started_at == old.row.started_at
        assert call.row.parent_invocation_id == old.row.parent_invocation_id
        assert call.end["otlp"]["mapping_version"] == MAPPING_VERSION
        assert call.end["otlp"].get("remapped", False) == (old.row.tool_name != "of_today")
    check(acme)
    again = run(acme, "--yes")
    assert (again["older"], again["changed"]) == (0, 0)
    assert len(stored_lines(acme)) == len(stored) + 4


@pytest.mark.slow
def test_run_is_an_action_and_writes_only_what_changes(acme: Cast, key: str) -> None:
    with patch.object(accounts, "MAPPING_VERSION", MAPPING_VERSION - 1):
        send(key, tool(2))
    assert run(acme, "--yes")["changed"] == 0  # read alike
    with older_mapping():
        send(key, tool(3))
    run(acme)
    with tenant_scope(acme.tenant.id):
        actions = Action.objects.filter(tenant=acme.tenant, verb="index.remap")
        assert not actions.exists()
    assert run(acme, "--yes")["changed"] == 1
    with tenant_scope(acme.tenant.id):
        (action,) = actions
    assert action.details["mapping_version"] == MAPPING_VERSION
    check(acme)


@pytest.mark.slow
def test_interrupted_run_goes_on_where_it_stopped(
    acme: Cast, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remapping, "_CALLS_AT_ONCE", 2)
    with older_mapping():
        send(key, *map(tool, range(1, 6)))

    def interrupt(done: int, size: int) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        remapping.remap(acme.tenant.id, is_dry=False, progress=interrupt)
    assert [call.row.tool_name for call in calls(acme.tenant)].count("get_weather") == 4

    assert run(acme, "--yes")["changed"] == 1
    assert {call.row.tool_name for call in calls(acme.tenant)} == {"get_weather"}
    check(acme)


@pytest.mark.slow
def test_later_spans_and_repeated_ones_join_a_call_read_again(acme: Cast, key: str) -> None:
    inner = tool(2, parent=1)
    with older_mapping():
        send(key, inner)
    run(acme, "--yes")
    send(key, inner)  # once more: a duplicate
    assert [call.start["otlp"]["remapped"] for call in calls(acme.tenant)] == [True]
    send(key, agent(1) | {"parentSpanId": ""})
    (call,) = calls(acme.tenant)
    assert (call.row.tool_name, call.row.agent) == ("get_weather", "main")
    assert call.start["args"] == {"city": "London"}
    check(acme)


@pytest.mark.slow
def test_spans_that_are_not_one_call_any_more_stay(acme: Cast, key: str) -> None:
    merged = tool(2, name="(merged tools)")
    with patch("audit.intake.otlp.conventions._NO_TOOLS", set()), older_mapping():
        send(key, merged, tool(3))
    result = run(acme, "--yes")
    assert (result["older"], result["changed"], result["left"]) == (2, 1, 1)
    check(acme)


def test_redacted_values_stay_redacted(acme: Cast, key: str) -> None:
    secret = tool(2)
    secret["attributes"][2]["value"]["stringValue"] = '{"password": "hunter2"}'
    with patch.object(accounts, "MAPPING_VERSION", MAPPING_VERSION - 1):
        send(key, secret)
    assert run(acme)["changed"] == 0
    with older_mapping():
        send(key, secret | {"spanId": f"{3:016x}"})
    assert run(acme, "--yes")["changed"] == 1
    assert all(b"hunter2" not in raw for raw in stored_lines(acme))
    assert {call.start["args"]["password"] for call in calls(acme.tenant)} == {"[redacted]"}


@pytest.mark.slow
def test_erased_calls_stay_erased(acme: Cast, key: str) -> None:
    with older_mapping():
        send(key, tool(2), tool(3, name="look_up"))
    erase(acme, 'tool:"look_up.__call__"')
    result = run(acme, "--yes")
    assert (result["calls"], result["erased"], result["changed"]) == (2, 1, 1)


def test_other_tenants_are_left_alone(acme: Cast, globex: Cast, key: str) -> None:
    with older_mapping():
        send(make_ingest_key(globex.tenant), tool(2))
        send(key, tool(2))
    run(acme, "--yes")
    assert [call.row.tool_name for call in calls(globex.tenant)] == ["get_weather.__call__"]
    assert [call.row.tool_name for call in calls(acme.tenant)] == ["get_weather"]


def test_options_that_contradict_each_other_are_refused(acme: Cast) -> None:
    for options in (["--check", "--remap"], ["--yes"]):
        with pytest.raises(CommandError):
            call_command("reindex", *options, "--tenant", acme.tenant.slug)
