"""A FastMCP server, a client in memory, and a mounted server."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import stage
from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError
from tooltrail.integrations.fastmcp import TooltrailMiddleware

trail = stage.make_trail()
server: Any = FastMCP("concierge", middleware=[TooltrailMiddleware(trail)])
inner: Any = FastMCP("inner")


@server.tool
def get_weather(city: str) -> dict[str, float]:
    return stage.WEATHER


@server.tool
def lookup(key: str) -> str:
    return f"value of {key}"


@server.tool
async def helper(task: str) -> str:
    result = await server.call_tool("lookup", {"key": "k"})
    return str(result.content[0].text)


@server.tool
def report(title: str, rows: list[dict[str, int]]) -> dict[str, Any]:
    return {"title": title, "rows": rows}


@server.tool
def boom(n: int) -> str:
    return stage.boom(n)


@server.tool
async def slow() -> str:
    await asyncio.sleep(60)
    return "never"


@inner.tool
def mounted() -> dict[str, float]:
    return stage.WEATHER


server.mount(inner, namespace="m")


async def main() -> None:
    async with Client(server) as client:
        await asyncio.gather(
            client.call_tool("get_weather", {"city": "London"}),
            client.call_tool("get_weather", {"city": "Paris"}),
        )
        await client.call_tool("helper", {"task": "look"})
        await client.call_tool("report", {"title": "T", "rows": stage.ROWS})
        with suppress(ToolError):
            await client.call_tool("boom", {"n": 7})
        await client.call_tool("m_mounted", {})
        task = asyncio.create_task(client.call_tool("slow", {}))
        await asyncio.sleep(0.3)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.3)


async def watched(server: Any) -> None:
    async with Client(server) as client:
        await client.call_tool("get_weather", {"city": "London"})


asyncio.run(main())
beside = stage.Beside()
watching: Any = FastMCP("concierge", middleware=[TooltrailMiddleware(beside.trail)])
watching.tool(get_weather)
asyncio.run(watched(watching))
stage.finish(trail, beside)
