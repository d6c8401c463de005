"""What a check found. Pure.

A finding has a rule. Those of `BREAKS` break somebody, those of `INCOMPLETE` say that something
could not be checked, and the others are notes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
    "new-tool": "The tool is new: nothing to compare with.",
    "no-calls": "There are no stored calls to replay.",
    "not-compared": "A part of the definition is not compared.",
}
"""Each rule of a finding, and what it means."""
BREAKS: Final = (
    *("breaks-callers", "breaks-consumers", "undecided-callers", "undecided-consumers"),
    *("new-violations", "regression", "refused"),
)
INCOMPLETE: Final = ("not-published", "not-replayed")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the check found about a tool."""

    rule: str
    """One of `RULES`."""
    message: str
    path: str = ""
    """Path in the arguments or results, such as `$.rows[*].id`; '' for the whole tool."""

    @property
    def level(self) -> Literal["error", "note"]:
        """`error` if it makes the check fail."""
        return "error" if self.rule in BREAKS or self.rule in INCOMPLETE else "note"


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

    @property
    def name(self) -> str:
        """The tool's name, as the server has read it, or else its place."""
        return str(self.compared["name"]) or self.definition.place

    @property
    def has_changed_schemas(self) -> bool:
        """Whether stored calls may be judged in another way."""
        return any(one["side"] in ("input", "output") for one in self.compared["changes"])

    @property
    def verdict(self) -> Literal["breaks", "not checked", "new", "changed", "unchanged"]:
        """What was found, in a word or two."""
        rules = {one.rule for one in self.findings}
        if rules & {*BREAKS}:
            return "breaks"
        if rules & {*INCOMPLETE}:
            return "not checked"
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
        counts = dict.fromkeys(("breaks", "not checked", "changed", "new", "unchanged"), 0)
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
                        }
                        for each in one.findings
                    ],
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
        yield Finding(rule, f"{side}, {change['keyword']}: {change['reason']}", change["path"])
    more = compared["change_count"] - len(compared["changes"])
    if more > 0:
        yield Finding("not-compared", f"{more:,} further changes are not listed.")


def findings_of_replay(replay: Mapping[str, Any]) -> Iterator[Finding]:
    """What a finished replay found."""
    for kind in replay["kinds"]:
        if kind["new"]:
            side = "arguments" if kind["side"] == "args" else "results"
            calls = f"{kind['new']:,} stored call{'' if kind['new'] == 1 else 's'}"
            yield Finding("new-violations", f"{side}, {kind['code']}: {calls}", kind["path"])
    if replay["newly_violating"] and not any(kind["new"] for kind in replay["kinds"]):
        yield Finding("new-violations", f"{replay['newly_violating']:,} arguments and results")
    yield from _regressions(replay.get("regression"))
    if not any(side["judged"] for side in replay["sides"]):
        read = replay["calls"]
        unjudged = f"None of {read:,} stored calls could be validated."
        yield Finding("no-calls", unjudged if read else "There are no stored calls.")


def _regressions(regression: Mapping[str, Any] | None) -> Iterator[Finding]:
    """What a replay says of the tool's regression set; None: it has none, or an older server."""
    if regression is None:
        return
    for one in regression["differences"]:
        side = "arguments" if one["side"] == "args" else "results"
        about = f"case {one['invocation_id']}, {side}"
        for path, code in one["new"]:
            yield Finding("regression", f"{about}: {code} is not expected", path)
        for path, code in one["gone"]:
            yield Finding("regression", f"{about}: {code} is expected, and does not occur", path)
    listed = len({one["invocation_id"] for one in regression["differences"]})
    if regression["differing"] > listed:
        more = regression["differing"] - listed
        yield Finding("regression", f"{more:,} further cases of the set differ.")
    if regression["not_judged"]:
        cases = f"{regression['not_judged']:,} cases of the regression set"
        yield Finding("not-compared", f"{cases} could not be judged.")
