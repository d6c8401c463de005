"""MCP's Python SDK, version 2: a middleware of servers, and the calls of clients.

server = MCPServer("weather", middleware=[TooltrailMiddleware(trail)])

async with Client("http://localhost:8000/mcp") as client:
    record_client(trail, client)
"""

from collections.abc import Mapping
from typing import Any

from tooltrail.integrations.mcp_calls import McpCalls
from tooltrail.integrations.mcp_claims import MEMBER, believe, make_claim
from tooltrail.mcp_rounds import OF_TASKS
from tooltrail.recording import Call
from tooltrail.trail import Trail

_TIMED_OUT = -32001
_CLOSED = -32000


class TooltrailMiddleware:
    """Records the tools that a server runs, with the client and the protocol of the request.

    The result is recorded as an MCP result: one that reports an error is a failed call, its
    structured content is what the tool returned. MCP names neither agent nor model.

    After a result that asks for input or returns a task, the call is open. The next request with
    its `requestState`, or requests about its task, go on with it, in this process.

    A call that the client has recorded with the same API key is not recorded again: what the tool
    does is nested in the client's call.
    """

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._calls = McpCalls(trail)

    async def __call__(self, ctx: Any, call_next: Any) -> Any:
        """Record the request if it calls a tool. Raises what the server raises."""
        params = ctx.params or {}
        if ctx.method in OF_TASKS:
            result = await call_next(ctx)
            self._calls.follow(params, ctx.method, result)
            return result
        tool = params.get("name")
        if ctx.method != "tools/call" or not isinstance(tool, str):
            return await call_next(ctx)

        async def run(call: Call | None) -> Any:
            return await call_next(ctx)

        waiting = self._calls.resume(tool, params)
        if waiting is not None:
            return await self._calls.go_on(waiting, tool, run)
        claim = None
        with self._calls.running.harmless():
            claim = believe(self._trail, params)
        if claim is None:
            return await self._calls.begin(tool, params, lambda: _peers(ctx), run)
        with self._trail.trace(claim.trace_id, parent_invocation_id=claim.invocation_id):
            return await call_next(ctx)


def record_client[C](trail: Trail, client: C) -> C:
    """Record the tools that a connected client calls: a `Client`, FastMCP's, or a `ClientSession`.

    Returns the client, whose session is changed in place. Calls are recorded as a server's are,
    also what becomes of tasks that this client asks for. A server that records with the same API
    key does not record them again. Raises SpoolFullError instead of a call that cannot be
    recorded, with `when_full="raise"`. Raises TypeError for a client of another kind.
    """
    session: Any = getattr(client, "session", client)
    if not all(hasattr(session, name) for name in ("send_request", "server_info")):
        raise TypeError("record_client needs a connected client of mcp 2 or FastMCP 4")
    if not isinstance(getattr(session.send_request, "__self__", None), _ClientCalls):
        session.send_request = _ClientCalls(trail, session).send_request
    return client


class _ClientCalls:
    """The requests of one session."""

    def __init__(self, trail: Trail, session: Any) -> None:
        self._trail = trail
        self._session = session
        self._send = session.send_request
        self._calls = McpCalls(trail, _meant_by)

    async def send_request(self, request: Any, *args: Any, **options: Any) -> Any:
        """Send a request, and record it if it calls a tool or is about a task of one."""
        method = getattr(request, "method", None)
        if method != "tools/call" and method not in OF_TASKS:
            return await self._send(request, *args, **options)
        params: dict[str, Any] = {}
        with self._calls.running.harmless():
            params = request.params.model_dump(by_alias=True, mode="json", exclude_none=True)
        if method in OF_TASKS:
            result = await self._send(request, *args, **options)
            self._calls.follow(params, str(method), result)
            return result
        tool = str(params.get("name"))
        waiting = self._calls.resume(tool, params)

        async def send(call: Call | None) -> Any:
            claiming = request
            with self._calls.running.harmless():
                if call is not None and call.is_kept:
                    claiming = _with_meta(request, make_claim(self._trail, call, params))
            return await self._send(claiming, *args, **options)

        if waiting is not None:
            return await self._calls.go_on(waiting, tool, send)
        return await self._calls.begin(tool, params, self._peers, send)

    def _peers(self) -> dict[str, Any]:
        session = self._session
        stated = {"client": session._client_info, "server": session.server_info}
        peers: dict[str, Any] = {
            side: {"name": party.name, "version": party.version}
            for side, party in stated.items()
            if party is not None
        }
        if session.protocol_version:
            peers["protocol_version"] = session.protocol_version
        return peers


class McpError(Exception):
    """The error that a server answered a call with, or that the connection reports."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message or "the request failed")
        self.code = str(code)


def _with_meta(request: Any, claim: Mapping[str, str]) -> Any:
    meta = {**(request.params.meta or {}), MEMBER: claim}
    return request.model_copy(update={"params": request.params.model_copy(update={"meta": meta})})


def _meant_by(error: BaseException) -> BaseException:
    """What an error of the protocol means, whose own text is a tuple; any other as it is."""
    code, message = getattr(error, "code", None), getattr(error, "message", None)
    if type(error).__name__ != "MCPError" or not isinstance(code, int):
        return error
    if code == _TIMED_OUT and "timed out" in str(message):
        return TimeoutError(message)
    return ConnectionResetError(message) if code == _CLOSED else McpError(code, str(message))


def _peers(ctx: Any) -> dict[str, Any]:
    stated = ctx.session.client_params
    peers: dict[str, Any] = {"protocol_version": ctx.protocol_version}
    if stated is not None:
        client = stated.client_info
        peers["client"] = {"name": client.name, "version": client.version}
    return peers
