"""How the definitions of tools say that the tools behave: MCP's hints, such as read-only.

A definition as served counts before the registry: it is what the agent had. The registry knows the
hints of imported definitions.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from audit.queries.definitions import DefinitionInForce
from audit.sql.run import rows, rows_prepared
from tenants.scope import current_tenant_id
from tools_registry.annotations import declared_hints, served_hints, tools_with_hint


@dataclass(frozen=True, slots=True)
class Hinting:
    """Where a hint is stated to be true."""

    saying: list[str]
    """The digests of definitions as served that say so."""
    stating: list[str]
    """The digests of definitions as served that have any hint."""
    declared: list[str]
    """The tools whose current version in the registry says so."""


def hinting(hint: str) -> Hinting:
    """Where a hint is stated, in the tenant's scope. Two statements."""
    stated = _stated(None)
    return Hinting(
        saying=[digest for digest, hints in stated.items() if hint in hints],
        stating=list(stated),
        declared=tools_with_hint(current_tenant_id(), hint),
    )


def hints_in_force(definitions: Iterable[DefinitionInForce]) -> list[str] | None:
    """The hints of definitions that were in force; None if these have none. One statement."""
    digests = [one.digest for one in definitions]
    stated = _stated(digests) if digests else {}
    if not stated:
        return None
    return list(dict.fromkeys(hint for digest in digests for hint in stated.get(digest, ())))


def hints_of_tool(name: str) -> list[str] | None:
    """The hints of a tool's current version; None if no version of this tool was published.

    One statement, planned once.
    """
    metas = rows_prepared("current_meta", {"tool_name": name})
    return next((declared_hints(json.loads(meta or "{}")) for (meta,) in metas), None)


def _stated(digests: list[str] | None) -> dict[str, list[str]]:
    """The hints of each definition that has any, by digest."""
    read = {
        digest: served_hints(json.loads(content))
        for digest, content in rows("hinting_definitions", {"digests": digests})
    }
    return {digest: hints for digest, hints in read.items() if hints is not None}
