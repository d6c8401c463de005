"""A server of the package that its argument names: mcp (2), mcp1 or fastmcp."""

import sys
from typing import Any


def make() -> Any:
    match sys.argv[1]:
        case "mcp":
            from mcp.server import MCPServer

            return MCPServer("weather")
        case "mcp1":
            from mcp.server.fastmcp import FastMCP as First

            return First("weather")
    from fastmcp import FastMCP

    return FastMCP("weather")


server = make()


@server.tool()
def get_weather(city: str) -> str:
    """The weather of a city."""
    if city == "Atlantis":
        raise ValueError("no such city")
    return f"22.5 in {city}"


server.run("stdio")
