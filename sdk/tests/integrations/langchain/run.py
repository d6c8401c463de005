"""LangGraph's agent with a scripted model."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.append(str(Path(__file__).parents[1]))

import stage
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolCallLimitMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from tooltrail.integrations.langchain import TooltrailHandler

try:
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor
    from opentelemetry.instrumentation.utils import suppress_instrumentation
except ImportError:  # `bench/frameworks` has one instrumentation at a time
    instrumentors = []
else:
    instrumentors = [LangChainInstrumentor(), LangchainInstrumentor()]


class Scripted(BaseChatModel):
    turns: list[list[dict[str, Any]]]
    model_name: str = "script-1"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _get_ls_params(self, **rest: Any) -> Any:
        return {"ls_model_name": self.model_name}

    def bind_tools(self, tools: Any, **rest: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **rest: Any) -> ChatResult:
        calls = self.turns.pop(0) if self.turns else []
        usage: Any = {
            "input_tokens": stage.PROMPT_TOKENS,
            "output_tokens": stage.COMPLETION_TOKENS,
            "total_tokens": stage.PROMPT_TOKENS + stage.COMPLETION_TOKENS,
        }
        content = "" if calls else "done"
        message = AIMessage(content=content, tool_calls=calls, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


def call(name: str, n: int, /, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": f"call_{n}", "type": "tool_call"}


get_weather, lookup, report = tool(stage.get_weather), tool(stage.lookup), tool(stage.report)
boom, slow = tool(stage.boom), tool(stage.slow)


@tool
def helper(task: str) -> str:
    """Ask another agent."""
    inner = create_agent(Scripted(turns=[[call("lookup", 9, key="k")]]), [lookup], name="inner")
    return str(inner.invoke({"messages": [("user", task)]})["messages"][-1].text)


@tool
async def async_lookup(key: str) -> str:
    """Look it up."""
    return f"value of {key}"


@tool
async def async_helper(task: str) -> str:
    """Ask another agent."""
    return str(await async_lookup.ainvoke({"key": task}))


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def once(key: str) -> str:
    """Work once in a run."""
    return key


@tool
def ask(question: str) -> str:
    """Ask a person."""
    return str(interrupt(question))


trail = stage.make_trail()
config: Any = {"callbacks": [TooltrailHandler(trail)], "configurable": {"thread_id": "conv-1"}}
tools = [get_weather, helper, report, boom, slow]


def agent(*turns: list[dict[str, Any]]) -> Any:
    return create_agent(Scripted(turns=list(turns)), tools, name="concierge")


with suppress(ValueError):
    agent(*stage.turns(call)).invoke({"messages": [("user", "go")]}, config)


async def cancelled() -> None:
    await stage.cancel(agent([call("slow", 6)]).ainvoke({"messages": [("user", "go")]}, config))
    await async_helper.ainvoke({"task": "k"}, config)


asyncio.run(cancelled())
deciding: Any = create_agent(
    Scripted(
        turns=[
            [call("pay", 11, amount=5), call("pay", 12, amount=9)],
            [call("once", 13, key="a"), call("once", 14, key="b")],
            [call("ask", 15, question="really?")],
        ]
    ),
    [pay, once, ask],
    name="concierge",
    middleware=[
        HumanInTheLoopMiddleware(interrupt_on={"pay": True}),
        ToolCallLimitMiddleware(tool_name="once", run_limit=1),
    ],
    checkpointer=InMemorySaver(),
)
deciding.invoke({"messages": [("user", "go")]}, config)
answers = [{"type": "approve"}, {"type": "reject", "message": "too much"}]
deciding.invoke(Command(resume={"decisions": answers}), config)
deciding.invoke(Command(resume="yes"), config)

beside = stage.Beside() if instrumentors else None
for instrumentor in instrumentors:
    handler = TooltrailHandler(beside.trail)
    config = {"callbacks": [handler]}
    instrumentor.instrument(tracer_provider=beside.tracer_provider)
    with suppress(ValueError):
        agent(*stage.turns(call)).invoke({"messages": [("user", "go")]}, config)
    with suppress(ValueError):
        asyncio.run(agent(*stage.turns(call)).ainvoke({"messages": [("user", "go")]}, config))
    if isinstance(instrumentor, LangChainInstrumentor):  # the handler of a tool comes after it
        get_weather.callbacks = [handler]
        get_weather.invoke({"city": "Rome"})
        get_weather.callbacks = None
        unknown = stage.make_trail()
        for other in ({"side_effect": AttributeError}, {"return_value": "no span"}):
            of_other_version = patch.object(LangChainInstrumentor, "get_span", **other)
            with of_other_version, suppress_instrumentation():
                asked = {"type": "tool_call", "id": "1", "name": "lookup", "args": {"key": "k"}}
                lookup.invoke(asked, {"callbacks": [TooltrailHandler(unknown)]})
        ends = [each["is_error"] for each in unknown.events if "is_error" in each]
        assert ends == [False, False], "another version of OpenInference costs no call"
    instrumentor.uninstrument()
stage.finish(trail, beside)
