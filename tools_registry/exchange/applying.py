"""An import carried out: each change with its row, who made it and why. In the tenant's scope."""

from dataclasses import dataclass

from tenants.models import Tenant
from tools_registry import states
from tools_registry.changes import Publisher
from tools_registry.drafts import create_draft
from tools_registry.exchange.planning import PlannedTool, Step, fingerprint, plan_import
from tools_registry.exchange.reading import ReadDocument
from tools_registry.models import Tool
from tools_registry.tools import NameTakenError, create_tool, describe_tool
from tools_registry.versions import find_version, publish_version

_DEEDS = {
    "restore": states.restore,
    "make_current": states.set_current,
    "deprecate": states.deprecate,
    "retire": states.retire,
}


class PlanChangedError(Exception):
    """The registry is another one than when the import was looked at: look again."""

    def __init__(self) -> None:
        super().__init__("The registry has changed since: look at the import again.")


@dataclass(frozen=True, slots=True)
class Way:
    """How an import is to be done."""

    as_drafts: bool
    """Contracts become drafts; otherwise versions, states and the current one are made alike."""
    by: Publisher
    reason: str


def apply_import(
    tenant: Tenant, document: ReadDocument, way: Way, *, expected: str | None = None
) -> list[PlannedTool]:
    """Do what the plan says, which is made anew with the tools locked; the plan.

    Refused tools cost themselves. Raises PlanChangedError if it is not the `expected` plan.
    """
    plan = plan_import(tenant.pk, document.tools, as_drafts=way.as_drafts, are_locked=True)
    if expected is not None and fingerprint(plan) != expected:
        raise PlanChangedError
    for one in sorted(plan, key=lambda one: one.read.name):
        if not one.problems:
            tool = one.stored.tool if one.stored else None
            for step in one.steps:
                tool = _do(tenant, one.read.name, tool, step, way)
    return plan


def _do(tenant: Tenant, name: str, tool: Tool | None, step: Step, way: Way) -> Tool:
    if tool is None:
        try:
            return create_tool(tenant, name, way.by, reason=way.reason)
        except NameTakenError:  # a moment ago: it could not be locked
            raise PlanChangedError from None
    if step.deed == "describe":
        describe_tool(tool, step.values, way.by, reason=way.reason)
    elif step.contract is not None and step.deed == "publish":
        origin = {"imported": dict(step.values)} if step.values else {}
        publish_version(tool, step.contract, way.by, reason=way.reason, **origin)
    elif step.contract is not None:
        create_draft(tool, step.contract, way.by, reason=way.reason)
    else:
        version = find_version(tool, step.number)
        assert version is not None, "planned with the tool locked"
        _DEEDS[step.deed](version, way.by, reason=way.reason)
        tool.refresh_from_db()
    return tool
