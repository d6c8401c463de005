"""A server of the package that its argument names: mcp (2), mcp1 (any 1) or fastmcp.

python weather.py PACKAGE [TRANSPORT PORT], where TRANSPORT is http or sse; else standard streams.
"""

import sys
from typing import Any

package, *listening = sys.argv[1:]
transport, port = (listening[0], int(listening[1])) if listening else ("stdio", 0)


def make() -> Any:
    match package:
        case "mcp":
            from mcp.server import MCPServer

            return MCPServer("weather")
        case "mcp1":
            from mcp.server.fastmcp import FastMCP as First

            return First("weather", host="127.0.0.1", port=port)
    from fastmcp import FastMCP

    return FastMCP("weather")


server = make()


@server.tool()
def get_weather(city: str) -> str:
    """The weather of a city."""
    if city == "Atlantis":
        raise ValueError("no such city")
    return f"22.5 in {city}"


if transport == "http":
    transport = "streamable-http"
if not listening or package == "mcp1":
    server.run(transport)
else:
    server.run(transport, host="127.0.0.1", port=port)
