"""The context of an ADK tool: adds trace and invocation to its events, which lack both.

Owns pairing an executor's start with its end, and nesting the handler's calls in it.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import Token
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tooltrail.current_span import current_span
from tooltrail.events import GuardReport
from tooltrail.scope import Scope, current_scope, enter_scope, leave_scope, make_scope
from tooltrail.tools.tool import Tool

_Running = tuple[str, str | None, Token[Scope | None]]


class Turn:
    """The context that `Tool.executor` takes. Made by `Trail.context`; `id` is the turn's id.

    Events are models that can be dumped in snake case, or mappings in snake case.
    """

    def __init__(
        self,
        turn_id: str,
        emit: Callable[[dict[str, Any]], None],
        ids: Callable[[], str],
        version_of: Callable[[Tool], str | None],
        clock: Callable[[], datetime] | None,
    ) -> None:
        self.id = turn_id
        self._emit = emit
        self._ids = ids
        self._version_of = version_of
        self._clock = clock
        self._versions: dict[str, str] = {}
        # The events of identical parallel calls are equal, so any of their starts may be paired
        # with any of their ends.
        self._running: dict[tuple[Any, Any], list[_Running]] = {}

    def bind_tool(self, tool: Tool, /) -> None:
        """Announce the tool to the registry, and note its version for its events.

        Raises ToolNameTaken and ToolContractRefused with `register="strict"`.
        """
        version = self._version_of(tool)
        if version is not None:
            self._versions[tool.name] = version

    def emit_tool_execution_start(self, event: Any, /) -> None:
        """Record that the tool is about to run. Never raises."""
        members = _members(event)
        outer = current_scope()
        scope = outer or make_scope(self.id, None, {})
        invocation_id = self._ids()
        span = current_span()
        token = enter_scope(replace(scope, parent_id=invocation_id, call=None, span=span))
        key = members.get("call_id"), members.get("started_at")
        self._running.setdefault(key, []).append((invocation_id, scope.parent_id, token))
        if span is not None and span != scope.span:
            members = {"traceparent": span, **members}
        self._send("toolExecutionStart", members, scope, invocation_id)

    def emit_tool_execution_end(self, event: Any, /) -> None:
        """Record that the tool has run. Never raises."""
        members = _members(event)
        scope = current_scope() or make_scope(self.id, None, {})
        key = members.get("call_id"), members.get("started_at")
        running = self._running.get(key)
        if not running:  # an end without start: the server pairs it, or shows it as it is
            self._send("toolExecutionEnd", members, scope, self._ids())
            return
        invocation_id, parent_id, token = running.pop()
        if not running:
            del self._running[key]
        with suppress(ValueError, RuntimeError):  # ended in another task than it started in
            leave_scope(token)
        self._send("toolExecutionEnd", members, replace(scope, parent_id=parent_id), invocation_id)

    def emit_tool_call_decision(self, event: Any, /) -> None:
        """Record a decision about a call of a tool. Never raises.

        Without its own `decided_at` the decision is made now.
        """
        members = _members(event)
        now = datetime.now(UTC) if self._clock is None else self._clock()
        members.setdefault("decided_at", now.isoformat())
        version = self._versions.get(members.get("tool_name", ""))
        if version is not None:
            members.setdefault("definition_digest", version)
        scope = current_scope() or make_scope(self.id, None, {})
        self._send("toolCallDecision", members, scope, members.pop("invocation_id", self._ids()))

    def _send(self, kind: str, members: dict[str, Any], scope: Scope, invocation_id: str) -> None:
        placed = {
            "type": kind,
            "invocation_id": invocation_id,
            "trace_id": scope.trace_id,
            **scope.members,
            **members,
        }
        if (version := self._versions.get(members.get("tool_name", ""))) is not None:
            placed.setdefault("tool_version", version)
        if scope.parent_id is not None:
            placed["parent_invocation_id"] = scope.parent_id
        self._emit(placed)


def _members(event: Any) -> dict[str, Any]:
    if isinstance(event, Mapping):
        return dict(event)
    members: dict[str, Any] = event.model_dump(
        by_alias=False, exclude_unset=True, exclude={"guard": {"received"}}
    )
    guard = getattr(event, "guard", None)
    if isinstance(guard, GuardReport) and "received" in guard.model_fields_set:
        # Not dumped: the tool may have returned anything, also what pydantic cannot dump.
        members["guard"]["received"] = guard.received
    return members
