"""pydantic-ai: a capability.

agent = Agent("openai:gpt-5", tools=[...], capabilities=[TooltrailCapability(trail)])
"""

from asyncio import CancelledError
from typing import Any

from pydantic import ValidationError
from pydantic_ai import (
    ApprovalRequired,
    CallDeferred,
    DeferredToolRequests,
    DeferredToolResults,
    ModelResponse,
    RunContext,
)
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ModelRetry, ToolFailedError, ToolRetryError

from tooltrail.events import Decision
from tooltrail.integrations.running import Running, model_usage, read_json, why_rejected
from tooltrail.trail import Trail


class TooltrailCapability(AbstractCapability[Any]):
    """Records the tools of the agents that have it. One serves any number of agents and runs.

    A sub-agent needs it, too. The trace is the outermost run unless there is one already. A tool
    that asks for approval is recorded as awaiting it, and did not run.
    """

    def __init__(self, trail: Trail) -> None:
        self._running = Running(trail)

    def get_ordering(self) -> CapabilityOrdering:
        """Innermost: within the span of pydantic-ai's own instrumentation, so that both are one."""
        return CapabilityOrdering(position="innermost")

    async def wrap_tool_validate(
        self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        """Record that arguments were rejected: the tool does not run. Raises what it raises."""
        try:
            return await handler(args)
        except (ValidationError, ModelRetry) as error:
            with self._running.harmless():
                self._decide("rejectedArguments", call, _placed(ctx), why_rejected(error))
            raise

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        """Record the execution of one tool. Raises what the tool raises."""
        key = object()
        with self._running.harmless():
            placed = _placed(ctx)
            if ctx.tool_call_approved:
                self._decide("approved", call, placed)
            self._running.begin(key, call.tool_name, args, tool_call_id=call.tool_call_id, **placed)
        try:
            result = await handler(args)
        except (ApprovalRequired, CallDeferred):  # the tool did not do its work
            self._running.fail(key, CancelledError("deferred by the tool"))
            raise
        except (ToolRetryError, ToolFailedError) as error:
            self._running.fail(key, error.__cause__ or error)
            raise
        except BaseException as error:
            self._running.fail(key, error)
            raise
        self._running.end(key, result)
        return result

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """Record the calls that await an approval. Leaves the answer to others."""
        with self._running.harmless():
            for call in requests.approvals:
                self._decide("awaiting", call, _placed(ctx))
        return None

    def _decide(
        self, decision: Decision, call: Any, placed: dict[str, Any], reason: str | None = None
    ) -> None:
        key = call.tool_call_id
        about = {"args": read_json(call.args), "reason": reason, "tool_call_id": key, **placed}
        self._running.decide(key, call.tool_name, decision, **about)


def _placed(ctx: RunContext[Any]) -> dict[str, Any]:
    """Where a call belongs, and what the model's answer took that asked for it."""
    answers = (each for each in reversed(ctx.messages) if isinstance(each, ModelResponse))
    used = next((each.usage for each in answers), None)
    return {
        "model_usage": used and model_usage(used.input_tokens, used.output_tokens),
        "trace_id": ctx.run_id and ctx.run_id.replace("-", ""),
        "run_id": ctx.conversation_id,
        "context": {"agent": ctx.agent and ctx.agent.name, "model": ctx.model.model_name},
    }
