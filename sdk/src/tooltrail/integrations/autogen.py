"""AutoGen: a function tool. AutoGen has no hooks around tools.

agent = AssistantAgent("concierge", model, tools=[TooltrailTool(get_weather, trail=trail)])
"""

from collections.abc import Callable
from inspect import getdoc
from typing import Any

from autogen_core.tools import FunctionTool

from tooltrail.integrations.running import Running
from tooltrail.trail import Trail


class TooltrailTool(FunctionTool):
    """AutoGen's `FunctionTool` that records its calls, with what the function returned.

    `agent` is the name of the agent that has it, because AutoGen gives a tool neither agent, model
    nor conversation: `Trail.trace` around a run gives its calls one trace.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        description: str | None = None,
        *,
        trail: Trail,
        agent: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            func, getdoc(func) or "" if description is None else description, **options
        )
        self._running = Running(trail)
        self._agent = agent

    async def run(self, args: Any, cancellation_token: Any) -> Any:
        """Record one call. Raises what the function raises."""
        given: dict[str, Any] = {}
        with self._running.harmless():
            given = args.model_dump(mode="json")
        context = {"agent": self._agent}
        with self._running.around(self.name, given, context=context) as outcome:
            outcome.output = await super().run(args, cancellation_token)
        return outcome.output
