"""The history of a tool: who changed what, when and why; and the version states it implies.

All functions need the tenant's scope. Entries never change. A version's state follows from the
last change of that version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from django.db.models import Model
from django.utils import timezone

from config.instants import iso
from tenants.actions import THE_SERVER, record_actions
from tenants.models import User
from tools_registry.models import ChangeKind, State, Tool, ToolChange, ToolVersion

REASON_MAX_LENGTH = 2_000
_AT_ONCE = 500

STATE_AFTER: Mapping[str, State] = {
    ChangeKind.PUBLISHED: State.PUBLISHED,
    ChangeKind.DEPRECATED: State.DEPRECATED,
    ChangeKind.RETIRED: State.RETIRED,
    ChangeKind.RESTORED: State.PUBLISHED,
}
"""A version's state after a change; other kinds of change do not affect the state."""

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
"""The verb of each kind in the tenant's audit log; other kinds are not recorded there."""


@dataclass(frozen=True)
class Publisher:
    """Who changes a tool: a user, an executor (by its key's id), an operator, or the server.

    An operator has no account. If no field is set, it is the server.
    """

    user: User | None = None
    key_id: str = ""
    operator: str = ""

    @property
    def user_name(self) -> str:
        """The user's name, to be stored as a copy that outlives the account."""
        return self.user.get_username() if self.user else self.operator

    @property
    def label(self) -> str:
        """The publisher's name for display."""
        return self.user_name or (f"key {self.key_id}" if self.key_id else "Tooltrail")


def lock_tool(tool: Tool) -> None:
    """Lock a tool until the transaction ends, and reload its numbers."""
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
    rows: Sequence[Model] = (),
    **details: Any,
) -> ToolChange:
    """Record a change in the tool's history and in the audit log (attempts: history only).

    The tool must be locked. `saving` names further changed fields of it, to be stored as well.
    `rows` are other rows that changed (`tenants.actions`). `details` are JSON values.
    """
    documents: dict[str, Any] = {"details": details, "contract": contract}
    change = ToolChange(
        kind=kind, number=number, digest=digest, attempted_on=attempted_on, **documents
    )
    record_changes(tool, [change], by, reason=reason, saving=saving, rows=rows)
    return change


def record_changes(
    tool: Tool,
    changes: Sequence[ToolChange],
    by: Publisher,
    *,
    reason: str = "",
    saving: Sequence[str] = (),
    rows: Sequence[Model] = (),
) -> None:
    """Record several changes in order; each has kind, number, digest and details.

    Three statements and two or three that read the rows again, however many changes.
    """
    now, actions = timezone.now(), []
    published: dict[int | None, dict[str, str]] = {
        row.number: {
            "published_at": iso(row.created_at),
            "published_by": row.created_by or row.created_by_key,
        }
        for row in rows
        if isinstance(row, ToolVersion)
    }
    for change in changes:
        tool.change_count += 1
        change.tenant_id, change.tool, change.ordinal = tool.tenant_id, tool, tool.change_count
        change.at, change.reason = now, reason[:REASON_MAX_LENGTH]
        change.user_name, change.key_id = by.user_name, by.key_id
        if verb := _VERBS.get(ChangeKind(change.kind)):
            members = {"version": change.number, "digest": change.digest, "reason": reason}
            members |= published.get(change.number, {}) | change.details
            about = {name: value for name, value in members.items() if value}
            actions.append((f"tool.{verb}", tool.name, about))
    tool.save(update_fields=["change_count", *saving])
    # The tool is locked, so none of these ordinals is taken.
    ToolChange.objects.bulk_create(changes, batch_size=_AT_ONCE, ignore_conflicts=True)
    by_key = f"API key {by.key_id}" if by.key_id else THE_SERVER
    actor, changed = by.user or by.operator or by_key, [tool, *changes, *rows]
    record_actions(tool.tenant_id, actor, actions, rows=changed)


def timeline(tool: Tool, *, before: int | None = None, size: int) -> list[ToolChange]:
    """A tool's changes before the ordinal `before`, newest first. One query, without contracts."""
    changes = ToolChange.objects.filter(tenant=tool.tenant_id, tool=tool).defer("contract")
    if before is not None:
        changes = changes.filter(ordinal__lt=before)
    return list(changes.order_by("-ordinal")[:size])


def version_states(tenant_id: UUID, tool_ids: Sequence[UUID]) -> dict[tuple[UUID, int], State]:
    """The states of all versions of the given tools, by tool and number. One query."""
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
