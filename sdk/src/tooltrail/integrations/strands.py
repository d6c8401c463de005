"""Strands Agents: a hook provider.

agent = Agent(tools=[...], hooks=[TooltrailHooks(trail)])
"""

from asyncio import CancelledError
from typing import Any
from uuid import uuid4

from strands.hooks import (
    AfterInvocationEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeToolCallEvent,
    HookProvider,
    HookRegistry,
)

from tooltrail.integrations.running import Running, model_usage, read_json
from tooltrail.trail import Trail


class TooltrailHooks(HookProvider):
    """Records the tools of the agents that have it. A sub-agent needs it, too.

    The trace is the agent's invocation, unless there is one already. A call that another hook
    cancels is denied; if that hook comes after this one, it has begun and is cancelled, too. So is
    a tool that is running when its invocation ends.
    """

    def __init__(self, trail: Trail) -> None:
        self._running = Running(trail)
        self._invocations: dict[int, tuple[str, set[str]]] = {}  # agent: its trace, its open calls

    def register_hooks(self, registry: HookRegistry, **rest: Any) -> None:
        """Register for the start and the end of tools, and of the invocations around them."""
        registry.add_callback(BeforeInvocationEvent, self._begins)
        registry.add_callback(AfterInvocationEvent, self._ends)
        registry.add_callback(BeforeToolCallEvent, self._before)
        registry.add_callback(AfterToolCallEvent, self._after)

    def _begins(self, event: BeforeInvocationEvent) -> None:
        self._invocations[id(event.agent)] = uuid4().hex, set()

    def _ends(self, event: AfterInvocationEvent) -> None:
        with self._running.harmless():
            agent = id(event.agent)
            _, left = self._invocations.pop(agent, ("", set()))
            for tool_call_id in left:
                self._running.fail((agent, tool_call_id), CancelledError("the agent was stopped"))

    def _before(self, event: BeforeToolCallEvent) -> None:
        if event.cancel_tool:
            return
        with self._running.harmless():
            use = event.tool_use
            _, left = self._invocations.get(id(event.agent), (None, set()))
            left.add(use["toolUseId"])
            self._running.begin(_key(event), use["name"], use["input"], **self._placed(event))

    def _after(self, event: AfterToolCallEvent) -> None:
        with self._running.harmless():
            use, result, key = event.tool_use, event.result, _key(event)
            invocation = self._invocations.get(id(event.agent))
            if invocation is not None:
                invocation[1].discard(use["toolUseId"])
            why = event.cancel_message
            if why is not None:
                about = {"args": use["input"], "reason": why, **self._placed(event)}
                self._running.decide(key, use["name"], "denied", **about)
                self._running.fail(key, CancelledError(why))
            elif event.exception is not None:
                self._running.fail(key, event.exception)
            elif result["status"] == "error":
                self._running.fail(key, str(_value(result)))
            else:
                self._running.end(key, _value(result))

    def _placed(self, event: Any) -> dict[str, Any]:
        """Where a call belongs."""
        agent = event.agent
        trace_id, _ = self._invocations.get(id(agent), (None, set()))
        return {
            "trace_id": trace_id,
            "tool_call_id": event.tool_use["toolUseId"],
            "run_id": getattr(getattr(agent, "_session_manager", None), "session_id", None),
            "context": {"agent": agent.name, "model": _model_of(agent)},
            "model_usage": _usage(agent),
        }


def _key(event: Any) -> tuple[int, str]:
    return id(event.agent), event.tool_use["toolUseId"]


def _model_of(agent: Any) -> str | None:
    config = agent.model.get_config()
    return config.get("model_id") if isinstance(config, dict) else None


def _usage(agent: Any) -> dict[str, int] | None:
    """The tokens of the model's answer that asked for the tools that run now."""
    answer = agent.messages[-1] if getattr(agent, "messages", None) else {}
    used = answer.get("metadata", {}).get("usage")
    return used and model_usage(used.get("inputTokens"), used.get("outputTokens"))


def _value(result: Any) -> Any:
    """The value in the blocks that Strands makes of a tool's result."""
    blocks = result.get("content") or []
    if len(blocks) != 1:
        return blocks
    (block,) = blocks
    return block["json"] if "json" in block else read_json(block.get("text", block))
