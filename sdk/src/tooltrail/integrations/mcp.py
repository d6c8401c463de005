"""MCP's Python SDK, version 2: a middleware of servers.

server = MCPServer("weather", middleware=[TooltrailMiddleware(trail)])
"""

from typing import Any

from tooltrail.integrations.running import Running
from tooltrail.mcp_results import ResultDocument
from tooltrail.mcp_rounds import OF_TASKS, Rounds
from tooltrail.recording import Call
from tooltrail.trail import Trail


class TooltrailMiddleware:
    """Records the tools that a server runs, with the client and the protocol of the request.

    The result is recorded as an MCP result: one that reports an error is a failed call, its
    structured content is what the tool returned. MCP names neither agent nor model.

    After a result that asks for input or returns a task, the call is open. The next request with
    its `requestState`, or requests about its task, go on with it, in this process.
    """

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._running = Running(trail)
        self._rounds = Rounds()

    async def __call__(self, ctx: Any, call_next: Any) -> Any:
        """Record the request if it calls a tool. Raises what the server raises."""
        params = ctx.params or {}
        if ctx.method in OF_TASKS:
            result = await call_next(ctx)
            with self._running.harmless():
                document = ResultDocument.of(result)
                self._rounds.follow(str(params.get("taskId")), ctx.method, document)
            return result
        tool = params.get("name")
        if ctx.method != "tools/call" or not isinstance(tool, str):
            return await call_next(ctx)
        waiting = self._rounds.resume(tool, params)
        if waiting is not None:
            return await self._continue(waiting, tool, ctx, call_next)
        with self._running.around(tool, params.get("arguments") or {}) as outcome:
            call = self._trail.current()
            with self._running.harmless():
                call.mcp = _peers(ctx)
            result = await call_next(ctx)
            with self._running.harmless():
                document = ResultDocument.of(result)
                outcome.output = result if document is None else document
                self._rounds.keep(call, tool, document)
        return result

    async def _continue(self, call: Call, tool: str, ctx: Any, call_next: Any) -> Any:
        """The next round of a call that asked for input."""
        call.enter()
        try:
            result = await call_next(ctx)
        except BaseException as error:
            call.fail(error)
            raise
        with self._running.harmless():
            document = ResultDocument.of(result)
            call.finish(result if document is None else document)
            self._rounds.keep(call, tool, document)
        return result


def _peers(ctx: Any) -> dict[str, Any]:
    stated = ctx.session.client_params
    peers: dict[str, Any] = {"protocol_version": ctx.protocol_version}
    if stated is not None:
        client = stated.client_info
        peers["client"] = {"name": client.name, "version": client.version}
    return peers
