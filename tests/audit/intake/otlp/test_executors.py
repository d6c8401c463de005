"""An executor with the SDK and an instrumentation beside it: one call, not two.

The SDK's events name the span they were made in (`traceparent`); spans come by OTLP, in requests
of their own, in any order.
"""

import threading
from typing import Any

import pytest
from django.db import connection

from audit.events.spans import span_uuid
from audit.queries.calls import call_detail, call_of_span
from tenants.scope import tenant_scope
from tests.support.arrivals import (
    EVERY_ORDER,
    GENAI,
    TRACE,
    Sender,
    Sending,
    Sent,
    agent_run,
    called_in,
    inner_span,
    outer_span,
    plan,
    rows,
    rows_by_trace,
    send_in_every_order,
    shown,
    spans,
    tool_span,
)
from tests.support.erasures import all_stored_text, erase
from tests.support.factories import Cast, make_ingest_key
from tests.support.recount import assert_all_taken_in
from tests.support.retention import index_agrees_with_log


@pytest.fixture
def send(acme: Cast) -> Sender:
    return Sender(acme, make_ingest_key(acme.tenant))


@pytest.mark.slow
@pytest.mark.sampled("spans and calls in any order", 2)
@EVERY_ORDER
def test_span_around_an_sdk_call_is_the_same_call(acme: Cast, send: Sender, is_apart: bool) -> None:
    """The SDK's start and end are in separate requests, too; everything is sent twice."""

    def bodies() -> list[Sent]:
        start, end = called_in(2)
        return [[start], [end], tool_span(), agent_run()]

    arrivals = send_in_every_order(send, bodies, is_apart=is_apart, is_repeated=True)

    calls = rows_by_trace(acme)
    assert calls.keys() == {each.trace_id for each in arrivals}
    for arrival in arrivals:
        (start,), *_ = arrival.bodies
        assert isinstance(start, dict)
        assert [
            (str(row.invocation_id), row.state, row.violation_count, row.guard_outcome)
            for row in calls[arrival.trace_id]
        ] == [(start["invocation_id"], "failed", 1, "failed")], arrival.order
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.sampled("spans and calls in any order", 2)
@EVERY_ORDER
def test_further_span_layers_are_the_same_call(acme: Cast, send: Sender, is_apart: bool) -> None:
    arrivals = send_in_every_order(
        send,
        lambda: [called_in(2), inner_span(), outer_span()],
        is_apart=is_apart,
        is_repeated=True,
    )

    calls = rows_by_trace(acme)
    assert calls.keys() == {each.trace_id for each in arrivals}
    for arrival in arrivals:
        assert [row.violation_count for row in calls[arrival.trace_id]] == [1], arrival.order
        (row,) = calls[arrival.trace_id]
        with tenant_scope(acme.tenant.id):
            for number in (2, 3):
                span_id = span_uuid(arrival.trace_id, f"{number:016x}")
                resolved = call_of_span(row.started_on, span_id)
                assert resolved == (row.started_on, row.invocation_id), arrival.order
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.sampled("spans and calls in any order", 2)
@EVERY_ORDER
def test_middle_span_layer_merges_in_any_order(acme: Cast, send: Sender, is_apart: bool) -> None:
    arrivals = send_in_every_order(
        send,
        lambda: [called_in(2), spans(2, 3), spans(3, 4, "mcp", kind=3), spans(4, 5, "outer")],
        is_apart=is_apart,
    )

    calls = rows_by_trace(acme)
    assert calls.keys() == {each.trace_id for each in arrivals}
    for arrival in arrivals:
        assert [row.violation_count for row in calls[arrival.trace_id]] == [1], arrival.order
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.sampled("spans and calls in any order", 2)
@EVERY_ORDER
def test_span_without_a_tool_call_is_only_the_parent(
    acme: Cast, send: Sender, is_apart: bool
) -> None:
    """Two calls in one run of an agent stay two; their parent is the call around the run."""
    arrivals = send_in_every_order(
        send,
        lambda: [called_in(1), called_in(1), agent_run(), plan()],
        is_apart=is_apart,
        is_repeated=True,
    )

    rows_of = rows_by_trace(acme)
    assert rows_of.keys() == {each.trace_id for each in arrivals}
    for arrival in arrivals:
        calls = shown(acme, arrival.trace_id)
        names = sorted(call.tool_name for call in calls.values())
        assert names == ["get_weather"] * 2 + ["plan"], arrival.order
        around = span_uuid(arrival.trace_id, f"{9:016x}")
        for call in calls.values():
            expected = None if call.tool_name == "plan" else around
            assert call.parent_invocation_id == expected, arrival.order
        row = next(row for row in rows_of[arrival.trace_id] if row.tool_name == "get_weather")
        with tenant_scope(acme.tenant.id):
            opened = call_detail(row.started_on, row.invocation_id)
        assert opened is not None
        assert opened.parent_invocation_id == around, arrival.order
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.sampled("spans and calls in any order", 2)
@EVERY_ORDER
def test_retries_and_other_tools_in_one_tool_span_stay_separate_calls(
    acme: Cast, send: Sender, is_apart: bool
) -> None:
    """The span covers both attempts. A call of another tool in the span is their child."""

    def bodies() -> list[Sent]:
        helper = [each | {"tool_name": "look_up"} for each in called_in(2)]
        other = spans(5, 2, attributes=GENAI | {"gen_ai.tool.name": "x"})
        return [called_in(2), [*called_in(2), *helper], tool_span(), other]

    arrivals = send_in_every_order(send, bodies, is_apart=is_apart)

    assert rows_by_trace(acme).keys() == {each.trace_id for each in arrivals}
    for arrival in arrivals:
        calls = shown(acme, arrival.trace_id)
        names = sorted(call.tool_name for call in calls.values())
        assert names == ["get_weather", "get_weather", "look_up", "x"], arrival.order
        tries = [body[0] for body in arrival.bodies[:2] if not isinstance(body, bytes)]
        ids = {start["invocation_id"] for start in tries}
        for call in calls.values():
            parent = call.parent_invocation_id
            if call.tool_name == "get_weather":
                assert parent is None, arrival.order
            else:
                assert str(parent) in ids, arrival.order
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False])
def test_span_of_another_tool_is_only_the_parent(acme: Cast, send: Sender, is_first: bool) -> None:
    helper = [each | {"tool_name": "look_up"} for each in called_in(2)]
    bodies: list[Sent] = [tool_span(), helper]
    for body in bodies[:: 1 if is_first else -1]:
        send(body)

    calls = shown(acme)
    assert len(calls) == 2
    (call_of_sdk,) = (call for call in calls.values() if call.tool_name == "look_up")
    assert call_of_sdk.parent_invocation_id == span_uuid(TRACE, f"{2:016x}")
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False])
def test_different_tool_call_id_is_a_different_call(
    acme: Cast, send: Sender, is_first: bool
) -> None:
    other_spans = spans(2, 1, attributes=GENAI | {"gen_ai.tool.call.id": "call_1"})
    bodies: list[Sent] = [other_spans, called_in(2, tool_call_id="call_2")]
    for body in bodies[:: 1 if is_first else -1]:
        send(body)

    assert len(rows(acme)) == 2
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False])
def test_span_inside_an_sdk_call_is_not_merged(acme: Cast, send: Sender, is_first: bool) -> None:
    """Its parent is the span around the call, so nothing shows that both are the same call."""
    bodies: list[Sent] = [called_in(1), tool_span(), agent_run()]
    for body in bodies[:: 1 if is_first else -1]:
        send(body)

    assert len(rows(acme)) == 2
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.parametrize("is_first", [True, False])
def test_span_of_another_tenant_is_never_merged(
    acme: Cast, globex: Cast, send: Sender, is_first: bool
) -> None:
    send_as_globex = Sender(globex, make_ingest_key(globex.tenant))
    steps: list[Sending] = [lambda: send_as_globex(tool_span()), lambda: send(called_in(2))]
    for step in steps[:: 1 if is_first else -1]:
        step()

    assert [row.state for row in rows(globex)] == ["ok"]
    assert [row.violation_count for row in rows(acme)] == [1]
    assert_all_taken_in(acme.tenant)
    assert_all_taken_in(globex.tenant)


