"""LangChain and LangGraph: a callback handler.

agent.invoke(question, {"callbacks": [TooltrailHandler(trail)]})
"""

import sys
from asyncio import CancelledError
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import ToolMessage

from tooltrail.events import DeciderKind, Decision
from tooltrail.integrations.running import Running, model_usage, read_json
from tooltrail.trail import Trail

_REFUSALS: dict[str, tuple[Decision, DeciderKind]] = {
    "HumanInTheLoopMiddleware": ("denied", "person"),
    "ToolCallLimitMiddleware": ("overBudget", "policy"),
}
"""Middlewares that answer calls instead of the tool, after the model has asked for them."""


class TooltrailHandler(BaseCallbackHandler):
    """Records the tools of the runs that it is a callback of. One serves any number of runs.

    The trace is the outermost run, the agent its `lc_agent_name`, and the conversation the
    `thread_id` or `session_id` of the configuration. Raises nothing into the run.

    What `HumanInTheLoopMiddleware` asks a person, the answers, and what `ToolCallLimitMiddleware`
    refuses are decisions. A tool that interrupts the run did not do its work: it is cancelled.
    """

    run_inline = True  # in the context of the tool, so that calls inside it are nested

    def __init__(self, trail: Trail) -> None:
        self._running = Running(trail)
        self._runs: dict[UUID, _Run] = {}
        self._models: dict[UUID, str] = {}  # outermost run: the model that was asked last
        self._usage: dict[UUID, dict[str, dict[str, int]]] = {}
        """Of each outermost run, by the calls that were asked for: the tokens of the answer."""
        self._awaiting: dict[tuple[str | None, str], dict[str, Any]] = {}
        """Of each call that awaits an approval, by thread and call id: its tool and arguments."""

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        name: str | None = None,
        **rest: Any,
    ) -> None:
        """Note which run this run belongs to, and what it was given."""
        outermost = self._around(parent_run_id) or run_id
        self._runs[run_id] = _Run(outermost, name or "", inputs, metadata or {})

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **rest: Any) -> None:
        """Record the calls that a middleware refused, and forget the run."""
        run = self._runs.pop(run_id, None)
        self._forget(run_id)
        if run is None or not isinstance(outputs, Mapping):
            return
        with self._running.harmless():
            for message in outputs.get("messages") or ():
                if isinstance(message, ToolMessage):
                    self._refused(run, message)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **rest: Any) -> None:
        """Record what an interrupt asks a person, and forget the run."""
        run = self._runs.pop(run_id, None)
        self._forget(run_id)
        with self._running.harmless():
            if run is not None and _interrupts(error):
                for requested in _requested_in(error, run.calls):
                    if (run.thread, requested["id"]) not in self._awaiting:
                        self._awaiting[run.thread, requested["id"]] = requested
                        self._decide("awaiting", run, requested)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **rest: Any,
    ) -> None:
        """Note the model that asks for the next tools."""
        outermost, name = self._around(parent_run_id), (metadata or {}).get("ls_model_name")
        if outermost is not None and name:
            self._models[outermost] = name

    def on_llm_end(
        self, response: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **rest: Any
    ) -> None:
        """Note the tokens of an answer that asks for tools."""
        with self._running.harmless():
            outermost = self._around(parent_run_id)
            for answer in (each for several in response.generations for each in several):
                message = getattr(answer, "message", None)
                used = getattr(message, "usage_metadata", None)
                usage = used and model_usage(used["input_tokens"], used["output_tokens"])
                if outermost is not None and usage:
                    of_calls = {each["id"]: usage for each in getattr(message, "tool_calls", ())}
                    self._usage.setdefault(outermost, {}).update(of_calls)

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        name: str | None = None,
        tool_call_id: str | None = None,
        **rest: Any,
    ) -> None:
        """Record that a tool is about to run."""
        with self._running.harmless():
            outermost = self._around(parent_run_id) or run_id
            run = _Run(outermost, "", None, metadata or {}, tool_call_id)
            self._runs[run_id] = run
            requested = self._awaiting.pop((run.thread, tool_call_id or ""), None)
            if requested is not None:
                self._decide("approved", run, requested, by="person")
            with _inside(_span_of(run_id) or _span_of(parent_run_id)):
                self._running.begin(
                    run_id,
                    name or (serialized or {}).get("name") or "tool",
                    input_str if inputs is None else inputs,
                    tool_call_id=tool_call_id,
                    model_usage=self._usage.get(outermost, {}).pop(tool_call_id or "", None),
                    **self._placed(run),
                )

    def on_tool_end(self, output: Any, *, run_id: UUID, **rest: Any) -> None:
        """Record what the tool returned. A `ToolMessage` of an error fails the call."""
        with self._running.harmless():
            self._name_call(run_id)
        with self._running.harmless():
            message = output if isinstance(output, ToolMessage) else None
            if message is None:
                self._running.end(run_id, output)
            elif message.status == "error":
                self._running.fail(run_id, str(message.text))
            else:
                result = message.content if message.artifact is None else message.artifact
                self._running.end(run_id, read_json(result))

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **rest: Any) -> None:
        """Record what the tool raised."""
        with self._running.harmless():
            self._name_call(run_id)
        interrupted = CancelledError("the tool interrupted the run")
        self._running.fail(run_id, interrupted if _interrupts(error) else error)

    def _name_call(self, run_id: UUID) -> None:
        """Forget a tool's run. Its span gets the id of the call, which the server joins it by."""
        run, span = self._runs.pop(run_id, None), _span_of(run_id)
        if run is not None and run.tool_call_id and span is not None:
            span.set_attribute("tool_call.id", run.tool_call_id)

    def _refused(self, run: "_Run", message: ToolMessage) -> None:
        """Record a refusal, if the message answers a call that no tool has begun."""
        call_id = message.tool_call_id
        requested = self._awaiting.pop((run.thread, call_id), None)
        decision, by = _REFUSALS.get(run.middleware, ("denied", "person"))
        if requested is None and run.middleware in _REFUSALS:
            requested = next((each for each in run.calls if each["id"] == call_id), None)
        if requested is not None:
            self._decide(decision, run, requested, by=by, reason=str(message.text))

    def _decide(
        self,
        decision: Decision,
        run: "_Run",
        requested: dict[str, Any],
        *,
        by: DeciderKind | None = None,
        reason: str | None = None,
    ) -> None:
        with _inside(_span_of(run.outermost)):
            self._running.decide(
                (run.thread, requested["id"]),
                requested["name"],
                decision,
                args=requested["args"],
                by=by and {"kind": by},
                reason=reason,
                tool_call_id=requested["id"],
                **self._placed(run),
            )

    def _placed(self, run: "_Run") -> dict[str, Any]:
        """Where a call belongs."""
        return {
            "trace_id": run.outermost.hex,
            "run_id": run.thread,
            "context": {
                "agent": run.metadata.get("lc_agent_name"),
                "model": self._models.get(run.outermost),
            },
        }

    def _forget(self, run_id: UUID) -> None:
        self._models.pop(run_id, None)
        self._usage.pop(run_id, None)

    def _around(self, run_id: UUID | None) -> UUID | None:
        around = None if run_id is None else self._runs.get(run_id)
        return run_id if around is None else around.outermost


