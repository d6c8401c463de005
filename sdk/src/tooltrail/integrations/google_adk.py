"""Google ADK: a plugin.

runner = Runner(agent=agent, plugins=[TooltrailPlugin(trail)], ...)
"""

from asyncio import CancelledError
from typing import Any

from google.adk.plugins.base_plugin import BasePlugin

from tooltrail.events import DeciderKind, Decision
from tooltrail.integrations.running import Running, model_usage
from tooltrail.trail import Trail


class TooltrailPlugin(BasePlugin):
    """Records the tools of a runner, also those of agents in an `AgentTool`.

    The trace is the outermost invocation, the conversation the session. Changes no arguments and
    no results. Put it last: what a plugin before it answers did not run, and is not recorded.

    A tool that requires a confirmation is awaiting it, then approved or denied. One that asks for
    it while it runs is cancelled and awaiting. ADK asks a tool several times whether it requires
    one; so does this plugin.
    """

    def __init__(self, trail: Trail, name: str = "tooltrail") -> None:
        super().__init__(name=name)
        self._running = Running(trail)
        self._models: dict[str, str] = {}  # agent's name: the model it asked last

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Note the model that asks for the next tools."""
        with self._running.harmless():
            if llm_request.model:
                self._models[callback_context.agent_name] = llm_request.model

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
        """Record that a tool is about to run, or that ADK will not run it yet."""
        with self._running.harmless():
            answer = tool_context.tool_confirmation
            if answer is None:
                if await tool.check_require_confirmation(tool_args, tool_context) is True:
                    self._decide("awaiting", tool, tool_args, tool_context)
                    return
            elif answer.confirmed:
                self._decide("approved", tool, tool_args, tool_context, by="person")
            else:
                self._decide("denied", tool, tool_args, tool_context, by="person")
                if await tool.check_require_confirmation(tool_args, tool_context) is True:
                    return
            key, placed = _key(tool_context), self._placed(tool_context)
            self._running.begin(key, tool.name, dict(tool_args), **placed)

    async def after_tool_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any
    ) -> None:
        """Record what the tool returned. One that asks for a confirmation did not do its work."""
        key = _key(tool_context)
        with self._running.harmless():
            asks = (
                tool_context.function_call_id in tool_context.actions.requested_tool_confirmations
            )
            if asks and self._running.is_open(key):
                self._running.fail(key, CancelledError("the tool asks for a confirmation"))
                self._decide("awaiting", tool, tool_args, tool_context)
        self._running.end(key, result)

    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any, error: BaseException
    ) -> None:
        """Record what the tool raised. A cancellation comes here, too."""
        self._running.fail(_key(tool_context), error)

    def _decide(
        self,
        decision: Decision,
        tool: Any,
        tool_args: Any,
        tool_context: Any,
        by: DeciderKind | None = None,
    ) -> None:
        """Record a decision; the answer comes in another invocation of the same session."""
        self._running.decide(
            (tool_context.session.id, tool_context.function_call_id),
            tool.name,
            decision,
            args=dict(tool_args),
            by=by and {"kind": by},
            **self._placed(tool_context),
        )

    def _placed(self, tool_context: Any) -> dict[str, Any]:
        """Where a call belongs."""
        agent = tool_context.agent_name
        return {
            "trace_id": tool_context.invocation_id,
            "run_id": tool_context.session.id,
            "tool_call_id": tool_context.function_call_id,
            "model_usage": _usage(tool_context),
            "context": {
                "agent": agent,
                "model": self._models.get(agent),
                "principal": tool_context.user_id,
            },
        }


def _key(tool_context: Any) -> tuple[Any, Any]:
    return tool_context.invocation_id, tool_context.function_call_id


def _usage(tool_context: Any) -> dict[str, int] | None:
    """The tokens of the model's answer that asked for the call."""
    for event in reversed(tool_context.session.events):
        if any(each.id == tool_context.function_call_id for each in event.get_function_calls()):
            used = event.usage_metadata
            return used and model_usage(used.prompt_token_count, used.candidates_token_count)
    return None
