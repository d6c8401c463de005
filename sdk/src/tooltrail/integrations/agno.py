"""Agno: a tool hook, for sync and async runs.

agent = Agent(model=..., tools=[...], tool_hooks=[TooltrailHook(trail)])
"""

from collections.abc import Callable
from inspect import isasyncgen, isawaitable, isgenerator
from typing import Any

from tooltrail.events import Decision
from tooltrail.integrations.running import Running, known
from tooltrail.trail import Trail


class TooltrailHook:
    """Records the tools of the agents that have it, in `run` and `arun`. Raises what they raise.

    The conversation is Agno's session. A tool that requires a confirmation is recorded when it
    runs; `approvals` records what comes before.
    """

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self._running = Running(trail)
        self._approved: dict[str, list[Any]] = {}  # run: calls that a person has approved

    def __call__(
        self,
        name: str,
        func: Callable[..., Any],
        arguments: dict[str, Any],
        agent: Any = None,
        run_context: Any = None,
    ) -> Any:
        """Run and record one call. Agno knows by their names what to give the parameters."""
        key, running = object(), self._running
        with running.harmless():
            placed = _placed(agent, run_context)
            placed["tool_call_id"] = self._approved_id(name, arguments, run_context)
            running.begin(key, name, dict(arguments), **placed)
        try:
            result = func(**arguments)
        except BaseException as error:
            running.fail(key, error)
            raise
        if isawaitable(result):
            return self._finish(key, result)
        if isgenerator(result) or isasyncgen(result):
            return running.follow(key, result)
        running.end(key, result)
        return result

    async def _finish(self, key: object, result: Any) -> Any:
        try:
            awaited = await result
        except BaseException as error:
            self._running.fail(key, error)
            raise
        if isgenerator(awaited) or isasyncgen(awaited):
            return self._running.follow(key, awaited)
        self._running.end(key, awaited)
        return awaited

    def approvals(self, run: Any) -> None:
        """Record which calls of a paused run await a confirmation, and which a person answered.

        Agno asks no hook about a tool that waits. So give this the output of each run that is
        paused, and again when its requirements are confirmed or rejected, before `continue_run`.
        """
        with self._running.harmless():
            for each in run.tools or ():
                if each.requires_confirmation:
                    self._decide(run, each)

    def _decide(self, run: Any, requested: Any) -> None:
        decision: Decision = "awaiting"
        if requested.confirmed is not None:
            decision = "approved" if requested.confirmed else "denied"
        if decision == "approved":
            self._approved.setdefault(run.run_id, []).append(requested)
        context = known({"agent": run.agent_name, "model": run.model})
        with self._trail.trace(_trace_of(run), run_id=run.session_id, context=context):
            self._trail.decision(
                requested.tool_name,
                decision,
                args=requested.tool_args,
                by=None if decision == "awaiting" else {"kind": "person"},
                reason=requested.confirmation_note,
                tool_call_id=requested.tool_call_id,
            )

    def _approved_id(self, name: str, arguments: Any, run_context: Any) -> str | None:
        """The model's id of a call that was approved. Of others Agno does not tell it reliably:

        `run_context.messages` stays that of an earlier turn after tools that ran at once.
        """
        approved = self._approved.get(run_context.run_id, []) if run_context is not None else []
        for each in approved:
            if (each.tool_name, each.tool_args or {}) == (name, arguments):
                approved.remove(each)
                return str(each.tool_call_id)
        return None


def _placed(agent: Any, run_context: Any) -> dict[str, Any]:
    """Where a call belongs."""
    if run_context is None:
        return {"context": {"agent": agent and agent.name}}
    return {
        "trace_id": _trace_of(run_context),
        "run_id": run_context.session_id,
        "context": {
            "agent": agent and agent.name,
            "model": getattr(getattr(agent, "model", None), "id", None),
            "principal": run_context.user_id,
        },
    }


def _trace_of(run: Any) -> str:
    return str(run.run_id.replace("-", ""))
