"""Context that arrives in another request than its calls, in any order: as if all came at once."""

import itertools
from typing import Any

import pytest

from audit.events.spans import span_uuid
from audit.index.reindex import reindex
from audit.models import RejectedEvent, Trace
from audit.queries.calls import trace_detail
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
