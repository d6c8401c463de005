"""Context that arrives in another request than its calls, in any order: as if all came at once."""

import itertools
from datetime import UTC, datetime, timedelta
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
from tests.support.factories import Cast, make_call, make_ingest_key, send_events
from tests.support.otlp_requests import JSON, calls, post, request, span
from tests.support.recount import assert_consistent

pytestmark = pytest.mark.usefixtures("clear_principals")

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


MAIN = {"agent": "main", "conversation": "c-main", "principal": "u-1"}
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
    assert (helper.agent, helper.model, helper.principal) == ("main", None, "u-1")
    assert (look_up.agent, look_up.model, look_up.principal) == ("sub", "gpt-5", "u-1")
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


@pytest.mark.slow
def test_run_in_one_request(acme: Cast, key: str) -> None:
    send(key, *run().values())

    check(acme)


@pytest.mark.slow
def test_children_first_each_in_a_request_of_its_own(acme: Cast, key: str) -> None:
    spans = run()
    for number in sorted(spans, reverse=True):
        send(key, spans[number])

    check(acme)


@pytest.mark.slow
@pytest.mark.parametrize(
    "requests",
    [
        [(AGENT, TOOL, SUB_AGENT, LOOK_UP)],
        [(AGENT,), (LOOK_UP, SUB_AGENT, TOOL)],
        [(LOOK_UP, SUB_AGENT, TOOL), (AGENT,)],
    ],
)
def test_calls_below_a_missing_span_take_nothing_from_the_root(
    acme: Cast, key: str, requests: list[tuple[int, ...]]
) -> None:
    """The missing span may be another agent's. If it comes after all, calls have their context."""
    spans = run()
    for numbers in requests:
        send(key, *(spans[number] for number in numbers))

    stored = {call.row.tool_name: call for call in calls(acme.tenant)}
    assert stored["helper"].start["context"] == {}
    assert stored["look_up"].start["context"] == {"agent": "sub", "model": "gpt-5"}
    assert {call.row.run_id for call in stored.values()} == {None}
    send(key, spans[LOOP])
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


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("is_together", [True, False])
def test_run_of_a_trace_is_that_of_its_first_call(
    acme: Cast, order: tuple[int, int], *, is_together: bool
) -> None:
    """A sub-agent's calls have a conversation of their own; the smaller text was shown."""
    now = datetime.now(UTC) - timedelta(minutes=1)
    first, later = now - timedelta(seconds=1), now + timedelta(seconds=1)
    nested = [
        make_call(tool_name="helper", run_id="z-main", started_at=now),
        make_call(tool_name="look_up", run_id="a-sub", started_at=later),
    ]
    one, other = (nested[place] for place in order)
    without = make_call(tool_name="start", started_at=first)
    requests = [[*one, *without, *other]] if is_together else [one, without, other]
    for events in requests:
        send_events(acme.tenant, events)
    with tenant_scope(acme.tenant.id):
        (trace,) = Trace.objects.all()
    assert (trace.run_id, trace.first_tool_name) == ("z-main", "start")
    assert_consistent(acme.tenant)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("agent:sub", {"look_up"}),
        ("agent:*", {"helper", "look_up"}),
        ("model:gpt-5", {"look_up"}),
        ("principal:u-1 NOT agent:sub", {"helper"}),
        ("principal:u-2", set()),
        ("provider:*", set()),
    ],
)
def test_agent_model_provider_and_user_can_be_asked_for(
    acme: Cast, key: str, query: str, expected: set[str]
) -> None:
    send(key, *run().values())
    reader = create_key(acme.tenant, "reader", [Scope.READ])[1]
    headers = {"Authorization": f"Bearer {reader}"}
    answer = Client().get("/api/v1/calls", {"q": query}, headers=headers)

    assert answer.status_code == 200, answer.content
    items = answer.json()["calls"]
    assert {item["tool_name"] for item in items} == expected
    assert all(item["principal"] == "u-1" for item in items)


def test_context_that_an_executor_reports_can_be_asked_for_too(acme: Cast) -> None:
    """Adapters of the SDK report it; only that of spans was found."""
    context = {"agent": "concierge", "model": ["no text"], "user": "ann"}
    send_events(acme.tenant, make_call(tool_name="look_up", context=context))
    send_events(acme.tenant, make_call(tool_name="other", context="no object"))
    reader = create_key(acme.tenant, "reader", [Scope.READ])[1]
    headers = {"Authorization": f"Bearer {reader}"}
    for query in ("agent:concierge", "principal:ann", "agent:* NOT model:*"):
        answer = Client().get("/api/v1/calls", {"q": query}, headers=headers)
        assert [item["tool_name"] for item in answer.json()["calls"]] == ["look_up"], query
    assert_consistent(acme.tenant)
