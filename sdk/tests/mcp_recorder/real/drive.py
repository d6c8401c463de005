"""A client of the package that its first argument names: lists the tools, then makes the calls.

python drive.py PACKAGE CALLS COMMAND …, where the word PYTHON in the command is this interpreter.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

package, calls = sys.argv[1], json.loads(sys.argv[2])
command, *args = [sys.executable if word == "PYTHON" else word for word in sys.argv[3:]]
environment = dict(os.environ)


async def make_calls(call: Callable[[str, Any], Awaitable[Any]]) -> None:
    for tool, arguments in calls:
        await call(tool, arguments)


async def main() -> None:
    if package == "fastmcp":
        from fastmcp import Client as FastClient
        from fastmcp.client.transports import StdioTransport

        transport = StdioTransport(command, args, env=environment)
        async with FastClient(transport) as fast:
            await fast.list_tools()
            await make_calls(lambda tool, given: fast.call_tool(tool, given, raise_on_error=False))
        return
    from mcp.client.stdio import StdioServerParameters, stdio_client

    parameters = StdioServerParameters(command=command, args=args, env=environment)
    if package == "mcp1":
        from mcp import ClientSession

        async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
            await session.initialize()
            await session.list_tools()
            await make_calls(session.call_tool)
        return
    from mcp import Client

    async with Client(stdio_client(parameters)) as client:
        await client.list_tools()
        await make_calls(client.call_tool)


asyncio.run(main())
