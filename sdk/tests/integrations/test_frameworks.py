"""Each adapter, with the real framework and a scripted model: every call once, and as it was.

The script of a framework is `<framework>/run.py`. All make the same calls: two of `get_weather` at
once, `helper` that asks `lookup`, `report` with a structure, `boom` that raises, and `slow` that is
cancelled.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sdk.tests.integrations.calls import Recording, run
from sdk.tests.integrations.stage import COMPLETION_TOKENS, PROMPT_TOKENS, ROWS, WEATHER


@dataclass(frozen=True)
class Reported:
    """What a framework tells its adapter."""

    agent: str | None = "concierge"
    model: str | None = "script-1"
    conversation: str | None = "conv-1"
    tool_call_id: bool = True
    slow: str | None = "cancelled"
    """How the call ends that is stopped from outside. None: the framework stops no tool."""
    extra: frozenset[str] = frozenset()
    """Further tools that its script calls, tested beside this table."""
    error: str = "boom 7"
    helper: str = "helper"
    """The name of the tool that asks another agent."""
    decisions: tuple[str, ...] = ()
    """What was decided about calls that its script asks for, in order."""
    by: tuple[str | None, ...] = ()
    """The kind and id of who decided, as far as the framework tells."""
    usage: bool = False
    """Whether a call has the tokens of the model's answer that asked for it."""
    wrapped: str | None = None
    """The member in which the framework puts a text that a tool returns."""


SERVER: dict[str, Any] = {
    "agent": None,
    "model": None,
    "conversation": None,
    "tool_call_id": False,
    "wrapped": "result",
}

FRAMEWORKS = {
    "pydantic_ai": Reported(
        usage=True,
        extra=frozenset({"transfer"}),
        decisions=("rejectedArguments", "awaiting", "approved"),
    ),
    "google_adk": Reported(
        usage=True,
        extra=frozenset({"pay", "refund"}),
        decisions=("awaiting", "awaiting", "awaiting", "approved", "denied", "approved"),
        by=(None, None, None, "person", "person", "person"),
    ),
    "openai_agents": Reported(
        usage=True,
        extra=frozenset({"excused", "pay"}),
        decisions=("denied", "awaiting", "awaiting", "approved", "denied", "denied"),
        by=("guardrail no_keys", None, None, "person", "person", "guardrail tripwire"),
    ),
    "autogen": Reported(model=None, tool_call_id=False),
    "agno": Reported(
        tool_call_id=False,
        extra=frozenset({"count", "pay"}),
        decisions=("awaiting", "awaiting", "approved", "denied"),
        by=(None, None, "person", "person"),
    ),
    "strands": Reported(usage=True, decisions=("denied",)),
    "llama_index": Reported(agent=None, model=None, tool_call_id=False),
    "crewai": Reported(
        tool_call_id=False,
        slow=None,
        extra=frozenset({"reported", "once"}),
        decisions=("rejectedArguments", "denied", "overBudget"),
    ),
    "claude_agent_sdk": Reported(
        helper="Agent",
        extra=frozenset({"pay", "Bash"}),
        decisions=("awaiting", "approved", "awaiting", "denied"),
    ),
    "smolagents": Reported(tool_call_id=False, slow=None, decisions=("rejectedArguments",)),
    "mcp": Reported(**SERVER, error="Error executing tool boom"),
    "fastmcp": Reported(
        **SERVER, error="Error calling tool 'boom': boom 7", extra=frozenset({"m_mounted"})
    ),
    "langchain": Reported(
        usage=True,
        extra=frozenset({"async_helper", "async_lookup", "pay", "once", "ask"}),
        decisions=("awaiting", "awaiting", "denied", "approved", "overBudget"),
        by=(None, None, "person", "person", "policy"),
    ),
}


