"""Regression sets: made of the calls with a label, and judged by the schemas of a replay.

A set is made anew as a whole: each time is a version of it, and only the newest has cases. Their
copies are what the log has of the arguments and outputs, which is redacted. The verdict that is
expected of a case is that of the version which is current when the set is made. Whoever makes a set
must be allowed to see payloads; that the set was made, and why, is an action.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from time import monotonic
from typing import Any, Final
from uuid import UUID

from audit.events.judgement import PASSED, Judge, Kind
from audit.events.outputs import Side, judged_members
from audit.log.payload import read_events
from audit.models import About, Note, RegressionCase, RegressionSet
from audit.queries.call_list import calls_by_day
from audit.queries.listed_call import ListedCall
from audit.work.call_walk import raw_of
from tenants.actions import Actor, name_of, record_action
from tenants.models import Tenant, new_id
from tenants.scope import current_tenant_id
from tools_registry.changes import lock_tool
from tools_registry.models import Tool
from tools_registry.versions import find_version

CASES_MAX: Final = 200
COPIES_MAX_BYTES: Final = 8_000_000
"""Of all copies of a set."""
JUDGING_SECONDS: Final = 5.0
"""For all cases of a set. Those that are left are counted as not judged."""
DIFFERENCES_MAX: Final = 50
VERSIONS_SHOWN: Final = 20
_SIDES: Final[tuple[Side, ...]] = ("args", "output")


class NoSetError(Exception):
    """No set can be made; the message says why."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The verdict that is expected of a case, by side: its violations; None: it is not judged."""

    args: frozenset[Kind] | None
    output: frozenset[Kind] | None

    @classmethod
    def of(cls, case: RegressionCase) -> "Expected":
        """Read the stored verdict."""
        sides = json.loads(case.expected)
        return cls(**{side: _kinds(sides[side]) for side in _SIDES})

    @property
    def sides(self) -> dict[Side, frozenset[Kind]]:
        """The violations of each side that is judged."""
        kinds: dict[Side, frozenset[Kind] | None] = {"args": self.args, "output": self.output}
        return {side: some for side, some in kinds.items() if some is not None}

    def dump(self) -> str:
        """The verdict as it is stored: ASCII, as paths may hold what PostgreSQL cannot store."""
        kinds = {side: getattr(self, side) for side in _SIDES}
        return json.dumps(
            {side: None if some is None else sorted(some) for side, some in kinds.items()}
        )


def make_set(
    tenant: Tenant, tool: Tool, label: str, actor: Actor, reason: str, now: datetime
) -> RegressionSet:
    """Make a tool's set of the calls that have a note with this label, in place of the last one.

    Calls that have not ended, or whose payloads are erased and not in the last set, are left out.
    Needs the scope, and that the caller has locked the record: no erasure may miss a new copy.
    Raises NoSetError, LogPayloadError and UnusableSchemaError.
    """
    lock_tool(tool)
    version = find_version(tool, tool.current_number) if tool.current_number else None
    if version is None:
        raise NoSetError("The tool has no published version, which would say what to expect.")
    judges = {
        "args": Judge("args", None, version.input_schema),
        "output": Judge("output", None, version.output_schema),
    }
    last = newest_set(tool.pk)
    copies = {
        one.invocation_id: (one.args, one.output) for one in cases_of(last) if not one.is_erased
    }
    calls = _labelled(tool, label)
    copies |= _copies([call for call in calls if call.invocation_id not in copies])
    made = RegressionSet(
        tenant_id=tool.tenant_id,
        id=new_id(),
        tool_id=tool.pk,
        number=1 if last is None else last.number + 1,
        label=label,
        judged_by=version.number,
        created_at=now,
        created_by=name_of(actor),
        reason=reason,
    )
    cases = [
        _case(made, call, *copies[call.invocation_id], judges)
        for call in calls
        if call.invocation_id in copies
    ]
    if not cases:
        raise NoSetError("None of these calls has ended with a payload that is still stored.")
    if sum(len(one.args) + len(one.output) for one in cases) > COPIES_MAX_BYTES:
        raise NoSetError(
            f"The calls have more than {COPIES_MAX_BYTES // 1_000_000} MB of payloads."
        )
    _replace(tenant, tool, last, made, cases, actor, "regression-set.make")
    return made


def remove_set(tenant: Tenant, tool: Tool, actor: Actor, reason: str, now: datetime) -> bool:
    """Delete the copies of a tool's set: its next version has no cases. False if it has none.

    Needs the scope.
    """
    lock_tool(tool)
    last = newest_set(tool.pk)
    if last is None or not last.label:
        return False
    empty = RegressionSet(
        tenant_id=tool.tenant_id,
        id=new_id(),
        tool_id=tool.pk,
        number=last.number + 1,
        label="",
        judged_by=last.judged_by,
        created_at=now,
        created_by=name_of(actor),
        reason=reason,
    )
    _replace(tenant, tool, last, empty, [], actor, "regression-set.remove")
    return True


def sets_of(tool: Tool) -> list[RegressionSet]:
    """The newest versions of a tool's set, the newest first. One query."""
    sets = RegressionSet.objects.for_tenant(current_tenant_id()).filter(tool_id=tool.pk)
    return list(sets.order_by("-number")[:VERSIONS_SHOWN])


def newest_set(tool_id: UUID) -> RegressionSet | None:
    """The version that holds; None if nobody has made one. One query."""
    sets = RegressionSet.objects.for_tenant(current_tenant_id()).filter(tool_id=tool_id)
    return sets.order_by("-number").first()


