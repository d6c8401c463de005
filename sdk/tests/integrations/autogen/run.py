"""AutoGen's assistant with a scripted model."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import stage
from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import (
    ChatCompletionClient,
    CreateResult,
    ModelFamily,
    ModelInfo,
    RequestUsage,
)
from tooltrail.integrations.autogen import TooltrailTool

USAGE = RequestUsage(prompt_tokens=0, completion_tokens=0)


class Scripted(ChatCompletionClient):
    def __init__(self, *turns: list[FunctionCall]) -> None:
        self._turns = list(turns)

    async def create(self, *args: Any, **rest: Any) -> CreateResult:
        content: Any = self._turns.pop(0) if self._turns else "done"
        reason = "stop" if content == "done" else "function_calls"
        return CreateResult(finish_reason=reason, content=content, usage=USAGE, cached=False)

    def create_stream(self, *args: Any, **rest: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None: ...

    def actual_usage(self) -> RequestUsage:
        return USAGE

    total_usage = actual_usage

    def count_tokens(self, *args: Any, **rest: Any) -> int:
        return 0

    remaining_tokens = count_tokens

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False,
            function_calling=True,
            json_output=False,
            family=ModelFamily.UNKNOWN,
            structured_output=False,
            multiple_system_messages=True,
        )

    capabilities = model_info


def call(name: str, n: int, /, **args: Any) -> FunctionCall:
    return FunctionCall(id=f"call_{n}", name=name, arguments=json.dumps(args))


trail = stage.make_trail()


async def helper(task: str) -> str:
    """Ask another agent."""
    tools = [TooltrailTool(stage.lookup, trail=trail, agent="inner")]
    inner = AssistantAgent("inner", Scripted([call("lookup", 9, key="k")]), tools=tools)
    await inner.run(task=task)
    return "value of k"


async def ask(*turns: list[FunctionCall], trail: Any = trail) -> None:
    functions = [stage.get_weather, helper, stage.report, stage.boom, stage.slow]
    tools = [TooltrailTool(each, trail=trail, agent="concierge") for each in functions]
    agent = AssistantAgent("concierge", Scripted(*turns), tools=tools, max_tool_iterations=9)
    await agent.run(task="go")


async def main() -> None:
    with trail.trace(run_id="conv-1"):
        await ask(*stage.turns(call))
    await stage.cancel(ask([call("slow", 6)]))


asyncio.run(main())
beside = stage.Beside()
asyncio.run(ask([call("get_weather", 1, city="London")], trail=beside.trail))
stage.finish(trail, beside)
