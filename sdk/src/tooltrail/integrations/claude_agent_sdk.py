"""Claude Agent SDK: hooks, and the callback that permits tools.

options = record_tools(ClaudeAgentOptions(model="sonnet", ...), trail)
"""

from asyncio import CancelledError
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import UUID

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, PermissionResultDeny

from tooltrail.integrations.running import Running, read_json
from tooltrail.spool import SpoolFullError
from tooltrail.trail import Trail

_SUBAGENTS = ("Agent", "Task")
"""The names of the tool that starts a sub-agent."""


def record_tools(options: ClaudeAgentOptions, trail: Trail) -> ClaudeAgentOptions:
    """Options with which the tools of an agent and of its sub-agents are recorded.

    Works for built-in tools, those of MCP servers, and in-process ones. The trace is one prompt,
    unless there is a trace already; the session is the conversation. Requests to `can_use_tool`
    and its answers are decisions. A call that does not run, because a rule or another hook denies
    it, is a cancelled call: Claude Code runs hooks before it, and none afterwards.
    """
    hooks = _Hooks(trail, options.model)
    listened = {
        "PreToolUse": hooks.before,
        "PostToolUse": hooks.after,
        "PostToolUseFailure": hooks.failed,
        "SubagentStart": hooks.subagent_starts,
        "SubagentStop": hooks.stops,
        "Stop": hooks.stops,
    }
    merged = dict(options.hooks or {})
    for event, hook in listened.items():
        merged[event] = [*merged.get(event, ()), HookMatcher(hooks=[hook])]
    permit = options.can_use_tool
    return replace(
        options, hooks=merged, can_use_tool=None if permit is None else hooks.asking(permit)
    )


class _Hooks:
    """The hooks of one agent. Claude Code runs each hook in a task of its own."""

    def __init__(self, trail: Trail, model: str | None) -> None:
        self._running = Running(trail)
        self._model = model
        self._open: dict[str, tuple[str | None, dict[str, Any]]] = {}
        """Of each open call, the sub-agent that makes it, and where it belongs."""
        self._free: dict[str, str] = {}  # call without a sub-agent yet: the type it requests
        self._parents: dict[str, str] = {}  # sub-agent: the call that started it

    async def before(self, event: Any, tool_use_id: Any, context: Any) -> Any:
        with self._running.harmless():
            key, agent_id, args = event["tool_use_id"], event.get("agent_id"), event["tool_input"]
            placed = _placed(event, None if agent_id else self._model)
            self._open[key] = agent_id, placed
            if event["tool_name"] in _SUBAGENTS:
                self._free[key] = args.get("subagent_type") or "general-purpose"
            try:
                self._running.begin(
                    key,
                    _name(event["tool_name"]),
                    args,
                    parent=self._parents.get(agent_id or ""),
                    encloses=False,
                    tool_call_id=key,
                    **placed,
                )
            except SpoolFullError as error:  # Claude Code ignores exceptions of hooks
                self._forget(key)
                return _denial(str(error))
        return {}

    async def after(self, event: Any, tool_use_id: Any, context: Any) -> Any:
        self._forget(event["tool_use_id"])
        self._running.end(event["tool_use_id"], _value(event.get("tool_response")))
        return {}

    async def failed(self, event: Any, tool_use_id: Any, context: Any) -> Any:
        self._forget(event["tool_use_id"])
        text = str(event.get("error") or "the tool reports an error")
        error = CancelledError(text) if event.get("is_interrupt") else text
        self._running.fail(event["tool_use_id"], error)
        return {}

    async def subagent_starts(self, event: Any, tool_use_id: Any, context: Any) -> Any:
        """Note which call started a sub-agent, if only one can have: Claude Code does not say."""
        asking = [key for key, kind in self._free.items() if kind == event.get("agent_type")]
        if len(asking) == 1:
            self._parents[event["agent_id"]] = asking[0]
            del self._free[asking[0]]
        return {}

    async def stops(self, event: Any, tool_use_id: Any, context: Any) -> Any:
        """Cancel what an agent leaves: calls that were denied, or stopped with it."""
        agent_id = event.get("agent_id")
        self._parents.pop(agent_id or "", None)
        for key in [key for key, (agent, _) in self._open.items() if agent == agent_id]:
            self._cancel(key, "the agent stopped without a result")
        return {}

    def asking(self, permit: Any) -> Any:
        """The callback that permits tools, with its answers recorded."""

        async def ask(tool: str, args: Any, context: Any) -> Any:
            key = context.tool_use_id
            _, placed = self._open.get(key, (None, {}))
            about = {"args": args, "tool_call_id": key, **placed}
            self._running.decide(
                key, _name(tool), "awaiting", reason=context.decision_reason, **about
            )
            answer = await permit(tool, args, context)
            if isinstance(answer, PermissionResultDeny):
                self._running.decide(key, _name(tool), "denied", reason=answer.message, **about)
                self._cancel(key, "denied")
            else:
                self._running.decide(key, _name(tool), "approved", **about)
            return answer

        return ask

    def _cancel(self, key: str, why: str) -> None:
        self._forget(key)
        self._running.fail(key, CancelledError(why))

    def _forget(self, key: str) -> None:
        self._open.pop(key, None)
        self._free.pop(key, None)


def _denial(why: str) -> dict[str, Any]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": why,
        }
    }


def _placed(event: Any, model: str | None) -> dict[str, Any]:
    """Where a call belongs."""
    prompt = event.get("prompt_id")
    return {
        "trace_id": None if prompt is None else UUID(prompt).hex,
        "run_id": event["session_id"],
        "context": {"agent": event.get("agent_type"), "model": model},
    }


def _name(tool: str) -> str:
    """The tool's own name: Claude Code puts that of its MCP server before it."""
    return tool.split("__", 2)[2] if tool.startswith("mcp__") and tool.count("__") > 1 else tool


def _value(response: Any) -> Any:
    """The value in the content blocks that Claude Code makes of an MCP tool's result."""
    blocks: Iterable[Any] = response if isinstance(response, list) else ()
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    return read_json(texts[0]) if len(texts) == 1 and isinstance(texts[0], str) else response
