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


for each in (stage.get_weather, stage.lookup, stage.report, stage.boom, stage.slow):
    server.tool(each)


@server.tool
async def helper(task: str) -> str:
    result = await server.call_tool("lookup", {"key": "k"})
    return str(result.content[0].text)


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
        await stage.cancel(client.call_tool("slow", {}))
        await asyncio.sleep(0.3)


async def watched(server: Any) -> None:
    async with Client(server) as client:
        await client.call_tool("get_weather", {"city": "London"})


asyncio.run(main())
beside = stage.Beside()
watching: Any = FastMCP("concierge", middleware=[TooltrailMiddleware(beside.trail)])
watching.tool(stage.get_weather)
asyncio.run(watched(watching))
stage.finish(trail, beside)
