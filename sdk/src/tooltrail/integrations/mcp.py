"""MCP's Python SDK, version 2: a middleware of servers.

server = MCPServer("weather", middleware=[TooltrailMiddleware(trail)])
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

from tooltrail.integrations.running import Running
from tooltrail.mcp_results import ResultDocument, read_result
from tooltrail.recording import Call
from tooltrail.trail import Trail

_OF_TASKS: Final = ("tasks/get", "tasks/cancel", "tasks/result")
_OPEN_MAX: Final = 1000


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
        self._open: dict[tuple[str, str], _Open] = {}
        """By tool and request state, or by "" and task id."""

    async def __call__(self, ctx: Any, call_next: Any) -> Any:
        """Record the request if it calls a tool. Raises what the server raises."""
        params = ctx.params or {}
        if ctx.method in _OF_TASKS:
            result = await call_next(ctx)
            with self._running.harmless():
                self._follow(str(params.get("taskId")), ctx.method, result)
            return result
        tool = params.get("name")
        if ctx.method != "tools/call" or not isinstance(tool, str):
            return await call_next(ctx)
        waiting = self._open.pop((tool, str(params.get("requestState"))), None)
        if waiting is not None and waiting.call is not None:
            return await self._continue(waiting.call, tool, ctx, call_next)
        with self._running.around(tool, params.get("arguments") or {}) as outcome:
            call = self._trail.current()
            with self._running.harmless():
                call.mcp = _peers(ctx)
            result = await call_next(ctx)
            with self._running.harmless():
                document = ResultDocument.of(result)
                outcome.output = result if document is None else document
                self._keep(call, tool, document)
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
            self._keep(call, tool, document)
        return result

    def _keep(self, call: Call, tool: str, document: ResultDocument | None) -> None:
        """Remember a call that has not ended."""
        result = None if document is None else read_result(document)
        if document is None or result is None or result.call_state in (None, "cancelled"):
            return
        task_id = (document.get("task") or document).get("taskId")
        which = document.get("requestState") if task_id is None else task_id
        if isinstance(which, str):
            key = (tool if task_id is None else "", which)
            self._open[key] = _Open(None if key in self._open else call, result.call_state)
        if len(self._open) > _OPEN_MAX:
            del self._open[next(iter(self._open))]

    def _follow(self, task_id: str, method: str, result: Any) -> None:
        """Record what a task does, and its end."""
        task, document = self._open.get(("", task_id)), ResultDocument.of(result)
        if task is None or task.call is None or document is None:
            return
        ended = _end_of(document, method)
        if ended is not None:
            del self._open["", task_id]
            task.call.finish(ended)
            return
        is_asking = document.get("status") == "input_required"
        state: Literal["waiting", "working"] = "waiting" if is_asking else "working"
        if state != task.state:
            task.state = state
            task.call.report(state)


@dataclass(slots=True)
class _Open:
    """A call that has not ended."""

    call: Call | None
    """None if two calls have the same request state: nobody knows whose the next round is."""
    state: str | None


def _end_of(document: ResultDocument, method: str) -> ResultDocument | None:
    """The end of a call in an answer about its task; None if it is not known yet."""
    if method == "tasks/result":
        return document
    match document.get("status"), document.get("result"):
        case "failed" | "cancelled", _:
            return ResultDocument(task=document)
        case "completed", dict(result):
            return ResultDocument(result)
    return None


def _peers(ctx: Any) -> dict[str, Any]:
    stated = ctx.session.client_params
    peers: dict[str, Any] = {"protocol_version": ctx.protocol_version}
    if stated is not None:
        client = stated.client_info
        peers["client"] = {"name": client.name, "version": client.version}
    return peers
