"""What all adapters rely on: calls by keys, places, decisions, and mistakes that harm no tool."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tooltrail import Trail
from tooltrail.integrations.running import Running, read_json
from tooltrail.spool import SpoolFullError
from tooltrail.testing import MemoryTrail


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_mistake_of_an_adapter_does_not_reach_the_tool(make_trail: Callable[..., Trail]) -> None:
    running = Running(make_trail())
    running.begin("a", "tool", {}, context={"agent": Unprintable()})
    running.end("a", 1)
    running.end("never begun", 1)
    running.fail("never begun", "why")
    with running.harmless():
        raise KeyError("a member that a new version of the framework no longer has")
    with running.around("tool", {}, context={"agent": Unprintable()}) as outcome:
        outcome.output = 2
    assert outcome.output == 2


def test_full_spool_still_refuses_the_tool_if_the_host_asks_for_it() -> None:
    def out_of_ids() -> str:
        raise RuntimeError("no more ids")

    trail = Trail("http://127.0.0.1:9", "key", spool="memory", when_full="raise", ids=out_of_ids)
    with pytest.raises(SpoolFullError):
        Running(trail).begin("a", "tool", {})


def test_calls_begun_in_one_context_are_not_nested_unless_a_parent_is_named(
    trail: MemoryTrail,
) -> None:
    running = Running(trail)
    for key, parent in (("a", None), ("b", None), ("c", "a")):
        running.begin(key, key, {}, parent=parent, encloses=False, trace_id="run")
    for key in ("a", "b", "c"):
        running.end(key, None)
    a, b, c = trail.events[:3]
    assert c["parent_invocation_id"] == a["invocation_id"]
    assert "parent_invocation_id" not in a | b
    assert {event["trace_id"] for event in trail.events} == {"run"}


def test_reported_failures_and_cancellations_are_told_apart(trail: MemoryTrail) -> None:
    running = Running(trail)
    running.begin("a", "tool", "text")
    running.fail("a", "it did not work")
    running.begin("b", "tool", {})
    running.fail("b", asyncio.CancelledError("stopped"))
    first, failed, _, cancelled = trail.events
    assert first["args"] == {"input": "text"}
    assert (failed["is_error"], "call_state" in failed) == (True, False)
    assert failed["output"]["error"]["message"] == "it did not work"
    assert cancelled["call_state"] == "cancelled"


def test_approval_is_one_call_and_one_that_nobody_asked_for_is_none(trail: MemoryTrail) -> None:
    running = Running(trail)
    running.decide("x", "pay", "approved", trace_id="run")
    assert trail.events == []
    running.decide("y", "pay", "awaiting", args={"n": 1}, trace_id="run", tool_call_id="y")
    running.decide("y", "pay", "approved", trace_id="run", tool_call_id="y")
    request, answered = trail.events
    assert request["invocation_id"] == answered["invocation_id"]
    assert [request["decision"], answered["decision"]] == ["awaiting", "approved"]
    assert request["trace_id"] == "run"


def test_decision_about_a_call_that_has_begun_is_in_its_trace(trail: MemoryTrail) -> None:
    running = Running(trail)
    running.begin("x", "pay", {"n": 1}, encloses=False)
    running.decide("x", "pay", "awaiting")
    running.decide("x", "pay", "denied")
    running.fail("x", asyncio.CancelledError("denied"))
    start, request, answered, end = trail.events
    assert [request["decision"], answered["decision"]] == ["awaiting", "denied"]
    for member in ("invocation_id", "trace_id"):
        assert len({each[member] for each in (start, request, answered, end)}) == 1


def test_agent_of_a_call_is_that_of_the_calls_inside_it(trail: MemoryTrail) -> None:
    running = Running(trail)

    @trail.tool
    def inner() -> None: ...

    with running.around("outer", {}, context={"agent": "concierge", "model": None}):
        inner()
    assert [each["context"] for each in trail.events] == [{"agent": "concierge"}] * 4


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ('{"a": 1}', {"a": 1}),
        (" [1]", [1]),
        ("{no", "{no"),
        ("42", "42"),
        (7, 7),
        ("[" * 9999, "[" * 9999),
    ],
)
def test_only_objects_and_lists_are_read_from_texts(given: Any, read: Any) -> None:
    assert read_json(given) == read