class _Run(NamedTuple):
    """A run that has begun and not ended."""

    outermost: UUID
    name: str
    inputs: Any
    metadata: dict[str, Any]
    tool_call_id: str | None = None

    @property
    def thread(self) -> str | None:
        """The conversation."""
        return self.metadata.get("thread_id") or self.metadata.get("session_id")

    @property
    def middleware(self) -> str:
        """The class of the middleware whose hook this run is."""
        return self.name.partition(".")[0].partition("[")[0]

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls that the latest message asks for, with `id`, `name` and `args`."""
        messages = self.inputs.get("messages") if isinstance(self.inputs, Mapping) else None
        return getattr(messages[-1], "tool_calls", []) if messages else []


def _span_of(run_id: UUID | None) -> Any:
    """OpenInference's span of a run; None if there is none (yet), or no OpenInference."""
    module = sys.modules.get("openinference.instrumentation.langchain")
    if module is None or run_id is None:
        return None
    try:
        instrumentor = module.LangChainInstrumentor()
        is_on = instrumentor.is_instrumented_by_opentelemetry  # it prints a warning if it is off
        span = instrumentor.get_span(run_id) if is_on else None
        return span if isinstance(span, sys.modules["opentelemetry.trace"].Span) else None
    except Exception:  # another version of it: the call is recorded without a span
        return None


def _inside(span: Any) -> AbstractContextManager[Any]:
    """Makes a span the current one, which OpenInference does not do with its spans."""
    if span is None:
        return nullcontext()
    use_span: Any = sys.modules["opentelemetry.trace"].use_span
    kept: AbstractContextManager[Any] = use_span(
        span, record_exception=False, set_status_on_exception=False
    )
    return kept


def _interrupts(error: BaseException) -> bool:
    """Whether an error is LangGraph's way to wait for input; LangChain alone has none."""
    return any(each.__name__ == "GraphInterrupt" for each in type(error).__mro__)


def _requested_in(error: BaseException, calls: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The calls about which an interrupt of `HumanInTheLoopMiddleware` asks."""
    left = list(calls)
    for interrupt in error.args[0] if error.args else ():
        value = interrupt.value
        if not isinstance(value, Mapping):
            continue
        if value.get("type") == "tool_approval":
            yield {"id": value["tool_call_id"], "name": value["name"], "args": value["args"]}
        for request in value.get("action_requests") or ():
            about = request["name"], request["args"]
            matching = next((each for each in left if (each["name"], each["args"]) == about), None)
            if matching is not None:
                left.remove(matching)
                yield matching
