"""LangGraph's agent with a scripted model."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import stage
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from tooltrail.integrations.langchain import TooltrailHandler


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
        message = AIMessage(content="" if calls else "done", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def call(name: str, n: int, /, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": f"call_{n}", "type": "tool_call"}


@tool
def get_weather(city: str) -> dict[str, float]:
    """The weather of a city."""
    return stage.WEATHER


@tool
def lookup(key: str) -> str:
    """Look it up."""
    return f"value of {key}"


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
def report(title: str, rows: list[dict[str, int]]) -> dict[str, Any]:
    """Write a report."""
    return {"title": title, "rows": rows}


@tool
def boom(n: int) -> str:
    """Fail."""
    return stage.boom(n)


@tool
async def slow() -> str:
    """Take long."""
    await asyncio.sleep(60)
    return "never"


trail = stage.make_trail()
config: Any = {"callbacks": [TooltrailHandler(trail)], "configurable": {"thread_id": "conv-1"}}
tools = [get_weather, helper, report, boom, slow]


def agent(*turns: list[dict[str, Any]]) -> Any:
    return create_agent(Scripted(turns=list(turns)), tools, name="concierge")


with suppress(ValueError):
    agent(
        [call("get_weather", 1, city="London"), call("get_weather", 2, city="Paris")],
        [call("helper", 3, task="look")],
        [call("report", 4, title="T", rows=stage.ROWS)],
        [call("boom", 5, n=7)],
    ).invoke({"messages": [("user", "go")]}, config)


async def cancelled() -> None:
    task = asyncio.create_task(
        agent([call("slow", 6)]).ainvoke({"messages": [("user", "go")]}, config)
    )
    await asyncio.sleep(0.3)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await async_helper.ainvoke({"task": "k"}, config)


asyncio.run(cancelled())
stage.finish(trail)
