"""A server of MCP's Python SDK and a client in memory."""

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import stage
from mcp import Client
from mcp.server import MCPServer
from tooltrail.integrations.mcp import TooltrailMiddleware

trail = stage.make_trail()
server: Any = MCPServer("concierge", middleware=[TooltrailMiddleware(trail)])


for each in (stage.get_weather, stage.lookup, stage.report, stage.boom, stage.slow):
    server.add_tool(each)


@server.tool()
async def helper(task: str) -> str:
    async with Client(server) as client:
        await client.call_tool("lookup", {"key": "k"})
    return "value of k"


async def main() -> None:
    async with Client(server) as client:
        await asyncio.gather(
            client.call_tool("get_weather", {"city": "London"}),
            client.call_tool("get_weather", {"city": "Paris"}),
        )
        await client.call_tool("helper", {"task": "look"})
        await client.call_tool("report", {"title": "T", "rows": stage.ROWS})
        assert (await client.call_tool("boom", {"n": 7})).is_error
        await stage.cancel(client.call_tool("slow", {}))
        await asyncio.sleep(0.3)


async def watched(server: Any) -> None:
    async with Client(server) as client:
        await client.call_tool("get_weather", {"city": "London"})


asyncio.run(main())
beside = stage.Beside()
watching = MCPServer("concierge", middleware=[TooltrailMiddleware(beside.trail)])
watching.add_tool(stage.get_weather)
asyncio.run(watched(watching))
stage.finish(trail, beside)
