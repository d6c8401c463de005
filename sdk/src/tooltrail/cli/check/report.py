"""What a check found. Pure.

A finding has a rule. Those of `BREAKS` break somebody, those of `INCOMPLETE` say that something
could not be checked, and the others are notes. A break may be accepted (`policy`).
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Final, Literal

from tooltrail.cli.check.definitions import Definition

Status = Literal["new", "changed", "unchanged", "refused"]

RULES: Final[Mapping[str, str]] = {
    "breaks-callers": "Arguments that were accepted before may be rejected.",
    "breaks-consumers": "Results are possible that were not possible before.",
    "undecided-callers": "It is undecided whether arguments that were accepted before still are.",
    "undecided-consumers": "It is undecided whether new results are possible.",
    "new-violations": "Stored calls that pass the current version violate the new definition.",
    "regression": "A case of the regression set does not have the verdict that is expected of it.",
    "refused": "The registry does not take the definition.",
    "not-published": "The tool has no published version to compare with.",
    "not-replayed": "Stored calls could not be replayed.",
    "no-regression-set": "The tool does not have the regression set that the policy requires.",
    "new-tool": "The tool is new: nothing to compare with.",
    "no-calls": "There are no stored calls to replay.",
    "not-compared": "A part of the definition is not compared.",
}
"""Each rule of a finding, and what it means."""
BREAKS: Final = (
    *("breaks-callers", "breaks-consumers", "undecided-callers", "undecided-consumers"),
    *("new-violations", "regression", "refused"),
)
INCOMPLETE: Final = ("not-published", "not-replayed", "no-regression-set")
ACCEPTABLE: Final = tuple(rule for rule in BREAKS if rule != "refused")
"""What a policy may accept. The registry takes no refused definition, whoever accepts it."""
_KINDS_LISTED: Final = 200
"""So many kinds of violations of a side the server lists; there may be more."""
_OF_REPLAYS: Final = ("new-violations", "regression")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Why a break is accepted, and until which day."""

    reason: str
    until: date


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the check found about a tool."""

    rule: str
    """One of `RULES`."""
    message: str
    path: str = ""
    """Path in the arguments or results, such as `$.rows[*].id`; '' for the whole tool."""
    detail: str | None = None
    """What tells a break from others of its rule at its path. None: it stands for several, which
    are not listed, so nobody can accept it."""
    accepted: Acceptance | None = None

    @property
    def level(self) -> Literal["error", "note"]:
        """`error` if it makes the check fail, unless it is accepted."""
        return "error" if self.rule in BREAKS or self.rule in INCOMPLETE else "note"

    def id_in(self, tool: str) -> str:
        """By which it is accepted: another break of this tool has another one. '': it cannot be."""
        if self.detail is None or self.rule not in ACCEPTABLE:
            return ""
        identity = "\0".join((self.rule, tool, self.path, self.detail))
        return hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:16]


@dataclass(slots=True)
class CheckedTool:
    """A definition, and what was found about it."""

    definition: Definition
    compared: Mapping[str, Any]
    """The server's answer about it: `ComparedTool` of `POST registry/compare`."""
    findings: list[Finding] = field(default_factory=list)
    replay: Mapping[str, Any] | None = None
    """The server's last answer about its replay: `ReplayDetail`. None: nothing was replayed."""
    replay_url: str = ""
    """The page of the replay."""
    unused: list[str] = field(default_factory=list[str])
    """What the policy accepts of it to no effect, and why."""

    @property
    def name(self) -> str:
        """The tool's name, as the server has read it, or else its place."""
        return str(self.compared["name"]) or self.definition.place

    @property
    def has_changed_schemas(self) -> bool:
        """Whether stored calls may be judged in another way."""
        return any(one["side"] in ("input", "output") for one in self.compared["changes"])

    @property
    def judged_rules(self) -> set[str]:
        """The rules whose breaks would have been found."""
        is_replayed = self.replay is not None and self.replay["state"] == "done"
        left_out = () if is_replayed or not self.has_changed_schemas else _OF_REPLAYS
        return {*BREAKS} - {*left_out}

    def accept(self, finding: Finding, acceptance: Acceptance) -> None:
        """Let a break fail the check no longer."""
        place = self.findings.index(finding)
        self.findings[place] = replace(finding, accepted=acceptance)

    @property
    def verdict(
        self,
    ) -> Literal["breaks", "not checked", "accepted", "new", "changed", "unchanged"]:
        """What was found, in a word or two."""
        rules = {one.rule for one in self.findings if one.accepted is None}
        if rules & {*BREAKS}:
            return "breaks"
        if rules & {*INCOMPLETE}:
            return "not checked"
        if any(one.accepted for one in self.findings):
            return "accepted"
        status: Literal["new", "changed", "unchanged"] = self.compared["status"]
        return status


