"""Agno's agent with a scripted model."""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import stage
from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse
from openinference.instrumentation.agno import AgnoInstrumentor
from tooltrail.integrations.agno import tooltrail_hook


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
hook = tooltrail_hook(trail)


def get_weather(city: str) -> dict[str, float]:
    return stage.WEATHER


def lookup(key: str) -> str:
    return f"value of {key}"


async def helper(task: str) -> str:
    inner = Agent(
        name="inner",
        model=Scripted([call("lookup", 9, key="k")]),
        tools=[lookup],
        tool_hooks=[hook],
        telemetry=False,
    )
    await inner.arun(task)
    return "value of k"


def report(title: str, rows: list[dict[str, int]]) -> dict[str, Any]:
    return {"title": title, "rows": rows}


def boom(n: int) -> str:
    return stage.boom(n)


def count(to: int) -> Iterator[str]:
    for number in range(to):
        yield str(number)


async def slow() -> str:
    await asyncio.sleep(60)
    return "never"


async def ask(*turns: list[dict[str, Any]], hook: Any = hook) -> None:
    await Agent(
        name="concierge",
        model=Scripted(*turns),
        tools=[get_weather, helper, report, boom, slow, count],
        tool_hooks=[hook],
        session_id="conv-1",
        telemetry=False,
    ).arun("go")


async def main() -> None:
    await ask(
        [call("get_weather", 1, city="London"), call("get_weather", 2, city="Paris")],
        [call("helper", 3, task="look")],
        [call("report", 4, title="T", rows=stage.ROWS)],
        [call("count", 6, to=3)],
        [call("boom", 5, n=7)],
    )
    task = asyncio.create_task(ask([call("slow", 6)]))
    await asyncio.sleep(0.3)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


asyncio.run(main())
beside = stage.Beside()
AgnoInstrumentor().instrument(tracer_provider=beside.tracer_provider)
asyncio.run(ask([call("get_weather", 1, city="London")], hook=tooltrail_hook(beside.trail)))
stage.finish(trail, beside)
