"""Each adapter, with the real framework and a scripted model: every call once, and as it was.

The script of a framework is `<framework>/run.py`. All make the same calls: two of `get_weather` at
once, `helper` that asks `lookup`, `report` with a structure, `boom` that raises, and `slow` that is
cancelled.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sdk.tests.integrations.calls import run
from sdk.tests.integrations.stage import ROWS, WEATHER


@dataclass(frozen=True)
class Told:
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
    "pydantic_ai": Told(
        extra=frozenset({"transfer"}), decisions=("rejectedArguments", "awaiting", "approved")
    ),
    "google_adk": Told(),
    "openai_agents": Told(extra=frozenset({"excused"})),
    "autogen": Told(model=None, tool_call_id=False),
    "agno": Told(tool_call_id=False, extra=frozenset({"count"})),
    "strands": Told(decisions=("denied",)),
    "llama_index": Told(agent=None, model=None, tool_call_id=False),
    "crewai": Told(
        tool_call_id=False,
        slow=None,
        extra=frozenset({"reported", "once"}),
        decisions=("rejectedArguments", "denied", "overBudget"),
    ),
    "claude_agent_sdk": Told(
        helper="Agent",
        extra=frozenset({"pay", "Bash"}),
        decisions=("awaiting", "approved", "awaiting", "denied"),
    ),
    "smolagents": Told(tool_call_id=False, slow=None, decisions=("rejectedArguments",)),
    "mcp": Told(**SERVER, error="Error executing tool boom"),
    "fastmcp": Told(
        **SERVER, error="Error calling tool 'boom': boom 7", extra=frozenset({"m_mounted"})
    ),
    "langchain": Told(extra=frozenset({"async_helper", "async_lookup"})),
}


@pytest.mark.slow
@pytest.mark.generated(2)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_adapter_records_each_call_once_and_as_it_was(framework: str, tmp_path: Path) -> None:
    told = FRAMEWORKS[framework]
    recording = run(framework, tmp_path / "events.json")
    assert all(len(call.ends) == 1 for call in recording.calls), "a call that ended twice, or never"

    weather = recording.of("get_weather")
    asked = sorted(weather, key=lambda call: str(call.start["args"]))  # threads have no order
    assert [call.start["args"] for call in asked] == [{"city": "London"}, {"city": "Paris"}]
    assert [call.data for call in weather] == [WEATHER] * 2
    assert len({call.id for call in weather}) == 2
    assert [call.parent for call in weather] == [None, None], "parallel calls are not nested"

    helper, lookup = recording.one(told.helper), recording.one("lookup")
    assert (helper.state, lookup.state) == ("ok", "ok")
    assert lookup.parent == helper.id
    text = "value of k"
    assert lookup.data == (text if told.wrapped is None else {told.wrapped: text})
    assert lookup.start["trace_id"] == helper.start["trace_id"]

    report = recording.one("report")
    assert report.start["args"] == {"title": "T", "rows": ROWS}
    assert report.data == {"title": "T", "rows": ROWS}
    assert report.parent is None

    boom = recording.one("boom")
    assert boom.state == "failed"
    assert boom.output["error"]["message"] == told.error
    if told.slow is not None:
        assert recording.one("slow").state == told.slow

    usual = {"get_weather", told.helper, "lookup", "report", "boom"}
    usual |= {"slow"} if told.slow else set()
    assert {call.start["tool_name"] for call in recording.calls} == usual | told.extra
    first = weather[0].start
    context = first.get("context", {})
    assert (context.get("agent"), context.get("model")) == (told.agent, told.model)
    assert first.get("run_id") == told.conversation
    assert ("tool_call_id" in first) == told.tool_call_id
    if told.agent is not None:  # a server of tools does not know which calls belong together
        assert {call.start["trace_id"] for call in [*weather, helper]} == {first["trace_id"]}
    assert tuple(each["decision"] for each in recording.decisions) == told.decisions
    if recording.beside is not None:
        check_beside(recording.beside)
    if "transfer" in told.extra:
        rejected, *approval = recording.decisions
        assert "secret" not in rejected["reason"]
        assert len({each["invocation_id"] for each in approval}) == 1
        transfer = recording.one("transfer").start
        assert {each["tool_call_id"] for each in approval} == {transfer["tool_call_id"]}
    if "count" in told.extra:  # a tool that yields
        assert recording.one("count").data == {"items": 3, "first": "0", "last": "2"}
    if "excused" in told.extra:
        assert recording.one("excused").state == "failed", "its error was answered with a text"
    if framework == "mcp":
        assert weather[0].ends[0]["mcp"]["client"]["name"] == "mcp"


def check_beside(sent: dict[str, Any]) -> None:
    """The call names its tool's own span, so that the server sees one call (ADR 24)."""
    (scopes,) = sent["spans"]["resourceSpans"]
    spans = {span["spanId"]: span for scope in scopes["scopeSpans"] for span in scope["spans"]}
    [start, _] = sent["events"]
    span = spans[start["traceparent"].split("-")[2]]
    names = {each["key"]: each["value"]["stringValue"] for each in span["attributes"]}
    assert start["tool_name"] in (names.get("gen_ai.tool.name"), names.get("tool.name"))
