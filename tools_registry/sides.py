"""The contracts of a tool that can be compared: versions, the draft, and refused attempts.

All functions need the tenant's scope.
"""

from dataclasses import dataclass
from uuid import UUID

from django.urls import reverse

from tools_registry.drafts import find_draft
from tools_registry.models import Tool, ToolChange
from tools_registry.schemas import ToolContract
from tools_registry.versions import contract_of, find_version

DRAFT = "draft"


@dataclass(frozen=True, slots=True)
class Side:
    """One of two compared contracts; `name` identifies it in URLs."""

    name: str
    label: str
    contract: ToolContract
    address: str = ""
    """URL of its page; '' if it has none."""


def find_side(tool: Tool, name: str) -> Side | None:
    """A version (by number), the draft (`draft`) or an attempt (by change id). One query."""
    if name == DRAFT:
        draft = find_draft(tool)
        return Side(name, "the draft", contract_of(draft)) if draft else None
    if name.isascii() and name.isdigit():
        version = find_version(tool, int(name)) if len(name) < 10 else None
        if version is None:
            return None
        address = reverse("tool_version", args=[tool.pk, version.number])
        return Side(name, f"version {version.number}", contract_of(version), address)
    try:
        change_id = UUID(name)
    except ValueError:
        return None
    change = ToolChange.objects.filter(tenant=tool.tenant_id, tool=tool, pk=change_id).first()
    if change is None or change.contract is None:
        return None
    contract = ToolContract.model_construct(**change.contract)
    return Side(name, f"contract sent by key {change.key_id}", contract)
