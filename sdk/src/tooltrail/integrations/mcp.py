"""MCP's Python SDK, version 2: a middleware of servers.

server = MCPServer("weather", middleware=[TooltrailMiddleware(trail)])
"""

from typing import Any

from mcp_types import CallToolResult

from tooltrail.integrations.running import Running
from tooltrail.trail import Trail


class TooltrailMiddleware:
    """Records the tools that a server runs, with the client and the protocol of the request.

    The result is recorded as an MCP result: one that reports an error is a failed call, its
    structured content is what the tool returned. MCP names neither agent nor model.
    """

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._running = Running(trail)

    async def __call__(self, ctx: Any, call_next: Any) -> Any:
        """Record the request if it calls a tool. Raises what the server raises."""
        params = ctx.params or {}
        if ctx.method != "tools/call" or not isinstance(params.get("name"), str):
            return await call_next(ctx)
        with self._running.around(params["name"], params.get("arguments") or {}) as outcome:
            with self._running.harmless():
                self._trail.current().mcp = _peers(ctx)
            result = await call_next(ctx)
            with self._running.harmless():
                is_plain = isinstance(result, dict) and "content" in result
                outcome.output = CallToolResult.model_validate(result) if is_plain else result
        return result


def _peers(ctx: Any) -> dict[str, Any]:
    stated = ctx.session.client_params
    peers: dict[str, Any] = {"protocol_version": ctx.protocol_version}
    if stated is not None:
        client = stated.client_info
        peers["client"] = {"name": client.name, "version": client.version}
    return peers
