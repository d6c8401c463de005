"""smolagents: the tools of an agent, replaced. smolagents has no hooks around tools.

agent = ToolCallingAgent(tools=[...], model=model, name="concierge")
record_tools(agent, trail)
"""

from copy import copy
from functools import wraps
from threading import Lock
from typing import Any
from uuid import uuid4

from smolagents import ActionStep, AgentToolCallError, MultiStepAgent, TaskStep, Tool
from smolagents.tools import validate_tool_arguments

from tooltrail.integrations.running import Running
from tooltrail.trail import Trail


def record_tools(agent: MultiStepAgent, trail: Trail) -> None:
    """Record the tools that an agent has, its managed agents, and theirs.

    Replaces the tools by copies that record their calls; a tool that is added later is not
    recorded. The trace is the agent's run, unless there is one already. Arguments that smolagents
    rejects are a decision. smolagents has neither a conversation nor tool call ids.
    """
    recorder = _Recorder(agent, trail)
    for name, tool in agent.tools.items():
        if isinstance(tool, Tool) and name != "final_answer":  # which only ends the run
            agent.tools[name] = recorder.recorded(tool)
    for name, managed in agent.managed_agents.items():
        record_tools(managed, trail)
        agent.managed_agents[name] = _Managed(managed, recorder)
    agent.step_callbacks.register(ActionStep, recorder.refused)


class _Recorder:
    """Records the tools of one agent."""

    def __init__(self, agent: Any, trail: Trail) -> None:
        self._agent = agent
        self._running = Running(trail)
        self._lock = Lock()  # tools that the model asks for together run in threads
        self._run: tuple[Any, str] = (None, uuid4().hex)  # the run's first step, and its trace

    def recorded(self, tool: Any) -> Any:
        """A copy of the tool that records its calls."""
        recording = copy(tool)
        forward = recording.forward

        @wraps(forward)
        def record(*args: Any, **kwargs: Any) -> Any:
            return self.around(recording, forward, args, kwargs)

        recording.forward = record
        return recording

    def around(self, tool: Any, work: Any, args: Any, kwargs: Any) -> Any:
        """Record one call of a tool or managed agent. Raises what it raises."""
        given: dict[str, Any] = {}
        with self._running.harmless():
            given = {**dict(zip(tool.inputs, args, strict=False)), **kwargs}
        with self._running.around(tool.name, given, **self._placed()) as outcome:
            outcome.output = work(*args, **kwargs)
        return outcome.output

    def refused(self, step: ActionStep, **rest: Any) -> None:
        """Record which of the calls that a step asked for had arguments that were refused."""
        if not isinstance(step.error, AgentToolCallError) or step.model_output_message is None:
            return
        with self._running.harmless():
            for requested in step.model_output_message.tool_calls or ():
                name, args = requested.function.name, requested.function.arguments
                tool = self._agent.tools.get(name) or self._agent.managed_agents.get(name)
                if tool is not None and _refusal(tool, args) == step.error.message:
                    self._running.decide(
                        requested.id,
                        name,
                        "rejectedArguments",
                        args=args,
                        reason=step.error.message,
                        tool_call_id=requested.id,
                        **self._placed(),
                    )

    def _placed(self) -> dict[str, Any]:
        """Where a call belongs."""
        agent = self._agent
        context = {"agent": agent.name, "model": getattr(agent.model, "model_id", None)}
        tasks = [step for step in agent.memory.steps if isinstance(step, TaskStep)]
        with self._lock:
            if tasks and tasks[-1] is not self._run[0]:
                self._run = tasks[-1], uuid4().hex
            return {"trace_id": self._run[1], "context": context}


class _Managed:
    """A managed agent, as the agent above it sees and calls it."""

    def __init__(self, agent: Any, recorder: _Recorder) -> None:
        self._agent = agent
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._agent, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._recorder.around(self._agent, self._agent, args, kwargs)


def _refusal(tool: Any, args: Any) -> str | None:
    try:
        validate_tool_arguments(tool, args)
    except (ValueError, TypeError) as error:
        return str(error)
    return None
