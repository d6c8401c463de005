"""Imports one tool: makes its planned changes, each recorded with publisher and reason.

Each tool succeeds or fails separately: all of its changes are made in the caller's transaction,
in the tenant's scope.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from tenants.models import Tenant
from tools_registry import states
from tools_registry.changes import Publisher
from tools_registry.drafts import create_draft
from tools_registry.exchange.document import ReadTool
from tools_registry.exchange.planning import PlannedTool, Step, plan_tool, stored_tools
from tools_registry.models import ChangeKind, Tool
from tools_registry.tools import NameTakenError, create_tool, describe_tool
from tools_registry.versions import find_version, publish_versions

HAS_CHANGED: Final = "The tool has changed since the preview. Preview the import again."

_STATES = {
    "restore": ChangeKind.RESTORED,
    "deprecate": ChangeKind.DEPRECATED,
    "retire": ChangeKind.RETIRED,
}


@dataclass(frozen=True, slots=True)
class Way:
    """How to import: as drafts or published, by whom, and why."""

    as_drafts: bool
    """True: contracts become drafts. False: versions, states and the current version are copied."""
    by: Publisher
    reason: str


def import_tool(
    tenant: Tenant, read: ReadTool, way: Way, *, expected: str | None = None
) -> PlannedTool:
    """Plan one tool with its row locked, make the planned changes, and return the plan.

    A plan with problems changes nothing. A plan that would make changes but does not have the
    fingerprint `expected` is refused.
    """
    stored = stored_tools(tenant.pk, [read.name], are_locked=True).get(read.name)
    plan = plan_tool(read, stored, as_drafts=way.as_drafts)
    changes = plan.status in ("added", "changed")
    if changes and expected is not None and plan.fingerprint != expected:
        plan.problems.append(HAS_CHANGED)
    make_planned(tenant, plan, way)
    return plan


def make_planned(tenant: Tenant, plan: PlannedTool, way: Way) -> None:
    """Make the planned changes of a tool that was locked when they were planned.

    A plan with problems changes nothing. A new tool whose name was taken meanwhile is refused.
    """
    if plan.problems or not plan.steps:
        return
    tool = plan.tool
    if tool is None:
        try:
            tool = create_tool(tenant, plan.read.name, way.by, reason=way.reason)
        except NameTakenError:  # created since the plan was made: it could not be locked
            plan.problems.append(HAS_CHANGED)
            return
    for steps in _together(plan.steps):
        _do(tool, steps, way)
    plan.tool = tool


def _together(steps: list[Step]) -> Iterator[list[Step]]:
    """Group the steps, in order: consecutive publish steps, and consecutive state changes."""
    for kind, some in groupby(
        steps, key=lambda step: "state" if step.action in _STATES else step.action
    ):
        if kind in ("publish", "state"):
            yield list(some)
        else:
            yield from ([step] for step in some)


def _do(tool: Tool, steps: list[Step], way: Way) -> None:
    step = steps[0]
    if step.action == "describe":
        describe_tool(tool, step.values, way.by, reason=way.reason)
    elif step.action == "publish":
        contracts = [
            (each.contract, {"imported": dict(each.values)} if each.values else {})
            for each in steps
            if each.contract is not None
        ]
        publish_versions(tool, contracts, way.by, reason=way.reason)
    elif step.contract is not None:
        create_draft(tool, step.contract, way.by, reason=way.reason)
    elif step.action in _STATES:
        entered = [(each.number, _STATES[each.action]) for each in steps]
        states.enter_states(tool, entered, way.by, reason=way.reason)
    elif step.action == "make_current":
        version = find_version(tool, step.number)
        assert version is not None, "planned with the tool locked"
        states.set_current(version, way.by, reason=way.reason)
        tool.refresh_from_db()
