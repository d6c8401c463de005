"""Strands' agent with a scripted model."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import stage
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent, HookProvider, HookRegistry
from strands.models import Model
from tooltrail.integrations.strands import TooltrailHooks


class Scripted(Model):
    config = {"model_id": "script-1"}

    def __init__(self, *turns: list[tuple[str, str, dict[str, Any]]]) -> None:
        self.turns = list(turns)

    def update_config(self, **rest: Any) -> None: ...

    def get_config(self) -> Any:
        return self.config

    def structured_output(self, *args: Any, **rest: Any) -> Any:
        raise NotImplementedError

    async def stream(self, *args: Any, **rest: Any) -> Any:
        yield {"messageStart": {"role": "assistant"}}
        calls = self.turns.pop(0) if self.turns else []
        for name, number, given in calls:
            use = {"name": name, "toolUseId": number}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(given)}}}}
            yield {"contentBlockStop": {}}
        if not calls:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "value of k"}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}
        prompt, completion = stage.PROMPT_TOKENS, stage.COMPLETION_TOKENS
        usage = {"inputTokens": prompt, "outputTokens": completion}
        yield {"metadata": {"usage": {**usage, "totalTokens": prompt + completion}}}


def call(name: str, n: int, /, **args: Any) -> tuple[str, str, dict[str, Any]]:
    return name, f"call_{n}", args


trail = stage.make_trail()
hooks = TooltrailHooks(trail)


get_weather, lookup, report = tool(stage.get_weather), tool(stage.lookup), tool(stage.report)
boom, slow = tool(stage.boom), tool(stage.slow)


@tool
async def helper(task: str) -> str:
    """Ask another agent."""
    inner = Agent(
        name="inner",
        model=Scripted([call("lookup", 9, key="k")]),
        tools=[lookup],
        hooks=[hooks],
        callback_handler=None,
    )
    await inner.invoke_async(task)
    return "value of k"


@tool
def forbidden() -> str:
    """Is not allowed."""
    return "never"


class Policy(HookProvider):
    def register_hooks(self, registry: HookRegistry, **rest: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.before)

    def before(self, event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] == "forbidden":
            event.cancel_tool = "not allowed"


async def ask(*turns: list[tuple[str, str, dict[str, Any]]], hooks: Any = hooks) -> None:
    agent = Agent(
        name="concierge",
        model=Scripted(*turns),
        tools=[get_weather, helper, report, boom, slow, forbidden],
        hooks=[Policy(), hooks],
        callback_handler=None,
    )
    await agent.invoke_async("go")


async def main() -> None:
    with trail.trace(run_id="conv-1"):
        await ask(*stage.turns(call, [call("forbidden", 7)]))
    await stage.cancel(ask([call("slow", 6)]))


asyncio.run(main())
beside = stage.Beside()
hooks = TooltrailHooks(beside.trail)  # of the helper's agent, too
asyncio.run(ask(*stage.turns(call), hooks=hooks))
stage.finish(trail, beside)
