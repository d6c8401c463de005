"""An executor's call that begins before the span of its own tool: both have the same parent."""

import json
from typing import Any

import pytest

from audit.events.spans import span_uuid
from audit.intake.otlp import inheriting
from audit.queries.calls import call_of_span
from tenants.scope import tenant_scope
from tests.support.arrivals import (
    EVERY_ORDER,
    GENAI,
    Sender,
    Sent,
    agent_run,
    called_in,
    plan,
    rows,
    rows_by_trace,
    send_in_every_order,
    shown,
    spans,
)
from tests.support.erasures import all_stored_text, erase
from tests.support.factories import Cast, make_ingest_key
from tests.support.recount import assert_all_taken_in
from tests.support.retention import index_agrees_with_log


@pytest.fixture
def send(acme: Cast) -> Sender:
    return Sender(acme, make_ingest_key(acme.tenant))


def with_id(tool_call_id: str, **more: str) -> dict[str, Any]:
    return {"attributes": GENAI | {"gen_ai.tool.call.id": tool_call_id} | more}


@pytest.mark.slow
@pytest.mark.sampled("spans and calls in any order", 2)
@EVERY_ORDER
def test_span_beside_a_call_with_its_id_is_the_same_call(
    acme: Cast, send: Sender, is_apart: bool
) -> None:
    """Two calls of one tool at once, each with its span. What runs in the span is nested."""

    def bodies() -> list[Sent]:
        inner = spans(5, 2, attributes=GENAI | {"gen_ai.tool.name": "look_up"})
        both = [*called_in(1, tool_call_id="a"), *called_in(1, tool_call_id="b")]
        return [both, spans(2, 1, **with_id("a")), spans(3, 1, **with_id("b")), inner, agent_run()]

    arrivals = send_in_every_order(send, bodies, is_apart=is_apart)

    calls = rows_by_trace(acme)
    assert calls.keys() == {each.trace_id for each in arrivals}
    for arrival in arrivals:
        both = arrival.bodies[0]
        assert isinstance(both, list)
        first, second = both[0]["invocation_id"], both[2]["invocation_id"]
        by_id = {str(row.invocation_id): row for row in calls[arrival.trace_id]}
        (inner,) = by_id.keys() - {first, second}
        assert len(by_id) == 3, arrival.order
        assert [by_id[each].violation_count for each in (first, second)] == [1, 1]
        nested = shown(acme, arrival.trace_id)[by_id[inner].invocation_id]
        assert str(nested.parent_invocation_id) == first, arrival.order
        with tenant_scope(acme.tenant.id):
            for number, invocation_id in ((2, first), (3, second)):
                span = span_uuid(arrival.trace_id, f"{number:016x}")
                found = call_of_span(by_id[invocation_id].started_on, span)
                assert found is not None, arrival.order
                assert str(found[1]) == invocation_id, arrival.order
    assert_all_taken_in(acme.tenant)
    assert index_agrees_with_log(acme)


@pytest.mark.slow
@pytest.mark.sampled("spans and calls in any order", 2)
@EVERY_ORDER
def test_further_layers_below_a_span_beside_are_the_same_call(
    acme: Cast, send: Sender, is_apart: bool
) -> None:
    """An MCP client's span, which has no id of the call, is below the agent's."""
    arrivals = send_in_every_order(
        send,
        lambda: [
            called_in(1, tool_call_id="a"),
            spans(2, 1, **with_id("a")),
            spans(3, 2, "mcp", kind=3),
            agent_run(),
            plan(),
        ],
        is_apart=is_apart,
        is_repeated=True,
    )

    for arrival in arrivals:
        calls = shown(acme, arrival.trace_id)
        names = sorted(call.tool_name for call in calls.values())
        assert names == ["get_weather", "plan"], arrival.order
        (row,) = (row for row in calls.values() if row.tool_name == "get_weather")
        around = span_uuid(arrival.trace_id, f"{9:016x}")
        assert row.parent_invocation_id == around, arrival.order
    assert_all_taken_in(acme.tenant)
    assert index_agrees_with_log(acme)


