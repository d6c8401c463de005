"""pydantic-ai's agent with a scripted model."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import stage
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    InstrumentationSettings,
    ModelResponse,
)
from pydantic_ai.messages import TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage
from tooltrail.integrations.pydantic_ai import TooltrailCapability


def scripted(*turns: list[ToolCallPart]) -> FunctionModel:
    left = list(turns)

    def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        usage = RequestUsage(
            input_tokens=stage.PROMPT_TOKENS, output_tokens=stage.COMPLETION_TOKENS
        )
        return ModelResponse(parts=left.pop(0) if left else [TextPart("done")], usage=usage)

    return FunctionModel(answer, model_name="script-1")


def call(name: str, n: int, /, **args: Any) -> ToolCallPart:
    return ToolCallPart(name, args, tool_call_id=f"call_{n}")


trail = stage.make_trail()
capability = TooltrailCapability(trail)


async def helper(task: str) -> str:
    inner = Agent(
        scripted([call("lookup", 9, key="k")]),
        name="inner",
        tools=[stage.lookup],
        capabilities=[capability],
    )
    await inner.run(task)
    return "value of k"


def agent(*turns: list[ToolCallPart]) -> Agent[None, Any]:
    made: Agent[None, Any] = Agent(
        scripted(*turns),
        name="concierge",
        tools=[stage.get_weather, helper, stage.report, stage.boom, stage.slow],
        capabilities=[capability],
        output_type=[str, DeferredToolRequests],
    )

    @made.tool_plain(requires_approval=True)
    def transfer(amount: int) -> str:
        return f"sent {amount}"

    return made


async def main() -> None:
    with suppress(ValueError):
        await agent(*stage.turns(call, [call("report", 8, title=["secret"])])).run(
            "go", conversation_id="conv-1"
        )
    await stage.cancel(agent([call("slow", 6)]).run("go"))
    asking = agent([call("transfer", 7, amount=5)])
    pending = await asking.run("go", conversation_id="conv-1")
    await asking.run(
        message_history=pending.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={"call_7": True}),
        conversation_id="conv-1",
    )


asyncio.run(main())

beside = stage.Beside()
Agent.instrument_all(InstrumentationSettings(tracer_provider=beside.tracer_provider))
Agent(
    scripted([call("get_weather", 1, city="London")]),
    tools=[stage.get_weather],
    capabilities=[TooltrailCapability(beside.trail)],
).run_sync("go")
stage.finish(trail, beside)
