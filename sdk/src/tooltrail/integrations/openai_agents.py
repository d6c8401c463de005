"""OpenAI Agents: run hooks, and a trace processor for what hooks do not receive.

tooltrail = TooltrailHooks(trail)
await Runner.run(agent, question, hooks=tooltrail)
"""

from asyncio import CancelledError
from typing import Any, NamedTuple

from agents import FunctionSpanData, RunHooks, TracingProcessor, add_trace_processor
from agents.tracing import get_current_span, get_current_trace

from tooltrail.events import DeciderKind, Decision
from tooltrail.integrations.running import Running, model_usage, read_json
from tooltrail.trail import Trail

_ABSENT = object()


class TooltrailHooks(RunHooks[Any]):
    """Records the tools of the runs that it is given to. One serves any number of runs.

    Adds a processor to the framework's tracing, which has failures, cancellations and which run
    is in which tool; it sees no more than the framework's `trace_include_sensitive_data` allows.
    With tracing off, a tool that raises is a call without an end. Give it to `as_tool(hooks=…)`
    too: otherwise a sub-agent's calls have the times and arguments of its spans only.

    Calls that await an approval, their answers, and refusals of input guardrails are decisions.
    An answer is recorded by the hooks that saw its request.
    """

    def __init__(self, trail: Trail) -> None:
        self._running = Running(trail)
        self._groups: dict[str, str] = {}  # trace: its group, which is the conversation
        self._parents: dict[str, str | None] = {}  # open span: the span around it
        self._results: dict[Any, Any] = {}  # open call: what its tool returned
        self._requested: dict[str, list[_Requested]] = {}  # open turn: what its model asked for
        self._usage: dict[str, dict[str, int] | None] = {}  # open turn: the tokens of its answer
        self._awaiting: dict[str, tuple[str, _Requested]] = {}  # call id: its trace, and the call
        add_trace_processor(_Processor(self))

    async def on_llm_start(self, context: Any, agent: Any, *rest: Any) -> None:
        """Record refusals of a person: a run that goes on tells the model of them."""
        with self._running.harmless():
            span = get_current_span()
            trace_id = None if span is None else span.trace_id
            for call_id, (trace, requested) in [*self._awaiting.items()]:
                if trace == trace_id and context.is_tool_approved(requested.tool, call_id) is False:
                    del self._awaiting[call_id]
                    why = context.get_rejection_message(requested.tool, call_id)
                    self._decide("denied", requested, trace, by="person", reason=why)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        """Note which calls the model asks for: the spans of tools do not have their ids."""
        with self._running.harmless():
            turn = get_current_span()
            if turn is not None:
                used, tools = response.usage, {tool.name: tool for tool in agent.tools}
                self._usage[turn.span_id] = model_usage(used.input_tokens, used.output_tokens)
                self._requested[turn.span_id] = [
                    _Requested(agent, each.name, each.call_id, each.arguments, tools.get(each.name))
                    for each in response.output
                    if getattr(each, "type", None) == "function_call"
                ]

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """Record that a tool is about to run."""
        with self._running.harmless():
            key, span = _key(context)
            self._approved(getattr(context, "tool_call_id", None))
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
            run_id=self._group(trace),
            model_usage=None if span is None else self._usage.get(span.parent_id),
            **members,
        )

    def _group(self, trace_id: str | None) -> str | None:
        """The conversation. A run that goes on in another one's trace begins no trace."""
        return self._groups.get(trace_id or "") or getattr(get_current_trace(), "group_id", None)

    def _approved(self, call_id: str | None) -> None:
        trace, requested = self._awaiting.pop(call_id or "", (None, None))
        if requested is not None:
            self._decide("approved", requested, trace, by="person")

    def _decide(
        self,
        decision: Decision,
        requested: "_Requested",
        trace_id: str | None,
        *,
        by: DeciderKind | None = None,
        reason: str | None = None,
    ) -> None:
        guardrails = getattr(requested.known, "tool_input_guardrails", None) or []
        name = guardrails[0].get_name() if by == "guardrail" and len(guardrails) == 1 else None
        self._running.decide(
            requested.call_id,
            requested.tool,
            decision,
            args=read_json(requested.arguments),
            by=by and {"kind": by, **({"id": name} if name else {})},
            reason=reason,
            tool_call_id=requested.call_id,
            trace_id=trace_id and trace_id.removeprefix("trace_"),
            run_id=self._group(trace_id),
            context={"agent": requested.agent.name, "model": _model_of(requested.agent)},
        )

    def _refuses(self, span: Any) -> bool:
        """Record why a tool's span ended without a start, if we know who asked for the tool."""
        data, error = span.span_data, span.error
        requested = next(
            (
                each
                for each in self._requested.get(span.parent_id or "", ())
                if each.tool == data.name and data.input in (None, each.arguments)
            ),
            None,
        )
        if requested is None:
            return span.parent_id in self._requested and error is None
        self._requested[span.parent_id].remove(requested)
        if error is not None:
            text = str((error.get("data") or {}).get("error"))
            if "guardrail" not in text:
                return False
            self._decide("denied", requested, span.trace_id, by="guardrail", reason=text)
        elif data.output is not None:
            self._decide(
                "denied", requested, span.trace_id, by="guardrail", reason=str(data.output)
            )
        elif getattr(requested.known, "needs_approval", True):
            self._awaiting[requested.call_id] = span.trace_id, requested
            self._decide("awaiting", requested, span.trace_id)
        return True

    def _span_ends(self, span: Any) -> None:
        data, result = span.span_data, self._results.pop(span.span_id, _ABSENT)
        self._parents.pop(span.span_id, None)
        self._requested.pop(span.span_id, None)
        self._usage.pop(span.span_id, None)
        if not isinstance(data, FunctionSpanData):
            return
        if not self._running.is_open(span.span_id):
            if self._refuses(span) or (data.output is None and span.error is None):
                return  # it did not run, or without content: not a call we know of
            self._begin(span.span_id, data.name, read_json(data.input) or {}, span)
            result = data.output
        if span.error is not None:
            message = (span.error.get("data") or {}).get("error")
            text = result if isinstance(result, str) else message
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


class _Requested(NamedTuple):
    """A call that a model asked for. `known` is its tool, if the agent has it itself."""

    agent: Any
    tool: str
    call_id: str
    arguments: str
    known: Any


def _key(context: Any) -> tuple[Any, Any]:
    """The key of a tool's call, and its span if there is one."""
    span = get_current_span()
    if span is None or not isinstance(span.span_data, FunctionSpanData) or span.parent_id is None:
        return ("call", getattr(context, "tool_call_id", id(context))), None
    return span.span_id, span


def _model_of(agent: Any) -> str | None:
    return agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", None)
