"""Google ADK: a plugin.

runner = Runner(agent=agent, plugins=[TooltrailPlugin(trail)], ...)
"""

from typing import Any

from google.adk.plugins.base_plugin import BasePlugin

from tooltrail.integrations.running import Running
from tooltrail.trail import Trail


class TooltrailPlugin(BasePlugin):
    """Records the tools of a runner, also those of agents in an `AgentTool`.

    The trace is the outermost invocation, the conversation the session. Changes no arguments and
    no results. Put it last: what a plugin before it answers did not run, and is not recorded.
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
        """Record that a tool is about to run."""
        with self._running.harmless():
            agent = tool_context.agent_name
            self._running.begin(
                _key(tool_context),
                tool.name,
                dict(tool_args),
                trace_id=tool_context.invocation_id,
                run_id=tool_context.session.id,
                tool_call_id=tool_context.function_call_id,
                context={
                    "agent": agent,
                    "model": self._models.get(agent),
                    "user": tool_context.user_id,
                },
            )

    async def after_tool_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any, result: Any
    ) -> None:
        """Record what the tool returned."""
        self._running.end(_key(tool_context), result)

    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: Any, tool_context: Any, error: BaseException
    ) -> None:
        """Record what the tool raised. A cancellation comes here, too."""
        self._running.fail(_key(tool_context), error)


def _key(tool_context: Any) -> tuple[Any, Any]:
    return tool_context.invocation_id, tool_context.function_call_id
