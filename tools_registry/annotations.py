"""The annotations of a tool's MCP definition: how its server says that it behaves.

An import keeps them in the meta of the version (`mcp.annotations`); a definition as served has them
itself. They are hints of the tool's server, not facts. Only what a definition states counts: by
MCP, a tool that states nothing may do anything.
"""

from typing import Any, Final
from uuid import UUID

from django.db.models import F

from tools_registry.models import ToolVersion

HINTS: Final = {
    "read-only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open-world": "openWorldHint",
}
"""MCP's name of each hint, by the word for it in queries and on pages."""


def declared_hints(meta: Any) -> list[str]:
    """The hints that the meta of a version states to be true, in the words of `HINTS`."""
    return served_hints(meta.get("mcp") if isinstance(meta, dict) else None) or []


def served_hints(definition: Any) -> list[str] | None:
    """The hints that an MCP definition states to be true; None if it states none at all."""
    annotations = definition.get("annotations") if isinstance(definition, dict) else None
    if not isinstance(annotations, dict) or annotations.keys().isdisjoint(HINTS.values()):
        return None
    return [word for word, name in HINTS.items() if annotations.get(name) is True]


def tools_with_hint(tenant_id: UUID, hint: str) -> list[str]:
    """The names of the tools whose current version states this hint. One query, in the
    tenant's scope."""
    versions = ToolVersion.objects.filter(
        tenant_id=tenant_id,
        tool__tenant_id=tenant_id,
        number=F("tool__current_number"),
        # The meta is stored as JSON text; the rest is decided here.
        meta__contains=HINTS[hint],
    )
    return sorted(
        name
        for name, meta in versions.values_list("tool__name", "meta")
        if hint in declared_hints(meta)
    )