@pytest.mark.generated(2)
@pytest.mark.slow
@pytest.mark.parametrize("value", [None, 7, "", "nonsense", f"00-{TRACE}-{0:016x}-01", "x" * 500])
def test_malformed_traceparent_is_ignored(acme: Cast, send: Sender, value: Any) -> None:
    start, end = called_in(2)
    send(tool_span())
    send([start | {"traceparent": value}, end])

    assert len(rows(acme)) == 2
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
def test_sdk_call_is_completed_only_by_its_own_end_event(acme: Cast, send: Sender) -> None:
    """The span's end does not prove that the executor has finished."""
    start, end = called_in(2)
    send([start])
    send(tool_span())
    assert [row.state for row in rows(acme)] == ["open"]
    send([end])

    (row,) = rows(acme)
    assert (row.state, row.violation_count) == ("failed", 1)
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
def test_concurrent_requests_for_one_call_create_one_call(acme: Cast, send: Sender) -> None:
    send(outer_span())
    bodies: list[Sent] = [called_in(2), inner_span()]
    failures: list[BaseException] = []

    def deliver(body: Sent) -> None:
        try:
            send(body)
        except BaseException as error:  # an exception in a thread would only be printed
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=deliver, args=(body,)) for body in bodies * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    (row,) = rows(acme)
    assert row.violation_count == 1
    assert_all_taken_in(acme.tenant)


@pytest.mark.slow
@pytest.mark.sampled("spans and calls in any order", 2)
@EVERY_ORDER
def test_erasure_of_a_call_erases_the_texts_of_its_spans(
    acme: Cast, send: Sender, is_apart: bool
) -> None:
    attributes = GENAI | {"gen_ai.tool.call.arguments": '{"who": "Somebody"}'}
    arrivals = send_in_every_order(
        send,
        lambda: [
            called_in(2, case_id="mine"),
            spans(2, 3, attributes=attributes),
            spans(3, 4, "outer", attributes=attributes),
        ],
        is_apart=is_apart,
    )
    assert "Somebody" in all_stored_text(acme)
    erase(acme)

    assert "Somebody" not in all_stored_text(acme)
    assert {trace_id: len(calls) for trace_id, calls in rows_by_trace(acme).items()} == {
        each.trace_id: 1 for each in arrivals
    }
    assert index_agrees_with_log(acme)


@pytest.mark.slow
def test_events_without_traceparent_are_not_merged_with_spans(acme: Cast, send: Sender) -> None:
    """Events of an SDK that sends no span id."""
    start, end = called_in(2)
    del start["traceparent"]
    send(tool_span())
    send([start, end])

    assert len(rows(acme)) == 2
    assert_all_taken_in(acme.tenant)
