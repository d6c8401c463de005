"""OpenAI Agents: run hooks, and a trace processor for what the hooks are not told.

tooltrail = TooltrailHooks(trail)
await Runner.run(agent, question, hooks=tooltrail)
"""

from asyncio import CancelledError
from typing import Any

from agents import FunctionSpanData, RunHooks, TracingProcessor, add_trace_processor
from agents.tracing import get_current_span

from tooltrail.integrations.running import Running, read_json
from tooltrail.trail import Trail

_ABSENT = object()


class TooltrailHooks(RunHooks[Any]):
    """Records the tools of the runs that it is given to. One serves any number of runs.

    Adds a processor to the framework's tracing, which tells failures, cancellations and which run
    is in which tool; it sees no more than the framework's `trace_include_sensitive_data` allows.
    With tracing off, a tool that raises is a call without an end. Give it to `as_tool(hooks=…)`
    too: otherwise a sub-agent's calls have the times and arguments of its spans only.
    """

    def __init__(self, trail: Trail) -> None:
        self._running = Running(trail)
        self._groups: dict[str, str] = {}  # trace: its group, which is the conversation
        self._parents: dict[str, str | None] = {}  # open span: the span around it
        self._results: dict[Any, Any] = {}  # open call: what its tool returned
        add_trace_processor(_Processor(self))

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """Record that a tool is about to run."""
        with self._running.harmless():
            key, span = _key(context)
            text = getattr(context, "tool_arguments", None)
            self._begin(
                key,
                tool.name,
                read_json(text) if text else {},
                span,
                tool_call_id=getattr(context, "tool_call_id", None),
                context={"agent": agent.name, "model": _model_of(agent)},
            )

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """Note what the tool returned; the end of its span says whether that is an error."""
        with self._running.harmless():
            key, span = _key(context)
            if span is None:
                self._running.end(key, read_json(result))
            else:
                self._results[key] = result

    def _begin(self, key: Any, tool: str, args: Any, span: Any, **members: Any) -> None:
        around = None if span is None else span.parent_id
        while around is not None and not self._running.is_open(around):
            around = self._parents.get(around)
        trace = None if span is None else span.trace_id
        self._running.begin(
            key,
            tool,
            args,
            parent=around,
            encloses=False,
            trace_id=trace and trace.removeprefix("trace_"),
            run_id=self._groups.get(trace or ""),
            **members,
        )

    def _span_ends(self, span: Any) -> None:
        data, result = span.span_data, self._results.pop(span.span_id, _ABSENT)
        self._parents.pop(span.span_id, None)
        if not isinstance(data, FunctionSpanData):
            return
        if not self._running.is_open(span.span_id):
            if data.output is None and span.error is None:
                return  # asked for an approval, or without content: not a call we know of
            self._begin(span.span_id, data.name, read_json(data.input) or {}, span)
            result = data.output
        if span.error is not None:
            told = (span.error.get("data") or {}).get("error")
            text = result if isinstance(result, str) else told
            self._running.fail(span.span_id, str(text or span.error["message"]))
        elif result is _ABSENT:
            self._running.fail(span.span_id, CancelledError("the run was stopped"))
        else:
            self._running.end(span.span_id, read_json(result))


class _Processor(TracingProcessor):
    """Hears of the spans. Their names are those of the framework's interface."""

    def __init__(self, hooks: TooltrailHooks) -> None:
        self._hooks = hooks

    def on_trace_start(self, trace: Any) -> None:
        if getattr(trace, "group_id", None):
            self._hooks._groups[trace.trace_id] = trace.group_id

    def on_trace_end(self, trace: Any) -> None:
        self._hooks._groups.pop(trace.trace_id, None)

    def on_span_start(self, span: Any) -> None:
        self._hooks._parents[span.span_id] = span.parent_id

    def on_span_end(self, span: Any) -> None:
        with self._hooks._running.harmless():
            self._hooks._span_ends(span)

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


def _key(context: Any) -> tuple[Any, Any]:
    """The key of a tool's call, and its span if there is one."""
    span = get_current_span()
    if span is None or not isinstance(span.span_data, FunctionSpanData) or span.parent_id is None:
        return ("call", getattr(context, "tool_call_id", id(context))), None
    return span.span_id, span


def _model_of(agent: Any) -> str | None:
    return agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", None)