def cases_of(one: RegressionSet | None) -> list[RegressionCase]:
    """The cases of a set, in the order of their ids. At most one query."""
    if one is None:
        return []
    cases = RegressionCase.objects.for_tenant(current_tenant_id()).filter(set_id=one.id)
    return list(cases.order_by("started_on", "invocation_id"))


def judge_set(tool_id: UUID, outputs: Judge, args: Judge) -> dict[str, Any] | None:
    """Judge the cases of a tool's newest set by the new schemas of two judges. Needs the scope.

    Returns a document: `number` of the set, how many cases are `as_expected`, `differing` and
    `not_judged`, and the first `differences`. None: there is no set.
    """
    newest = newest_set(tool_id)
    if newest is None or not newest.label:
        return None
    deadline = monotonic() + JUDGING_SECONDS
    counts = {"as_expected": 0, "differing": 0, "not_judged": 0}
    differences: list[dict[str, Any]] = []
    for case in cases_of(newest):
        of_case = None
        if not case.is_erased and monotonic() < deadline:
            of_case = _differences(case, {"output": outputs, "args": args})
        if of_case is None:
            counts["not_judged"] += 1
            continue
        counts["differing" if of_case else "as_expected"] += 1
        differences += of_case
    return {"number": newest.number, **counts, "differences": differences[:DIFFERENCES_MAX]}


def _labelled(tool: Tool, label: str) -> list[ListedCall]:
    """The calls of a tool that have a note with this label. Two queries. Raises NoSetError."""
    notes = Note.objects.for_tenant(current_tenant_id()).filter(
        about=About.CALL, label=label, tool_name=tool.name
    )
    places: dict[tuple[date, UUID], None] = {}
    for day, pk in notes.order_by("id").values_list("started_on", "invocation_id"):
        if day is not None and pk is not None:
            places[day, pk] = None
    if not places:
        raise NoSetError("No call of this tool has a note with this label.")
    if len(places) > CASES_MAX:
        raise NoSetError(f"{len(places):,} calls have this label, more than {CASES_MAX}.")
    return calls_by_day(places)


def _copies(calls: Iterable[ListedCall]) -> dict[UUID, tuple[str, str]]:
    """Of each call that has ended: copies of its arguments and output, '' for one that is gone."""
    places = {
        call.invocation_id: (call.place_of("args"), call.place_of("output")) for call in calls
    }
    wanted = [place for pair in places.values() for place in pair if place is not None]
    events = read_events(current_tenant_id(), wanted)
    copies = {}
    for pk, pair in places.items():
        stored = [None if place is None else events.get(place) for place in pair]
        args, output = (judged_members(raw_of(event)) or "" for event in stored)
        if output:
            copies[pk] = args, output
    return copies


def _case(
    of: RegressionSet, call: ListedCall, args: str, output: str, judges: dict[str, Judge]
) -> RegressionCase:
    texts = {"args": args, "output": output}
    expected = Expected(**{side: _verdict(judges[side], text) for side, text in texts.items()})
    return RegressionCase(
        tenant_id=of.tenant_id,
        set_id=of.id,
        started_on=call.started_on,
        invocation_id=call.invocation_id,
        args=args,
        output=output,
        expected=expected.dump(),
        is_erased=False,
    )


def _replace(
    tenant: Tenant,
    tool: Tool,
    last: RegressionSet | None,
    made: RegressionSet,
    cases: list[RegressionCase],
    actor: Actor,
    verb: str,
) -> None:
    made.case_count = len(cases)
    made.save(force_insert=True)
    # A new set: no conflict is possible. Without that clause Citus refuses several rows.
    RegressionCase.objects.bulk_create(cases, ignore_conflicts=True)
    if last is not None:
        RegressionCase.objects.for_tenant(tool.tenant_id).filter(set_id=last.id).delete()
    record_action(
        tenant,
        actor,
        verb,
        tool.name,
        number=made.number,
        label=made.label,
        cases=made.case_count,
        reason=made.reason,
    )


def _verdict(judge: Judge, text: str) -> frozenset[Kind] | None:
    """The violations of a copy by a judge's new schema; None if it cannot be judged."""
    verdict = judge.judge(text.encode()) if text else "erased"
    if isinstance(verdict, str):
        return None
    return PASSED.then if verdict is PASSED else verdict.then


def _differences(case: RegressionCase, judges: dict[Side, Judge]) -> list[dict[str, Any]] | None:
    """Where the verdict is not the expected one; None if no side could be judged."""
    expected = Expected.of(case)
    differences = []
    is_judged = False
    texts: dict[Side, str] = {"args": case.args, "output": case.output}
    for side, text in texts.items():
        then = getattr(expected, side)
        now = None if then is None else _verdict(judges[side], text)
        if then is None or now is None:
            continue
        is_judged = True
        if now != then:
            differences.append(
                {
                    "started_on": case.started_on.isoformat(),
                    "invocation_id": str(case.invocation_id),
                    "side": side,
                    "new": sorted(now - then)[:DIFFERENCES_MAX],
                    "gone": sorted(then - now)[:DIFFERENCES_MAX],
                }
            )
    return differences if is_judged else None


def _kinds(pairs: list[list[str]] | None) -> frozenset[Kind] | None:
    return None if pairs is None else frozenset(Kind(*pair) for pair in pairs)
