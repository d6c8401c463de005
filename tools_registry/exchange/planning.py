"""Plans what an import would do to each tool, or why it would refuse the tool.

`plan_tool` is pure; `stored_tools` reads the data that it needs from the registry. A version whose
digest is already stored changes nothing, and the tool's other versions stay as they are.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, Literal
from uuid import UUID

from django.db.models import F

from tools_registry.changes import version_states
from tools_registry.contract_diff import ContractDiff, Side, Verdict, compare_contracts
from tools_registry.exchange.document import ReadTool, ReadVersion
from tools_registry.models import State, Tool, ToolDraft, ToolVersion
from tools_registry.schemas import ToolContract, judging_problems
from tools_registry.tools import DESCRIBING
from tools_registry.versions import contract_of

Status = Literal["added", "changed", "unchanged", "refused"]
StepAction = Literal[
    "create", "describe", "publish", "draft", "restore", "make_current", "deprecate", "retire"
]


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a tool; a plan has them in order."""

    action: StepAction
    number: int = 0
    """Number of the version in this registry."""
    contract: ToolContract | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    """`describe`: the new description; `publish`: the version's origin."""

    @property
    def source_number(self) -> int:
        """Number of the version in the document, if it has one; else the number here."""
        number = (
            self.values.get("version", self.number) if self.action == "publish" else self.number
        )
        return int(number)

    @property
    def text(self) -> str:
        """The step as text."""
        return {
            "create": "created",
            "describe": f"details updated: {', '.join(self.values)}",
            "publish": f"version {self.number} published"
            + (
                f" (version {self.source_number} in the file)"
                if self.source_number != self.number
                else ""
            ),
            "draft": "draft created",
            "restore": f"version {self.number} restored",
            "make_current": f"version {self.number} made current",
            "deprecate": f"version {self.number} deprecated",
            "retire": f"version {self.number} retired",
        }[self.action]


@dataclass(frozen=True, slots=True)
class StoredTool:
    """A tool as stored in the registry."""

    tool: Tool
    numbers: Mapping[str, int]
    """The numbers of its versions, by digest."""
    states: Mapping[int, State]
    current: ToolVersion | None
    draft: ToolDraft | None


@dataclass
class PlannedTool:
    """What an import would do to one tool; with problems it does nothing."""

    read: ReadTool
    stored: StoredTool | None
    steps: list[Step] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    becomes: ToolContract | None = None
    """The contract that would be the current one, or the draft."""
    tool: Tool | None = None
    """The stored tool, if any, or the one that the import created."""

    @property
    def status(self) -> Status:
        """The result for this tool, in one word."""
        if self.problems:
            return "refused"
        if not self.steps:
            return "unchanged"
        return "changed" if self.stored else "added"

    @property
    def step_texts(self) -> list[str]:
        """The steps as texts; versions published in a row are one text with first and last."""
        texts = []
        runs = groupby(self.steps, key=lambda step: (step.action, step.source_number - step.number))
        for (action, further), run in runs:
            first, *rest = run
            if action != "publish" or not rest:
                texts += [step.text for step in (first, *rest)]
                continue
            last = rest[-1]
            there = (
                f" ({first.source_number} to {last.source_number} in the file)" if further else ""
            )
            texts.append(f"versions {first.number} to {last.number} published{there}")
        return texts

    @cached_property
    def diff(self) -> ContractDiff | None:
        """The diff from the current contract to `becomes`; None without such a pair."""
        current = self.stored.current if self.stored else None
        if self.problems or current is None or self.becomes is None:
            return None
        if self.becomes.digest == current.digest:
            return None
        return compare_contracts(contract_of(current), self.becomes)

    @property
    def verdicts(self) -> dict[str, Verdict | None]:
        """The verdicts for `callers` and `consumers`; None if no contract is replaced."""
        sides = {"callers": Side.INPUT, "consumers": Side.OUTPUT}
        diff = self.diff
        return {whom: diff.verdict(side) if diff else None for whom, side in sides.items()}

    @property
    def fingerprint(self) -> str:
        """A hash of the plan and of what it changes.

        It differs for a different plan. It also differs for the same plan if another version has
        become current, or if the description that would be overwritten has changed.
        """
        tool = self.stored.tool if self.stored else None
        steps = [
            (
                step.action,
                step.number,
                step.contract and step.contract.digest,
                dict(step.values),
                step.action == "describe" and [getattr(tool, name, None) for name in step.values],
            )
            for step in self.steps
        ]
        state = repr((self.status, self.problems, steps, tool and tool.current_number))
        return hashlib.sha256(state.encode(errors="replace")).hexdigest()


def plan_import(
    tenant_id: UUID, tools: list[ReadTool], *, as_drafts: bool, are_locked: bool = False
) -> list[PlannedTool]:
    """Plan all tools, in the order of the document. Needs the tenant's scope. Five statements.

    With `are_locked` the stored ones are locked until the transaction ends.
    """
    stored = stored_tools(tenant_id, {tool.name for tool in tools}, are_locked=are_locked)
    return [plan_tool(tool, stored.get(tool.name), as_drafts=as_drafts) for tool in tools]


