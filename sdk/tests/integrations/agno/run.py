"""Agno's agent with a scripted model."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import stage
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.tools import tool
from openinference.instrumentation.agno import AgnoInstrumentor
from tooltrail.integrations.agno import TooltrailHook


class Scripted(Model):
    def __init__(self, *turns: list[dict[str, Any]]) -> None:
        super().__init__(id="script-1")
        self.turns = list(turns)

    def invoke(self, *args: Any, **rest: Any) -> ModelResponse:
        if not self.turns:
            return ModelResponse(role="assistant", content="value of k")
        return ModelResponse(role="assistant", tool_calls=self.turns.pop(0))

    async def ainvoke(self, *args: Any, **rest: Any) -> ModelResponse:
        return self.invoke()

    def invoke_stream(self, *args: Any, **rest: Any) -> Any:
        yield self.invoke()

    async def ainvoke_stream(self, *args: Any, **rest: Any) -> Any:
        yield self.invoke()

    def _parse_provider_response(self, response: Any, **rest: Any) -> ModelResponse:
        return response

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        return response


def call(name: str, n: int, /, **args: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(args)}
    return {"id": f"call_{n}", "type": "function", "function": function}


trail = stage.make_trail()
hook = TooltrailHook(trail)


async def helper(task: str) -> str:
    inner = Agent(
        name="inner",
        model=Scripted([call("lookup", 9, key="k")]),
        tools=[stage.lookup],
        tool_hooks=[hook],
        telemetry=False,
    )
    await inner.arun(task)
    return "value of k"


def count(to: int) -> Iterator[str]:
    for number in range(to):
        yield str(number)


async def ask(*turns: list[dict[str, Any]], hook: Any = hook) -> None:
    await Agent(
        name="concierge",
        model=Scripted(*turns),
        tools=[stage.get_weather, helper, stage.report, stage.boom, stage.slow, count],
        tool_hooks=[hook],
        session_id="conv-1",
        telemetry=False,
    ).arun("go")


@tool(requires_confirmation=True)
def pay(amount: int) -> str:
    return f"paid {amount}"


async def decide() -> None:
    """Two calls await a confirmation; a person confirms the first."""
    agent = Agent(
        name="concierge",
        model=Scripted([call("pay", 11, amount=5), call("pay", 12, amount=9)]),
        tools=[pay],
        tool_hooks=[hook],
        session_id="conv-1",
        db=InMemoryDb(),
        telemetry=False,
    )
    run = await agent.arun("go")
    hook.approvals(run)
    first, second = run.active_requirements
    first.confirm()
    second.reject("too much")
    hook.approvals(run)
    await agent.acontinue_run(run_id=run.run_id, requirements=run.requirements)


async def main() -> None:
    await ask(*stage.turns(call, [call("count", 6, to=3)]))
    await decide()
    await stage.cancel(ask([call("slow", 6)]))


asyncio.run(main())
beside = stage.Beside()
AgnoInstrumentor().instrument(tracer_provider=beside.tracer_provider)
asyncio.run(ask([call("get_weather", 1, city="London")], hook=TooltrailHook(beside.trail)))
stage.finish(trail, beside)
