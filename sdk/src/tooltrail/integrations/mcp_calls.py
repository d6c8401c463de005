"""The calls of tools that one side of MCP connections sees, each with all its requests."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tooltrail.integrations.running import Running
from tooltrail.mcp_results import ResultDocument
from tooltrail.mcp_rounds import Rounds
from tooltrail.recording import Call
from tooltrail.trail import Trail


class McpCalls:
    """Records the requests that call tools, and those about the tasks that calls become.

    Results are recorded as MCP results. After one that asks for input or returns a task, the call
    is open: the next request with its `requestState`, or requests about its task, go on with it.
    `meant_by` says what to record of an exception that is raised.
    """

    def __init__(
        self, trail: Trail, meant_by: Callable[[BaseException], BaseException] = lambda error: error
    ) -> None:
        self.running = Running(trail)
        self._meant_by = meant_by
        self._rounds = Rounds()

    def resume(self, tool: str, params: dict[str, Any]) -> Call | None:
        """The open call that a request goes on with; None if it begins one."""
        return self._rounds.resume(tool, params)

    async def begin(
        self,
        tool: str,
        params: dict[str, Any],
        peers: Callable[[], Mapping[str, Any]],
        send: Callable[[Call | None], Awaitable[Any]],
    ) -> Any:
        """Record the request `send` as a new call. Raises what it raises."""
        with self.running.around(tool, params.get("arguments") or {}) as outcome:
            call = outcome.call
            with self.running.harmless():
                if call is not None:
                    call.mcp = peers()
            try:
                result = await send(call)
            except BaseException as error:
                outcome.error = self._meant_by(error)
                raise
            with self.running.harmless():
                document = ResultDocument.of(result)
                outcome.output = result if document is None else document
                if call is not None:
                    self._rounds.keep(call, tool, document)
        return result

    async def go_on(
        self, call: Call, tool: str, send: Callable[[Call | None], Awaitable[Any]]
    ) -> Any:
        """Record the request `send` as the next round of a call. Raises what it raises."""
        call.enter()
        try:
            result = await send(call)
        except BaseException as error:
            call.fail(self._meant_by(error))
            raise
        with self.running.harmless():
            document = ResultDocument.of(result)
            call.finish(result if document is None else document)
            self._rounds.keep(call, tool, document)
        return result

    def follow(self, params: Mapping[str, Any], method: str, result: Any) -> None:
        """Record what the answer to a request about a task says of its call."""
        with self.running.harmless():
            task_id = str(params.get("taskId"))
            self._rounds.follow(task_id, method, ResultDocument.of(result))
