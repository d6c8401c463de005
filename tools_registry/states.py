"""State changes of a published version: deprecate, retire, restore, make current.

The version itself never changes: a change is an entry in the tool's history. All functions need
the tenant's scope.
"""

from collections.abc import Sequence
from typing import Any

from tools_registry.changes import (
    Publisher,
    lock_tool,
    record_change,
    record_changes,
    version_states,
)
from tools_registry.models import ChangeKind, State, Tool, ToolChange, ToolVersion


class StateError(Exception):
    """The change is not possible in the version's state."""


def state_of(version: ToolVersion) -> State:
    """The state of a version. One query."""
    states = version_states(version.tenant_id, [version.tool_id])
    return states.get((version.tool_id, version.number), State.PUBLISHED)


def deprecate(version: ToolVersion, by: Publisher, *, reason: str = "") -> None:
    """Mark a version as "should no longer be used". Raises StateError unless it is published."""
    _enter(version, by, ChangeKind.DEPRECATED, reason, {State.PUBLISHED})


def retire(version: ToolVersion, by: Publisher, *, reason: str = "") -> None:
    """Mark a version as no longer used; retiring the current version retires the tool.

    Raises StateError if it is already retired.
    """
    _enter(version, by, ChangeKind.RETIRED, reason, {State.PUBLISHED, State.DEPRECATED})


def restore(version: ToolVersion, by: Publisher, *, reason: str = "") -> None:
    """Undo deprecating or retiring a version. Raises StateError if it is neither."""
    _enter(version, by, ChangeKind.RESTORED, reason, {State.DEPRECATED, State.RETIRED})


def enter_states(
    tool: Tool, entered: Sequence[tuple[int, ChangeKind]], by: Publisher, *, reason: str = ""
) -> None:
    """Record state changes of several versions, given by number, in this order.

    The caller has locked the tool and checked that each change is possible. Five statements,
    however many changes.
    """
    lock_tool(tool)
    versions = ToolVersion.objects.filter(tenant_id=tool.tenant_id, tool_id=tool.pk)
    digests = dict(versions.values_list("number", "digest"))
    nothing_more: dict[str, Any] = {"details": {}}
    changes = [
        ToolChange(kind=kind, number=number, digest=digests[number], **nothing_more)
        for number, kind in entered
    ]
    record_changes(tool, changes, by, reason=reason)


def set_current(version: ToolVersion, by: Publisher, *, reason: str = "") -> None:
    """Make this the version that outputs are validated against.

    Raises StateError if it is the current one already, or retired.
    """
    tool = version.tool
    lock_tool(tool)
    if tool.current_number == version.number:
        raise StateError(f"Version {version.number} is already current.")
    if state_of(version) == State.RETIRED:
        raise StateError(f"Version {version.number} is retired. Restore it first.")
    before, tool.current_number = tool.current_number, version.number
    record_change(
        tool,
        ChangeKind.MADE_CURRENT,
        by,
        number=version.number,
        digest=version.digest,
        reason=reason,
        saving=["current_number"],
        instead_of=before,
    )


def _enter(
    version: ToolVersion, by: Publisher, kind: ChangeKind, reason: str, states: set[State]
) -> None:
    lock_tool(version.tool)
    state = state_of(version)
    if state not in states:
        raise StateError(f"Version {version.number} is already {state.label.lower()}.")
    record_change(
        version.tool, kind, by, number=version.number, digest=version.digest, reason=reason
    )
