"""Agno: tool hooks, one for sync and one for async runs.

agent = Agent(model=..., tools=[...], tool_hooks=[tooltrail_hook(trail)])
"""

from collections.abc import Callable
from inspect import isasyncgen, isawaitable, isgenerator
from typing import Any

from tooltrail.integrations.running import Running
from tooltrail.trail import Trail


def tooltrail_hook(trail: Trail) -> Callable[..., Any]:
    """Make a hook that records the tools of the agents that have it, in `run` and `arun`.

    The conversation is Agno's session. Raises what the tool raises.
    """
    running = Running(trail)

    def record(
        name: str,
        func: Callable[..., Any],
        arguments: dict[str, Any],
        agent: Any = None,
        run_context: Any = None,
    ) -> Any:
        key = object()
        with running.harmless():
            running.begin(key, name, dict(arguments), **_placed(agent, run_context))
        try:
            result = func(**arguments)
        except BaseException as error:
            running.fail(key, error)
            raise
        if isawaitable(result):
            return _finish(key, result)
        if isgenerator(result) or isasyncgen(result):
            return running.follow(key, result)
        running.end(key, result)
        return result

    async def _finish(key: object, result: Any) -> Any:
        try:
            awaited = await result
        except BaseException as error:
            running.fail(key, error)
            raise
        if isgenerator(awaited) or isasyncgen(awaited):
            return running.follow(key, awaited)
        running.end(key, awaited)
        return awaited

    return record


def _placed(agent: Any, run_context: Any) -> dict[str, Any]:
    """Where a call belongs."""
    if run_context is None:
        return {"context": {"agent": agent and agent.name}}
    return {
        "trace_id": run_context.run_id.replace("-", ""),
        "run_id": run_context.session_id,
        "context": {
            "agent": agent and agent.name,
            "model": getattr(getattr(agent, "model", None), "id", None),
            "user": run_context.user_id,
        },
    }
