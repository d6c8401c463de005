"""CrewAI: hooks of the process, around the tools of all its crews and agents.

record_tools(trail)
"""

from asyncio import CancelledError
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

from crewai.events import ToolUsageErrorEvent, ToolUsageFinishedEvent
from crewai.events.stream_context import add_stream_sink, reset_stream_sinks
from crewai.events.types.hook_events import HookDispatchedEvent
from crewai.hooks.dispatch import HookAborted, InterceptionPoint, register, unregister
from crewai.tools import ToolFailure
from pydantic import ValidationError

from tooltrail.events import Decision
from tooltrail.integrations.running import Running, why_rejected
from tooltrail.spool import SpoolFullError
from tooltrail.trail import Trail

_run: ContextVar[tuple[str, int]] = ContextVar("tooltrail_crewai_run")
"""The trace of the outermost crew or flow that runs, and how many run in it."""


def record_tools(trail: Trail) -> Callable[[], None]:
    """Record the tools of all crews, flows and agents of this process. Returns what ends that.

    The trace is the outermost crew or flow, unless there is one already. Arguments that a tool's
    schema rejects, a tool that is used up, and a call that an earlier hook blocks are decisions.
    Call it after your own hooks are registered: a call that a later one blocks is cancelled.
    """
    hooks = _Hooks(trail)
    points = {
        InterceptionPoint.EXECUTION_START: hooks.run_starts,
        InterceptionPoint.EXECUTION_END: hooks.run_ends,
        InterceptionPoint.PRE_TOOL_CALL: hooks.before,
        InterceptionPoint.POST_TOOL_CALL: hooks.after,
    }
    for point, hook in points.items():
        register(point, hook)

    def stop() -> None:
        for point, hook in points.items():
            unregister(point, hook)

    return stop


class _Hooks:
    """A call's key is its dictionary of arguments: both hooks get the same one."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._running = Running(trail)
        self._tokens: dict[int, Any] = {}  # call that `before` has seen: how to stop listening
        self._errors: dict[str, BaseException] = {}  # open call's id: what its tool raised

    def run_starts(self, context: Any) -> None:
        trace_id, depth = _run.get((uuid4().hex, 0))
        _run.set((trace_id if depth else uuid4().hex, depth + 1))

    def run_ends(self, context: Any) -> None:
        trace_id, depth = _run.get(("", 1))
        _run.set((trace_id, max(depth - 1, 0)))

    def before(self, context: Any) -> None:
        if context.tool is None:
            return  # the model asked for a tool that does not exist
        key = id(context.tool_input)
        self._tokens[key] = None
        with self._running.harmless():
            refused = _refusal(context)
            if refused is not None:
                self._decide(*refused, context)
                return
            try:
                self._running.begin(key, context.tool_name, context.tool_input, **_placed(context))
            except SpoolFullError as error:  # CrewAI ignores other exceptions of hooks
                raise HookAborted(str(error), source=self.before) from error
            self._tokens[key] = add_stream_sink(self._hear)

    def after(self, context: Any) -> None:
        with self._running.harmless():
            key, result = id(context.tool_input), context.raw_tool_result
            if context.tool is None:
                return
            if key not in self._tokens:
                self._decide("denied", "blocked by a hook", context)
                return
            token = self._tokens.pop(key)
            if token is None:
                return
            reset_stream_sinks(token)
            error = self._errors.pop(self._trail.current().id, None)
            if error is not None:
                self._running.fail(key, error)
            elif isinstance(result, ToolFailure):
                self._running.fail(key, result.message)
            else:
                self._running.end(key, result)

    def _hear(self, source: Any, event: Any) -> None:
        """Note what a tool raised. CrewAI calls this where it happens, in the tool's context."""
        with self._running.harmless():
            call_id = self._trail.current().id
            if isinstance(event, ToolUsageErrorEvent):
                error = event.error
                raised = error if isinstance(error, BaseException) else RuntimeError(str(error))
                self._errors[call_id] = raised
            elif isinstance(event, ToolUsageFinishedEvent):  # it was tried again
                self._errors.pop(call_id, None)
            elif isinstance(event, HookDispatchedEvent) and _blocks(event):
                self._errors[call_id] = CancelledError(event.abort_reason)

    def _decide(self, decision: Decision, reason: str, context: Any) -> None:
        tool, args = context.tool_name, context.tool_input
        self._running.decide(object(), tool, decision, args=args, reason=reason, **_placed(context))


def _blocks(event: Any) -> bool:
    is_of_tool = event.interception_point == InterceptionPoint.PRE_TOOL_CALL
    return is_of_tool and bool(event.outcome == "aborted")


def _refusal(context: Any) -> tuple[Decision, str] | None:
    """Why CrewAI will not run the tool."""
    tool = getattr(context.tool, "_original_tool", None) or context.tool
    if tool.max_usage_count is not None and tool.current_usage_count >= tool.max_usage_count:
        return "overBudget", f"used {tool.max_usage_count} times"
    if tool.args_schema is None:
        return None
    try:
        tool.args_schema.model_validate(context.tool_input)
    except ValidationError as error:
        return "rejectedArguments", why_rejected(error)
    return None


def _placed(context: Any) -> dict[str, Any]:
    """Where a call belongs."""
    agent = context.agent
    trace_id, depth = _run.get(("", 0))
    return {
        "trace_id": trace_id if depth else None,
        "context": {
            "agent": getattr(agent, "role", None),
            "model": getattr(getattr(agent, "llm", None), "model", None),
        },
    }
