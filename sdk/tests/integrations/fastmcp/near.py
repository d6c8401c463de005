"""A client of the server that the test names: by its address in MCP_URL, or by its command."""

import asyncio
import json
import os
from contextlib import suppress

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError
from tooltrail import Trail
from tooltrail.integrations.mcp import record_client


async def main() -> None:
    command, *args = json.loads(os.environ["MCP_COMMAND"])
    environment = json.loads(os.environ["MCP_ENVIRONMENT"])
    url = os.environ.get("MCP_URL")
    trail = Trail()
    async with Client(url or StdioTransport(command, args, env=environment)) as client:
        record_client(trail, client)
        with trail.trace("trace-1", agent="concierge"):
            for value in json.loads(os.environ["MCP_VALUES"]):
                await client.call_tool("echo", {"value": value})
            with suppress(ToolError):
                await client.call_tool("boom", {})
    assert trail.close(20)


asyncio.run(main())
