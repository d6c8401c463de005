"""Google ADK's runner with a scripted model."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import stage
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import FunctionTool, ToolContext
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from tooltrail.integrations.google_adk import TooltrailPlugin

USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=stage.PROMPT_TOKENS, candidates_token_count=stage.COMPLETION_TOKENS
)


class Scripted(BaseLlm):
    model: str = "script-1"
    turns: list[list[types.Part]]

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = self.turns.pop(0) if self.turns else [types.Part(text="value of k")]
        content = types.Content(role="model", parts=parts)
        yield LlmResponse(content=content, usage_metadata=USAGE)


def call(name: str, n: int, /, **args: Any) -> types.Part:
    return types.Part(function_call=types.FunctionCall(id=f"call_{n}", name=name, args=args))


trail = stage.make_trail()
plugin = TooltrailPlugin(trail)


async def ask(*turns: list[types.Part], plugin: TooltrailPlugin = plugin) -> None:
    inner = LlmAgent(
        name="helper", model=Scripted(turns=[[call("lookup", 9, key="k")]]), tools=[stage.lookup]
    )
    agent = LlmAgent(
        name="concierge",
        model=Scripted(turns=list(turns)),
        tools=[stage.get_weather, AgentTool(inner), stage.report, stage.boom, stage.slow],
    )
    sessions: Any = InMemorySessionService()
    await sessions.create_session(app_name="app", user_id="ann", session_id="conv-1")
    runner = Runner(agent=agent, app_name="app", session_service=sessions, plugins=[plugin])
    message = types.Content(role="user", parts=[types.Part(text="go")])
    async for _ in runner.run_async(user_id="ann", session_id="conv-1", new_message=message):
        pass


def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


async def refund(amount: int, tool_context: ToolContext) -> str:
    """Pay back, if a person agrees."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint="really?")
    return f"refunded {amount}"


async def decide() -> None:
    """Three calls await a confirmation; a person confirms the first and the last."""
    requested = [
        call("pay", 11, amount=5),
        call("pay", 12, amount=900),
        call("refund", 13, amount=7),
    ]
    agent = LlmAgent(
        name="concierge",
        model=Scripted(turns=[requested]),
        tools=[FunctionTool(pay, require_confirmation=True), refund],
    )
    sessions: Any = InMemorySessionService()
    await sessions.create_session(app_name="app", user_id="ann", session_id="conv-1")
    runner = Runner(agent=agent, app_name="app", session_service=sessions, plugins=[plugin])
    parts = [types.Part(text="go")]
    while parts:
        message = types.Content(role="user", parts=parts)
        parts = []
        async for event in runner.run_async(
            user_id="ann", session_id="conv-1", new_message=message
        ):
            for each in event.get_function_calls():
                if each.name == "adk_request_confirmation":
                    of = each.args["originalFunctionCall"]["id"]
                    answer = {"confirmed": of != "call_12"}
                    response = types.FunctionResponse(id=each.id, name=each.name, response=answer)
                    parts.append(types.Part(function_response=response))


async def main() -> None:
    with suppress(ValueError):
        await ask(
            [call("get_weather", 1, city="London"), call("get_weather", 2, city="Paris")],
            [call("helper", 3, request="look")],
            [call("report", 4, title="T", rows=stage.ROWS)],
            [call("boom", 5, n=7)],
        )
    await decide()
    await stage.cancel(ask([call("slow", 6)]))


asyncio.run(main())
beside = stage.Beside()
asyncio.run(ask([call("get_weather", 1, city="London")], plugin=TooltrailPlugin(beside.trail)))
stage.finish(trail, beside)
