"""A client of the package that its first argument names: lists the tools, then makes the calls.

python drive.py PACKAGE CALLS (URL | COMMAND …), where the word PYTHON in the command is this
interpreter. A URL that ends in /sse: HTTP with SSE of 2024-11-05.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

package, calls = sys.argv[1], json.loads(sys.argv[2])
command, *args = [sys.executable if word == "PYTHON" else word for word in sys.argv[3:]]
is_url, is_sse = command.startswith("http:"), command.endswith("/sse")
environment = dict(os.environ)


async def make_calls(call: Callable[[str, Any], Awaitable[Any]]) -> None:
    for tool, arguments in calls:
        await call(tool, arguments)


async def drive_fastmcp() -> None:
    from fastmcp import Client
    from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport

    transport: Any = StdioTransport(command, args, env=environment)
    if is_url:
        transport = SSETransport(command) if is_sse else StreamableHttpTransport(command)
    async with Client(transport) as client:
        await client.list_tools()
        await make_calls(lambda tool, given: client.call_tool(tool, given, raise_on_error=False))


def connect() -> Any:
    """The streams of the package mcp."""
    if is_sse:
        from mcp.client.sse import sse_client

        return sse_client(command)
    if is_url:
        from mcp.client.streamable_http import streamablehttp_client

        return streamablehttp_client(command)
    from mcp.client.stdio import StdioServerParameters, stdio_client

    return stdio_client(StdioServerParameters(command=command, args=args, env=environment))


async def drive_mcp1() -> None:
    from mcp import ClientSession

    async with connect() as streams, ClientSession(*streams[:2]) as session:
        await session.initialize()
        await session.list_tools()
        await make_calls(session.call_tool)


async def drive_mcp() -> None:
    from mcp import Client

    async with Client(command if is_url and not is_sse else connect()) as client:
        await client.list_tools()
        await make_calls(client.call_tool)


asyncio.run({"fastmcp": drive_fastmcp, "mcp1": drive_mcp1, "mcp": drive_mcp}[package]())
