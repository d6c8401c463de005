"""Context that arrives in another request than its calls, in any order: as if all came at once."""

import itertools
from typing import Any

import pytest
from django.test import Client

from audit.events.spans import span_uuid
from audit.index.reindex import reindex
from audit.models import RejectedEvent, Trace
from audit.queries.calls import trace_detail
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp_requests import JSON, calls, post, request, span
from tests.support.recount import assert_consistent

TRACE = "0af7651916cd43dd8448eb211c80319c"
AGENT, LOOP, TOOL, SUB_AGENT, LOOK_UP = range(1, 6)


def numbered(number: int, parent: int, name: str, **attributes: Any) -> dict[str, Any]:
    above = {"parentSpanId": f"{parent:016x}"} if parent else {}
    ids = {"traceId": TRACE, "spanId": f"{number:016x}", **above}
    return span(name, **ids, attributes=attributes)


def tool(number: int, parent: int, name: str, **attributes: Any) -> dict[str, Any]:
    marks = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return numbered(number, parent, f"execute_tool {name}", **marks, **attributes)


def run() -> dict[int, dict[str, Any]]:
    """An agent's run: its loop, which says nothing, calls a tool, and that runs another agent."""
    return {
        AGENT: numbered(
            AGENT,
            0,
            "invoke_agent main",
            **{"gen_ai.agent.name": "main", "gen_ai.conversation.id": "c-main", "user.id": "u-1"},
        ),
        LOOP: numbered(LOOP, AGENT, "loop"),
        TOOL: tool(TOOL, LOOP, "helper"),
        SUB_AGENT: numbered(
            SUB_AGENT,
            TOOL,
            "invoke_agent sub",
            **{"gen_ai.agent.name": "sub", "gen_ai.request.model": "gpt-5"},
        ),
        LOOK_UP: tool(LOOK_UP, SUB_AGENT, "look_up"),
    }


MAIN = {"agent": "main", "conversation": "c-main", "user": "u-1"}
SUB = MAIN | {"agent": "sub", "model": "gpt-5"}


@pytest.fixture
def key(acme: Cast) -> str:
    return make_ingest_key(acme.tenant)


def send(key: str, *spans: dict[str, Any]) -> None:
    answer = post(key, request(*spans, scope="agent"), JSON)
    assert (answer.status_code, answer.rejected) == (200, 0)


def check(acme: Cast) -> None:
    """Both calls have their context and places, and log, index and totals agree."""
    stored = {call.row.tool_name: call for call in calls(acme.tenant)}
    assert stored["helper"].start["context"] == MAIN
    assert stored["look_up"].start["context"] == SUB
    assert {call.row.run_id for call in stored.values()} == {"c-main"}
    helper, look_up = stored["helper"].row, stored["look_up"].row
    assert (helper.agent, helper.model, helper.end_user) == ("main", None, "u-1")
    assert (look_up.agent, look_up.model, look_up.end_user) == ("sub", "gpt-5", "u-1")
    with tenant_scope(acme.tenant.id):
        detail = trace_detail(TRACE)
        assert not RejectedEvent.objects.for_tenant(acme.tenant.id).exists()
        (trace,) = Trace.objects.for_tenant(acme.tenant.id)
    assert detail is not None
    assert {call.tool_name: call.parent_invocation_id for call in detail.calls} == {
        "helper": None,
        "look_up": span_uuid(TRACE, f"{TOOL:016x}"),
    }
    assert (trace.run_id, trace.started_count, trace.completed_count) == ("c-main", 2, 2)
    assert_consistent(acme.tenant)
    report = reindex(acme.tenant.id, repair=False, progress=lambda done, size: None)
    assert report.is_clean, report.comparison.examples


def test_run_in_one_request(acme: Cast, key: str) -> None:
    send(key, *run().values())

    check(acme)


def test_children_first_each_in_a_request_of_its_own(acme: Cast, key: str) -> None:
    spans = run()
    for number in sorted(spans, reverse=True):
        send(key, spans[number])

    check(acme)


@pytest.mark.slow
@pytest.mark.generated(4)
@pytest.mark.parametrize("order", list(itertools.permutations(range(1, 6))))
def test_each_span_in_a_request_of_its_own_in_any_order(
    acme: Cast, key: str, order: tuple[int, ...]
) -> None:
    spans = run()
    for number in order:
        send(key, spans[number])

    check(acme)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("agent:sub", {"look_up"}),
        ("agent:*", {"helper", "look_up"}),
        ("model:gpt-5", {"look_up"}),
        ("user:u-1 NOT agent:sub", {"helper"}),
        ("user:u-2", set()),
        ("provider:*", set()),
    ],
)
def test_agent_model_provider_and_user_can_be_asked_for(
    acme: Cast, key: str, query: str, found: set[str]
) -> None:
    send(key, *run().values())
    reader = create_key(acme.tenant, "reader", [Scope.READ])[1]
    headers = {"Authorization": f"Bearer {reader}"}
    answer = Client().get("/api/v1/calls", {"q": query}, headers=headers)

    assert answer.status_code == 200, answer.content
    items = answer.json()["calls"]
    assert {item["tool_name"] for item in items} == found
    assert all(item["end_user"] == "u-1" for item in items)