@dataclass(slots=True)
class Report:
    """All checked tools, in the order of their definitions."""

    server: str
    tools: list[CheckedTool]
    notes: list[str]
    """About what was read as a whole."""

    @property
    def exit_code(self) -> int:
        """0: nobody breaks. 1: somebody does. 2: nobody is known to, but not all was checked."""
        verdicts = {one.verdict for one in self.tools}
        if "breaks" in verdicts:
            return 1
        return 2 if "not checked" in verdicts else 0

    @property
    def counts(self) -> dict[str, int]:
        """The number of tools by verdict."""
        verdicts = ("breaks", "not checked", "accepted", "changed", "new", "unchanged")
        counts = dict.fromkeys(verdicts, 0)
        for one in self.tools:
            counts[one.verdict] += 1
        return counts

    def document(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "server": self.server,
            "exit_code": self.exit_code,
            "counts": self.counts,
            "notes": self.notes,
            "tools": [
                {
                    "name": one.name,
                    "place": one.definition.place,
                    "verdict": one.verdict,
                    "version": one.compared["version"],
                    "callers": one.compared["callers"],
                    "consumers": one.compared["consumers"],
                    "findings": [
                        {
                            "rule": each.rule,
                            "level": each.level,
                            "path": each.path,
                            "message": each.message,
                            "id": each.id_in(one.name) or None,
                            "accepted": each.accepted
                            and {
                                "reason": each.accepted.reason,
                                "until": str(each.accepted.until),
                            },
                        }
                        for each in one.findings
                    ],
                    "unused": one.unused,
                    "changes": one.compared["changes"],
                    "replay": one.replay,
                    "replay_url": one.replay_url,
                }
                for one in self.tools
            ],
        }


def findings_of_comparison(compared: Mapping[str, Any]) -> Iterator[Finding]:
    """What the comparison with the published contract means."""
    for problem in compared["problems"]:
        yield Finding("refused", str(problem))
    for note in compared["notes"]:
        yield Finding("not-compared", str(note))
    for change in compared["changes"]:
        whom = {"input": "callers", "output": "consumers"}.get(change["side"])
        if whom is None or change["verdict"] == "compatible":
            continue
        rule = f"{'breaks' if change['verdict'] == 'breaking' else 'undecided'}-{whom}"
        side = "arguments" if whom == "callers" else "results"
        message = f"{side}, {change['keyword']}: {change['reason']}"
        yield Finding(rule, message, change["path"], _detail_of(change, compared))
    more = compared["change_count"] - len(compared["changes"])
    if more > 0:
        yield Finding("not-compared", f"{more:,} further changes are not listed.")


def _detail_of(change: Mapping[str, Any], compared: Mapping[str, Any]) -> str | None:
    if compared["change_count"] > len(compared["changes"]):
        return None
    values = [change.get(name) for name in ("before", "after")]
    # The server cuts long values, so what was cut may differ: the whole schema tells.
    is_cut = any(isinstance(value, str) and value.endswith("…") for value in values)
    whole = compared[f"{change['side']}_schema"] if is_cut else None
    return json.dumps([change["keyword"], *values, whole], sort_keys=True)


def findings_of_replay(
    replay: Mapping[str, Any], schemas: Mapping[str, Any] | None = None
) -> Iterator[Finding]:
    """What a finished replay found. `schemas` are those that were judged by, by side."""
    judged_by = {side: json.dumps(one, sort_keys=True) for side, one in (schemas or {}).items()}
    listed = Counter(kind["side"] for kind in replay["kinds"])
    for kind in replay["kinds"]:
        if kind["new"]:
            side = "arguments" if kind["side"] == "args" else "results"
            calls = f"{kind['new']:,} stored call{'' if kind['new'] == 1 else 's'}"
            is_whole = listed[kind["side"]] < _KINDS_LISTED
            detail = f"{kind['code']} {judged_by.get(kind['side'])}" if is_whole else None
            text = f"{side}, {kind['code']}: {calls}"
            yield Finding("new-violations", text, kind["path"], detail)
    if replay["newly_violating"] and not any(kind["new"] for kind in replay["kinds"]):
        yield Finding("new-violations", f"{replay['newly_violating']:,} arguments and results")
    yield from _regressions(replay.get("regression"), judged_by)
    if not any(side["judged"] for side in replay["sides"]):
        read = replay["calls"]
        unjudged = f"None of {read:,} stored calls could be validated."
        yield Finding("no-calls", unjudged if read else "There are no stored calls.")


def _regressions(
    regression: Mapping[str, Any] | None, judged_by: Mapping[str, str]
) -> Iterator[Finding]:
    """What a replay says of the tool's regression set; None: it has none, or an older server."""
    if regression is None:
        return
    for one in regression["differences"]:
        side = "arguments" if one["side"] == "args" else "results"
        about = f"case {one['invocation_id']}, {side}"
        schema = judged_by.get(one["side"])
        for path, code in one["new"]:
            text = f"{about}: {code} is not expected"
            yield Finding("regression", text, path, f"{text} {schema}")
        for path, code in one["gone"]:
            text = f"{about}: {code} is expected, and does not occur"
            yield Finding("regression", text, path, f"{text} {schema}")
    listed = len({one["invocation_id"] for one in regression["differences"]})
    if regression["differing"] > listed:
        more = regression["differing"] - listed
        yield Finding("regression", f"{more:,} further cases of the set differ.")
    if regression["not_judged"]:
        cases = f"{regression['not_judged']:,} cases of the regression set"
        yield Finding("not-compared", f"{cases} could not be judged.")
