"""A client of the server that the test names: by its address in MCP_URL, or by its command."""

import asyncio
import json
import os

from mcp import Client, StdioServerParameters
from tooltrail import Trail
from tooltrail.integrations.mcp import record_client


async def main() -> None:
    command, *args = json.loads(os.environ["MCP_COMMAND"])
    environment = json.loads(os.environ["MCP_ENVIRONMENT"])
    url = os.environ.get("MCP_URL")
    trail = Trail()
    server = url or StdioServerParameters(command=command, args=args, env=environment)
    async with Client(server) as client:
        record_client(trail, client)
        assert record_client(trail, client) is client  # again: each call is still recorded once
        with trail.trace("trace-1", agent="concierge"):
            for value in json.loads(os.environ["MCP_VALUES"]):
                await client.call_tool("echo", {"value": value})
            assert (await client.call_tool("boom", {})).is_error
    assert trail.close(20)


asyncio.run(main())
