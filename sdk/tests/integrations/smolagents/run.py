"""smolagents' agents with a scripted model."""

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import stage
from openinference.instrumentation.smolagents import SmolagentsInstrumentor
from smolagents import CodeAgent, LogLevel, Model, ToolCallingAgent, tool
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
)
from tooltrail.integrations.smolagents import record_tools


class Scripted(Model):
    def __init__(self, *turns: list[ChatMessageToolCall] | str) -> None:
        super().__init__(model_id="script-1")
        self._turns = list(turns)

    def generate(self, *args: Any, **rest: Any) -> ChatMessage:
        turn = self._turns.pop(0) if self._turns else [call("final_answer", 0, answer="done")]
        if isinstance(turn, str):
            return ChatMessage(role=MessageRole.ASSISTANT, content=turn)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=turn)


def call(name: str, n: int, /, **args: Any) -> ChatMessageToolCall:
    function = ChatMessageToolCallFunction(name=name, arguments=args)
    return ChatMessageToolCall(id=f"call_{n}", type="function", function=function)


get_weather, lookup, report = tool(stage.get_weather), tool(stage.lookup), tool(stage.report)
boom = tool(stage.boom)
trail = stage.make_trail()
helper = ToolCallingAgent(
    tools=[lookup],
    model=Scripted([call("lookup", 9, key="k")]),
    name="helper",
    description="Look things up.",
    verbosity_level=LogLevel.OFF,
)
agent = ToolCallingAgent(
    tools=[get_weather, report, boom],
    managed_agents=[helper],
    model=Scripted(*stage.turns(call, [call("report", 6, title=6, rows=stage.ROWS)])),
    name="concierge",
    verbosity_level=LogLevel.OFF,
)
record_tools(agent, trail)
with trail.trace(run_id="conv-1"):
    for _step in agent.run("go", stream=True):
        pass

# An agent that writes code gives arguments without names, and each run is a trace.
coder = CodeAgent(
    tools=[lookup],
    model=Scripted(*["<code>\nfinal_answer(lookup('code'))\n</code>"] * 2),
    verbosity_level=LogLevel.OFF,
)
own = stage.make_trail()
record_tools(coder, own)
assert [coder.run("go"), coder.run("go")] == ["value of code"] * 2
starts = own.events[::2]
assert [each["args"] for each in starts] == [{"key": "code"}] * 2
assert len({each["trace_id"] for each in starts}) == 2
assert coder.tools["lookup"].to_dict()["code"] == lookup.to_dict()["code"]

beside = stage.Beside()
SmolagentsInstrumentor().instrument(tracer_provider=beside.tracer_provider)
watched = ToolCallingAgent(
    tools=[get_weather],
    model=Scripted([call("get_weather", 1, city="London")]),
    verbosity_level=LogLevel.OFF,
)
record_tools(watched, beside.trail)
watched.run("go")
stage.finish(trail, beside)
