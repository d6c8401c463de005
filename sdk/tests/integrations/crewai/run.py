"""CrewAI's crews with a scripted model."""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import stage
from crewai import Agent, BaseLLM, Crew, Task
from crewai.hooks import register_before_tool_call_hook
from crewai.tools import ToolFailure, tool
from tooltrail.integrations.crewai import record_tools


class Scripted(BaseLLM):
    turns: list[list[dict[str, Any]]]

    def call(self, *args: Any, **rest: Any) -> Any:
        return self.turns.pop(0) if self.turns else "value of k"

    def supports_function_calling(self) -> bool:
        return True


def call(name: str, n: int, /, **args: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(args)}
    return {"id": f"call_{n}", "type": "function", "function": function}


def crew(role: str, tools: list[Any], *turns: list[dict[str, Any]]) -> Crew:
    llm = Scripted(model="script-1", turns=list(turns))
    agent = Agent(role=role, goal="help", backstory="none", llm=llm, tools=tools, cache=False)
    task = Task(description="go", expected_output="an answer", agent=agent)
    return Crew(agents=[agent], tasks=[task], cache=False)


get_weather, lookup, report = tool(stage.get_weather), tool(stage.lookup), tool(stage.report)
boom = tool(stage.boom)


@tool
def helper(task: str) -> str:
    """Ask another crew."""
    return str(crew("inner", [lookup], [call("lookup", 9, key="k")]).kickoff())


@tool
def reported() -> Any:
    """Report a failure."""
    return ToolFailure(message="not today")


@tool
def forbidden() -> str:
    """Is not allowed."""
    return "never"


@tool(max_usage_count=1)
def once() -> str:
    """Can be used once."""
    return "Error executing tool: not really"


register_before_tool_call_hook(lambda context: context.tool_name != "forbidden")
trail = stage.make_trail()
stop = record_tools(trail)
tools = [get_weather, helper, report, boom, reported, forbidden, once]
with trail.trace(run_id="conv-1"):
    crew(
        "concierge",
        tools,
        *stage.turns(
            call,
            [call("report", 6, title="T")],
            [call("forbidden", 7)],
            [call("reported", 8)],
            [call("once", 10)],
            [call("once", 11)],
        ),
    ).kickoff()
stop()

# Each crew is a trace if there is none.
own = stage.make_trail()
stop = record_tools(own)
for _ in range(2):
    crew("outer", [helper], [call("helper", 3, task="look")]).kickoff()
stop()
assert "outer" not in {each["context"]["agent"] for each in trail.events}, "it was stopped before"
starts = [each for each in own.events if each["type"] == "toolExecutionStart"]
assert [each["tool_name"] for each in starts] == ["helper", "lookup"] * 2
assert len({each["trace_id"] for each in starts}) == 2
stage.finish(trail)