@pytest.mark.slow
@pytest.mark.generated(2)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_adapter_records_each_call_once_and_as_it_was(framework: str, tmp_path: Path) -> None:
    reported = FRAMEWORKS[framework]
    recording = run(framework, tmp_path / "events.json")
    assert all(len(call.ends) == 1 for call in recording.calls), "a call that ended twice, or never"

    weather = recording.of("get_weather")
    weather_calls = sorted(
        weather, key=lambda call: str(call.start["args"])
    )  # threads have no order
    assert [call.start["args"] for call in weather_calls] == [{"city": "London"}, {"city": "Paris"}]
    assert [call.data for call in weather] == [WEATHER] * 2
    assert len({call.id for call in weather}) == 2
    assert [call.parent for call in weather] == [None, None], "parallel calls are not nested"

    helper, lookup = recording.one(reported.helper), recording.one("lookup")
    assert (helper.state, lookup.state) == ("ok", "ok")
    assert lookup.parent == helper.id
    text = "value of k"
    assert lookup.data == (text if reported.wrapped is None else {reported.wrapped: text})
    assert lookup.start["trace_id"] == helper.start["trace_id"]

    report = recording.one("report")
    assert report.start["args"] == {"title": "T", "rows": ROWS}
    assert report.data == {"title": "T", "rows": ROWS}
    assert report.parent is None

    boom = recording.one("boom")
    assert boom.state == "failed"
    assert boom.output["error"]["message"] == reported.error
    if reported.slow is not None:
        assert recording.one("slow").state == reported.slow

    usual = {"get_weather", reported.helper, "lookup", "report", "boom"}
    usual |= {"slow"} if reported.slow else set()
    assert {call.start["tool_name"] for call in recording.calls} == usual | reported.extra
    first = weather[0].start
    context = first.get("context", {})
    assert (context.get("agent"), context.get("model")) == (reported.agent, reported.model)
    assert first.get("run_id") == reported.conversation
    assert ("tool_call_id" in first) == reported.tool_call_id
    if reported.agent is not None:  # a server of tools does not know which calls belong together
        assert {call.start["trace_id"] for call in [*weather, helper]} == {first["trace_id"]}
    usage = {"prompt": PROMPT_TOKENS, "completion": COMPLETION_TOKENS} if reported.usage else None
    asked_for = [*weather, helper, lookup, report, boom]
    assert [call.start.get("model_usage") for call in asked_for] == [usage] * 6
    check_decisions(recording, reported)
    if recording.beside is not None:
        check_beside(recording.beside)
    if "transfer" in reported.extra:
        rejected, *approval = recording.decisions
        assert "secret" not in rejected["reason"]
        assert len({each["invocation_id"] for each in approval}) == 1
        transfer = recording.one("transfer").start
        assert {each["tool_call_id"] for each in approval} == {transfer["tool_call_id"]}
    if "count" in reported.extra:  # a tool that yields
        assert recording.one("count").data == {"items": 3, "first": "0", "last": "2"}
    if "excused" in reported.extra:
        assert recording.one("excused").state == "failed", "its error was answered with a text"
    if framework in ("mcp", "fastmcp"):
        [end] = weather[0].ends
        assert end["mcp"]["client"]["name"] == "mcp"
        assert end["output"]["data"]["content"][0]["type"] == "text"
    if framework == "fastmcp":
        assert end["mcp"]["server"]["name"] == "concierge"


def check_decisions(recording: Recording, reported: Reported) -> None:
    """The decisions in their order; those of a call that ran have its trace and its id."""
    made = recording.decisions
    assert tuple(each["decision"] for each in made) == reported.decisions
    if reported.by:
        by = [each.get("by") for each in made]
        assert tuple(each and " ".join(each.values()) for each in by) == reported.by
    awaiting = {each["invocation_id"] for each in made if each["decision"] == "awaiting"}
    for approved in (each for each in made if each["decision"] == "approved"):
        assert approved["invocation_id"] in awaiting, "the answer to no request"
        of_call = ("tool_name", "tool_call_id", "trace_id", "run_id")
        expected = {name: approved.get(name) for name in of_call}
        calls = [{name: call.start.get(name) for name in of_call} for call in recording.calls]
        assert expected in calls, "the server would not find the call"


def check_beside(sent: dict[str, Any]) -> None:
    """Each call names its tool's own span, or the span around that one, which has the call's id.

    So the server sees one call (ADR 24).
    """
    (scopes,) = sent["spans"]["resourceSpans"]
    spans = {span["spanId"]: span for scope in scopes["scopeSpans"] for span in scope["spans"]}
    starts = [event for event in sent["events"] if event["type"] == "toolExecutionStart"]
    assert starts
    for start in starts:
        named = start["traceparent"].split("-")[2]
        beside = [span for span in spans.values() if span["parentSpanId"] == named]
        assert is_of_tool(start, spans[named]) or any(
            is_of_tool(start, span) and start["tool_call_id"] in str(span["attributes"])
            for span in beside
        )


def is_of_tool(start: dict[str, Any], span: dict[str, Any]) -> bool:
    """Whether a span names the call's tool."""
    names = {each["key"]: each["value"]["stringValue"] for each in span["attributes"]}
    marks = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name")
    return start["tool_name"] in [names.get(mark) for mark in marks]
