"""The record of a tool's changes: who, when and why; and the states it gives to versions.

All functions need the tenant's scope. Nothing on record is ever altered: a version's state is
what the last change says that is about it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from django.utils import timezone

from tenants.actions import THE_SERVER, record_actions
from tenants.models import User
from tools_registry.models import ChangeKind, State, Tool, ToolChange

REASON_MAX_LENGTH = 2_000
_AT_ONCE = 500

STATE_AFTER: Mapping[str, State] = {
    ChangeKind.PUBLISHED: State.PUBLISHED,
    ChangeKind.DEPRECATED: State.DEPRECATED,
    ChangeKind.RETIRED: State.RETIRED,
    ChangeKind.RESTORED: State.PUBLISHED,
}
"""What a version is after a change; other changes leave it as it was."""

_VERBS = {
    ChangeKind.CREATED: "create",
    ChangeKind.DESCRIBED: "describe",
    ChangeKind.DRAFT_MADE: "draft",
    ChangeKind.DRAFT_SAVED: "save-draft",
    ChangeKind.DRAFT_DISCARDED: "discard-draft",
    ChangeKind.PUBLISHED: "publish",
    ChangeKind.MADE_CURRENT: "make-current",
    ChangeKind.DEPRECATED: "deprecate",
    ChangeKind.RETIRED: "retire",
    ChangeKind.RESTORED: "restore",
    ChangeKind.CHECKS_ON: "check-on-arrival",
    ChangeKind.CHECKS_OFF: "stop-checking",
}
"""Of the tenant's record of what people did."""


@dataclass(frozen=True)
class Publisher:
    """Who changes a tool: a user, an executor by its key's id, an operator without an account,
    or, with none of these, the server.
    """

    user: User | None = None
    key_id: str = ""
    operator: str = ""

    @property
    def user_name(self) -> str:
        """The user's name, to be copied: who published outlives the account."""
        return self.user.get_username() if self.user else self.operator

    @property
    def label(self) -> str:
        """Who that is, in words."""
        return self.user_name or (f"key {self.key_id}" if self.key_id else "Tooltrail")


def lock_tool(tool: Tool) -> None:
    """Lock a tool until the transaction ends, and bring its numbers up to date."""
    locked = Tool.objects.select_for_update().get(tenant=tool.tenant_id, pk=tool.pk)
    tool.latest_number = locked.latest_number
    tool.current_number = locked.current_number
    tool.change_count = locked.change_count


def record_change(
    tool: Tool,
    kind: ChangeKind,
    by: Publisher,
    *,
    number: int | None = None,
    digest: str = "",
    reason: str = "",
    saving: Sequence[str] = (),
    contract: Mapping[str, Any] | None = None,
    attempted_on: date | None = None,
    **details: Any,
) -> ToolChange:
    """Put a change on the tool's record, and on the tenant's; there an attempt is no change.

    The tool is locked; `saving` are its fields that changed, too. `details` are JSON values.
    """
    documents: dict[str, Any] = {"details": details, "contract": contract}
    change = ToolChange(
        kind=kind, number=number, digest=digest, attempted_on=attempted_on, **documents
    )
    record_changes(tool, [change], by, reason=reason, saving=saving)
    return change


def record_changes(
    tool: Tool,
    changes: Sequence[ToolChange],
    by: Publisher,
    *,
    reason: str = "",
    saving: Sequence[str] = (),
) -> None:
    """The same of some changes in their order; of each kind, number, digest and details are given.

    Three statements, however many.
    """
    now, told = timezone.now(), []
    for change in changes:
        tool.change_count += 1
        change.tenant_id, change.tool, change.ordinal = tool.tenant_id, tool, tool.change_count
        change.at, change.reason = now, reason[:REASON_MAX_LENGTH]
        change.user_name, change.key_id = by.user_name, by.key_id
        if verb := _VERBS.get(ChangeKind(change.kind)):
            said = {"version": change.number, "reason": reason, **change.details}
            about = {name: value for name, value in said.items() if value}
            told.append((f"tool.{verb}", tool.name, about))
    tool.save(update_fields=["change_count", *saving])
    by_key = f"API key {by.key_id}" if by.key_id else THE_SERVER
    record_actions(tool.tenant_id, by.user or by.operator or by_key, told)
    # The tool is locked, so that none of these ordinals is taken.
    ToolChange.objects.bulk_create(changes, batch_size=_AT_ONCE, ignore_conflicts=True)


def timeline(tool: Tool, *, before: int | None = None, size: int) -> list[ToolChange]:
    """A tool's changes, the newest first; `before` an ordinal. One query, without contracts."""
    changes = ToolChange.objects.filter(tenant=tool.tenant_id, tool=tool).defer("contract")
    if before is not None:
        changes = changes.filter(ordinal__lt=before)
    return list(changes.order_by("-ordinal")[:size])


def version_states(tenant_id: UUID, tool_ids: Sequence[UUID]) -> dict[tuple[UUID, int], State]:
    """The states of all versions of some tools, by tool and number. One query."""
    last = (
        ToolChange.objects.filter(
            tenant_id=tenant_id, tool_id__in=tool_ids, kind__in=list(STATE_AFTER)
        )
        .order_by("tool_id", "number", "-ordinal")
        .distinct("tool_id", "number")
    )
    return {
        (tool_id, number): STATE_AFTER[kind]
        for tool_id, number, kind in last.values_list("tool_id", "number", "kind")
        if number is not None
    }
