"""OpenAI Agents' runner with a scripted model."""

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import stage
from agents import (
    Agent,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    ToolGuardrailFunctionOutput,
    Usage,
    function_tool,
    set_trace_processors,
    tool_input_guardrail,
)
from agents.exceptions import ToolInputGuardrailTripwireTriggered
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from tooltrail.integrations.openai_agents import TooltrailHooks

USAGE = Usage(input_tokens=stage.PROMPT_TOKENS, output_tokens=stage.COMPLETION_TOKENS)


class Scripted(Model):
    model = "script-1"

    def __init__(self, *turns: list[Any]) -> None:
        self._turns = list(turns)

    async def get_response(self, *args: Any, **rest: Any) -> ModelResponse:
        done = ResponseOutputMessage(
            id="m",
            type="message",
            role="assistant",
            status="completed",
            content=[ResponseOutputText(text="value of k", type="output_text", annotations=[])],
        )
        output = self._turns.pop(0) if self._turns else [done]
        return ModelResponse(output=output, usage=USAGE, response_id=None)

    def stream_response(self, *args: Any, **rest: Any) -> Any:
        raise NotImplementedError


def call(name: str, n: int, /, **args: Any) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(
        type="function_call", name=name, call_id=f"call_{n}", arguments=json.dumps(args)
    )


get_weather, lookup = function_tool(stage.get_weather), function_tool(stage.lookup)
report = function_tool(stage.report, strict_mode=False)
boom = function_tool(stage.boom, failure_error_function=None)
excused = function_tool(stage.boom, name_override="excused")
slow = function_tool(stage.slow, failure_error_function=None)
pay = function_tool(stage.lookup, name_override="pay", needs_approval=True)


@tool_input_guardrail
def no_keys(data: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.reject_content("no keys")


@tool_input_guardrail
def tripwire(data: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.raise_exception()


guarded = function_tool(stage.lookup, name_override="guarded", tool_input_guardrails=[no_keys])
tripped = function_tool(stage.lookup, name_override="tripped", tool_input_guardrails=[tripwire])


set_trace_processors([])
trail = stage.make_trail()
hooks = TooltrailHooks(trail)


async def ask(*turns: list[Any], hooks: TooltrailHooks = hooks) -> None:
    inner = Agent(name="inner", model=Scripted([call("lookup", 9, key="k")]), tools=[lookup])
    helper = inner.as_tool("helper", "Ask another agent.", hooks=hooks)
    agent = Agent(
        name="concierge",
        model=Scripted(*turns),
        tools=[get_weather, helper, report, boom, excused, slow],
    )
    await Runner.run(agent, "go", hooks=hooks, run_config=RunConfig(group_id="conv-1"))


async def decide() -> None:
    model = Scripted(
        [call("guarded", 11, key="k"), call("pay", 12, key="k"), call("pay", 13, key="m")],
        [call("tripped", 14, key="k")],
    )
    agent = Agent(name="concierge", model=model, tools=[pay, guarded, tripped])
    about = RunConfig(group_id="conv-1")
    pending = await Runner.run(agent, "go", hooks=hooks, run_config=about)
    state = pending.to_state()
    approved, refused = pending.interruptions
    state.approve(approved)
    state.reject(refused, rejection_message="too much")
    with suppress(ToolInputGuardrailTripwireTriggered):
        await Runner.run(agent, state, hooks=hooks, run_config=about)


async def main() -> None:
    with suppress(Exception):
        await ask(
            [call("get_weather", 1, city="London"), call("get_weather", 2, city="Paris")],
            [call("helper", 3, input="look")],
            [call("report", 4, title="T", rows=stage.ROWS)],
            [call("excused", 8, n=7)],
            [call("boom", 5, n=7)],
        )
    await decide()
    await stage.cancel(ask([call("slow", 6)]))
    await asyncio.sleep(0.1)


asyncio.run(main())
beside = stage.Beside()
OpenAIAgentsInstrumentor().instrument(tracer_provider=beside.tracer_provider)
watching = TooltrailHooks(beside.trail)
asyncio.run(ask([call("get_weather", 1, city="London")], hooks=watching))
stage.finish(trail, beside)
