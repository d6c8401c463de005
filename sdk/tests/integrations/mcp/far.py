"""A server over stdio, or over HTTP at MCP_PORT. Its tool `echo` makes a call of its own."""

import os
import signal
import sys
from typing import Any

from mcp.server import MCPServer
from tooltrail import Trail
from tooltrail.integrations.mcp import TooltrailMiddleware

trail = Trail()
server: Any = MCPServer("far", middleware=[TooltrailMiddleware(trail)])


@server.tool()
def echo(value: Any) -> dict[str, Any]:
    with trail.record("inner", {}) as recorded:
        recorded.output = {"value": value}
    return {"value": value}


@server.tool()
def boom() -> str:
    raise ValueError("boom")


signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # so that what was recorded is sent
port = os.environ.get("MCP_PORT")
if port:
    server.run("streamable-http", host="127.0.0.1", port=int(port))
else:
    server.run()