@pytest.mark.slow
@pytest.mark.sampled("spans and calls in any order", 2)
@EVERY_ORDER
@pytest.mark.parametrize("attempts", [1, 2])
def test_attempts_under_one_id_are_as_many_calls_as_the_executor_reports(
    acme: Cast, send: Sender, attempts: int, is_apart: bool
) -> None:
    """A hook around the attempts reports one, a hook in each of them two."""

    def bodies() -> list[Sent]:
        tries: list[Sent] = [called_in(1, tool_call_id="a") for _ in range(attempts)]
        return [*tries, spans(2, 1, **with_id("a")), spans(3, 1, **with_id("a"))]

    arrivals = send_in_every_order(send, bodies, is_apart=is_apart)

    for calls in rows_by_trace(acme).values():
        assert [row.violation_count for row in calls] == [1] * attempts
    assert len(rows_by_trace(acme)) == len(arrivals)
    assert_all_taken_in(acme.tenant)
    assert index_agrees_with_log(acme)


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("of_call", "of_span"),
    [
        ({"tool_call_id": "a"}, with_id("b")),
        ({"tool_call_id": "a"}, {"attributes": GENAI}),
        ({}, with_id("a")),
        ({}, {"attributes": GENAI}),
        ({"tool_call_id": "a"}, with_id("a", **{"gen_ai.tool.name": "look_up"})),
        ({}, with_id("")),
    ],
    ids=["other id", "span without id", "call without id", "no ids", "other tool", "empty id"],
)
def test_span_beside_a_call_is_another_call_unless_its_id_says_so(
    acme: Cast, send: Sender, of_call: dict[str, Any], of_span: dict[str, Any], is_first: bool
) -> None:
    bodies: list[Sent] = [called_in(1, **of_call), spans(2, 1, **of_span), agent_run()]
    for body in bodies[:: 1 if is_first else -1]:
        send(body)

    assert len(rows(acme)) == 2
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False])
def test_span_below_another_parent_is_another_call(
    acme: Cast, send: Sender, is_first: bool
) -> None:
    """A model may use an id again in its next turn, or an agent that of another agent."""
    bodies: list[Sent] = [called_in(1, tool_call_id="a"), spans(2, 7, **with_id("a"))]
    for body in bodies[:: 1 if is_first else -1]:
        send(body)

    assert len(rows(acme)) == 2
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False])
def test_span_beside_a_call_of_another_tenant_is_another_call(
    acme: Cast, globex: Cast, send: Sender, is_first: bool
) -> None:
    as_globex = Sender(globex, make_ingest_key(globex.tenant))
    steps: list[tuple[Sender, Sent]] = [
        (as_globex, spans(2, 1, **with_id("a"))),
        (send, called_in(1, tool_call_id="a")),
    ]
    for sender, body in steps[:: 1 if is_first else -1]:
        sender(body)

    assert (len(rows(globex)), len(rows(acme))) == (1, 1)
    assert_all_taken_in(acme.tenant)
    assert_all_taken_in(globex.tenant)


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False])
def test_many_calls_at_once_each_find_their_span(acme: Cast, send: Sender, is_first: bool) -> None:
    """More than the children of a span that are looked up without an id."""
    count = 150
    events = [each for n in range(count) for each in called_in(1, tool_call_id=f"call_{n}")]
    requests = [json.loads(spans(100 + n, 1, **with_id(f"call_{n}"))) for n in range(count)]
    sent = json.dumps(
        {"resourceSpans": [each for one in requests for each in one["resourceSpans"]]}
    ).encode()
    bodies: list[Sent] = [events, sent]
    for body in bodies[:: 1 if is_first else -1]:
        send(body)

    assert [row.violation_count for row in rows(acme)] == [1] * count
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
def test_call_in_a_span_of_its_tool_is_found_among_many_others(
    acme: Cast, send: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The span comes last, as it ends last. More spans with ids are below it than are looked up."""
    monkeypatch.setattr(inheriting, "_MAX_BELOW", 10)  # the other look-up of what is below
    inner = GENAI | {"gen_ai.tool.name": "look_up"}
    below = [
        json.loads(spans(100 + n, 2, attributes=inner | {"gen_ai.tool.call.id": f"call_{n:03}"}))
        for n in range(120)
    ]
    send(called_in(2))
    send(
        json.dumps(
            {"resourceSpans": [each for one in below for each in one["resourceSpans"]]}
        ).encode()
    )
    send(spans(2, 1))

    assert len(rows(acme)) == 121
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False])
def test_erasure_of_a_call_erases_the_texts_of_a_span_beside_it(
    acme: Cast, send: Sender, is_first: bool
) -> None:
    given = {"gen_ai.tool.call.arguments": '{"who": "Somebody"}'}
    bodies: list[Sent] = [
        called_in(1, tool_call_id="a", case_id="mine"),
        spans(2, 1, **with_id("a", **given)),
    ]
    for body in bodies[:: 1 if is_first else -1]:
        send(body)
    assert "Somebody" in all_stored_text(acme)
    erase(acme)

    assert "Somebody" not in all_stored_text(acme)
    assert len(rows(acme)) == 1
    assert index_agrees_with_log(acme)