def stored_tools(
    tenant_id: UUID, names: Iterable[str], *, are_locked: bool = False
) -> dict[str, StoredTool]:
    """The stored tools with these names, by name. Five statements.

    With `are_locked` they are locked until the transaction ends.
    """
    wanted = Tool.objects.filter(tenant_id=tenant_id, name__in=names).order_by("name")
    tools = list(wanted.select_for_update() if are_locked else wanted)
    ids = [tool.pk for tool in tools]
    states = version_states(tenant_id, ids)
    versions = ToolVersion.objects.filter(
        tenant_id=tenant_id, tool_id__in=ids, tool__tenant_id=tenant_id
    )
    numbers: dict[UUID, dict[str, int]] = {}
    for tool_id, digest, number in versions.values_list("tool_id", "digest", "number"):
        numbers.setdefault(tool_id, {})[digest] = number
    current = {
        one.tool_id: one
        for one in versions.filter(number=F("tool__current_number")).select_related("tool")
    }
    drafts = {
        one.tool_id: one
        for one in ToolDraft.objects.filter(
            tenant_id=tenant_id, tool_id__in=ids, tool__tenant_id=tenant_id
        ).select_related("tool")
    }
    stored = {}
    for tool in tools:
        own = numbers.get(tool.pk, {})
        stored[tool.name] = StoredTool(
            tool,
            own,
            {n: states.get((tool.pk, n), State.PUBLISHED) for n in own.values()},
            current.get(tool.pk),
            drafts.get(tool.pk),
        )
    return stored


def plan_tool(read: ReadTool, stored: StoredTool | None, *, as_drafts: bool) -> PlannedTool:
    """Plan one tool, as drafts or published. Pure."""
    plan = PlannedTool(
        read,
        stored,
        problems=list(read.problems),
        notes=list(read.notes),
        tool=stored.tool if stored else None,
    )
    if plan.problems:
        return plan
    versions = read.versions if read.members is None else [_defined(read, stored)]
    in_current = [one for one in versions if one.number == read.current_number]
    current = in_current[0] if in_current else versions[-1] if versions else None
    if stored is None:
        plan.steps.append(Step("create"))
    if as_drafts:
        if current is not None:
            _plan_draft(plan, current)
        described = read.description if stored is None else {}
    else:
        if current is not None:
            _plan_versions(plan, versions, current)
        described = read.description
    before = stored.tool if stored else Tool()
    changed = {
        member: described[member]
        for member in DESCRIBING
        if member in described and described[member] != getattr(before, member)
    }
    if changed:
        plan.steps.insert(0 if stored else 1, Step("describe", values=changed))
    return plan


def _defined(read: ReadTool, stored: StoredTool | None) -> ReadVersion:
    """A provider's definition as a version; members that it does not set keep their values."""
    given = read.members or {}
    open_members: dict[str, Any] = {}
    if stored is not None and stored.current is not None:
        open_members = contract_of(stored.current).model_dump()
        given = {**given, "meta": {**open_members["meta"], **given.get("meta", {})}}
    contract = ToolContract.model_construct(**{**open_members, **given, "name": read.name})
    return ReadVersion(read.path, 1, contract)


def _is_usable(plan: PlannedTool, version: ReadVersion) -> bool:
    current = plan.stored.current if plan.stored else None
    in_use = [current.input_schema, current.output_schema] if current else []
    problems = judging_problems(version.contract, in_use=in_use)
    for member, problem in problems.items():
        place = plan.read.places.get(member, member)
        plan.problems.append(f"{version.path}.{place}: {problem}")
    return not problems


def _plan_draft(plan: PlannedTool, version: ReadVersion) -> None:
    stored, contract = plan.stored, version.contract
    number = stored.numbers.get(contract.digest) if stored else None
    if stored is not None and number is not None:
        if number != stored.tool.current_number:
            problem = f"is already version {number}; make it current on the page of the tool"
            plan.problems.append(f"{version.path}: {problem}")
        return
    if stored is not None and stored.draft is not None:
        if contract_of(stored.draft).digest != contract.digest:
            problem = f"the tool already has a draft, saved by {stored.draft.saved_by}"
            plan.problems.append(f"{version.path}: {problem}")
        return
    if _is_usable(plan, version):
        plan.becomes = contract
        plan.steps.append(Step("draft", contract=contract))


def _plan_versions(plan: PlannedTool, versions: list[ReadVersion], current: ReadVersion) -> None:
    stored, steps = plan.stored, plan.steps
    numbers = dict(stored.numbers) if stored else {}
    states = dict(stored.states) if stored else {}
    latest = stored.tool.latest_number if stored else 0
    now_current = stored.tool.current_number if stored else 0
    for one in versions:
        if one.contract.digest in numbers or not _is_usable(plan, one):
            continue
        latest += 1
        numbers[one.contract.digest] = now_current = latest
        states[latest] = State.PUBLISHED
        steps.append(Step("publish", latest, one.contract, one.origin))
    if plan.problems:
        return

    def enter(number: int, action: StepAction, state: State) -> None:
        steps.append(Step(action, number))
        states[number] = state

    target = numbers[current.contract.digest]
    plan.becomes = current.contract
    if target != now_current:
        if states[target] == State.RETIRED:
            enter(target, "restore", State.PUBLISHED)
        steps.append(Step("make_current", target))
    for one in versions:
        number = numbers[one.contract.digest]
        if one.state is None or one.state == states[number]:
            continue
        if one.state != State.RETIRED and states[number] != State.PUBLISHED:
            enter(number, "restore", State.PUBLISHED)
        if one.state == State.DEPRECATED:
            enter(number, "deprecate", State.DEPRECATED)
        elif one.state == State.RETIRED:
            enter(number, "retire", State.RETIRED)
