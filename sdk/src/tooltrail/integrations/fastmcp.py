"""FastMCP's servers: a middleware.

server = FastMCP("weather", middleware=[TooltrailMiddleware(trail)])
"""

from typing import Any

from fastmcp.server.middleware import Middleware

from tooltrail.integrations.mcp_claims import believe
from tooltrail.integrations.running import Running
from tooltrail.mcp_results import ResultDocument
from tooltrail.trail import Trail


class TooltrailMiddleware(Middleware):
    """Records the tools that a server runs, once each: give it to the outermost server only.

    A mounted tool has the name that clients call it by. The result is recorded as an MCP result:
    one that reports an error is a failed call, its structured content is what the tool returned.
    FastMCP names neither agent nor model. A call that the client has recorded with the same API key
    is not recorded again: what the tool does is nested in the client's call.
    """

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._running = Running(trail)

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        """Record one call of a tool. Raises what the tool raises."""
        message = context.message
        claim = None
        with self._running.harmless():
            claim = believe(self._trail, _params(context))
        if claim is not None:
            with self._trail.trace(claim.trace_id, parent_invocation_id=claim.invocation_id):
                return await call_next(context)
        with self._running.around(message.name, message.arguments or {}) as outcome:
            with self._running.harmless():
                self._trail.current().mcp = _peers(context.fastmcp_context)
            result = await call_next(context)
            with self._running.harmless():
                outcome.output = _document(result)
        return result


def _params(context: Any) -> dict[str, Any]:
    """The parameters of the request; the message has a `_meta` of its own."""
    message, request = context.message, context.fastmcp_context.request_context
    return {
        "name": message.name,
        "arguments": message.arguments,
        "requestState": getattr(message, "request_state", None),
        "_meta": None if request is None else request.meta,
    }


def _document(result: Any) -> ResultDocument:
    dumped = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    document = ResultDocument(content=dumped["content"], isError=result.is_error)
    if result.structured_content is not None:
        document["structuredContent"] = dumped["structured_content"]
    return document


def _peers(context: Any) -> dict[str, Any]:
    peers = {"server": {"name": context.fastmcp.name, "version": context.fastmcp.version}}
    if (stated := context.session.client_params) is not None:
        client = stated.client_info
        peers["client"] = {"name": client.name, "version": client.version}
    return peers
