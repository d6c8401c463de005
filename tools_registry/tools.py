"""Creates tools without versions, and changes their descriptions and settings.

All functions need the tenant's scope.
"""

from collections.abc import Mapping
from typing import Any

from tenants.models import Tenant
from tools_registry.changes import Publisher, lock_tool, record_change
from tools_registry.models import ChangeKind, Tool

DESCRIBING = ("notes", "owner", "link", "tags", "meta")
"""Members that describe a tool to people and are not part of a contract."""


class NameTakenError(Exception):
    """A tool of this name is registered already."""

    def __init__(self, tool: Tool) -> None:
        super().__init__(f"A tool named {tool.name} is already registered.")
        self.tool = tool


def create_tool(tenant: Tenant, name: str, by: Publisher, *, reason: str = "") -> Tool:
    """Create a tool without a version, for a first draft. Raises NameTakenError."""
    tool = Tool(tenant=tenant, name=name)
    Tool.objects.bulk_create([tool], ignore_conflicts=True)
    stored = Tool.objects.select_for_update().get(tenant=tenant, name=name)
    if stored.pk != tool.pk:
        raise NameTakenError(stored)
    record_change(stored, ChangeKind.CREATED, by, reason=reason)
    return stored


def describe_tool(
    tool: Tool, values: Mapping[str, Any], by: Publisher, *, reason: str = ""
) -> None:
    """Store a tool's description (members of `DESCRIBING`); equal values are not recorded."""
    changed = [name for name, value in values.items() if getattr(tool, name) != value]
    if not changed:
        return
    lock_tool(tool)
    before = {name: getattr(tool, name) for name in changed}
    for name in changed:
        setattr(tool, name, values[name])
    record_change(
        tool,
        ChangeKind.DESCRIBED,
        by,
        reason=reason,
        saving=changed,
        before=before,
        after={name: values[name] for name in changed},
    )


def check_on_arrival(tool: Tool, by: Publisher, *, is_on: bool, reason: str = "") -> None:
    """Turn the server's validation of unguarded outputs on or off; no change is not recorded."""
    if tool.is_checked_on_arrival == is_on:
        return
    lock_tool(tool)
    tool.is_checked_on_arrival = is_on
    record_change(
        tool,
        ChangeKind.CHECKS_ON if is_on else ChangeKind.CHECKS_OFF,
        by,
        number=tool.current_number or None,
        reason=reason,
        saving=["is_checked_on_arrival"],
    )
