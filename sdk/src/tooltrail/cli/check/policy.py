"""The policy of a check: a file beside the definitions, in which people say what may differ.

`accepted` names breaks that are wanted, each with a reason and a day on which that ends.
`regression_sets` names tools that may not change without a regression set to be judged by.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

from tooltrail.cli.check.definitions import CheckError, read_document
from tooltrail.cli.check.report import ACCEPTABLE, Acceptance, CheckedTool

FORMAT: Final = "tooltrail-check-policy"
_ID: Final = re.compile(r"[0-9a-f]{16}")
_TEXT_MAX: Final = 500
_ENTRY: Final = ("id", "tool", "rule", "path", "reason", "until")
_SET: Final = ("tool", "label", "version", "cases")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A break that somebody has accepted."""

    id: str
    """Of the finding: what breaks whom, where, and how. Another break has another one."""
    tool: str
    rule: str
    path: str
    """These three are for readers. They must be those of the finding."""
    reason: str
    until: date
    """The last day on which it counts."""

    @property
    def shown(self) -> str:
        """What it is about, for people."""
        return " ".join(filter(None, (self.tool, self.rule, self.path)))


@dataclass(frozen=True, slots=True)
class RequiredSet:
    """A regression set that a tool must have on the server."""

    tool: str
    label: str = ""
    """Of the calls that it is made of; '': any."""
    version: int | None = None
    """Of the set; None: any."""
    cases: int = 1
    """How many cases it has at least."""

    def why_missing(self, newest: Mapping[str, Any] | None) -> str:
        """Why the newest version of a set is not this one; '' if it is. None: there is none."""
        if newest is None or not newest["label"]:
            return "The policy requires a regression set, and the tool has none."
        if self.label and newest["label"] != self.label:
            return f"The regression set is of the label {newest['label']}, not {self.label}."
        if self.version is not None and newest["number"] != self.version:
            return f"The regression set is version {newest['number']}, not {self.version}."
        if newest["case_count"] < self.cases:
            return f"The regression set has {newest['case_count']} cases, fewer than {self.cases}."
        return ""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a file says; without one nothing is accepted and nothing required."""

    accepted: Sequence[Accepted] = ()
    required: Mapping[str, RequiredSet] = field(default_factory=dict[str, RequiredSet])

    def apply(self, tools: Iterable[CheckedTool], today: date) -> None:
        """Mark the findings that are accepted, and say of each tool which entries do nothing.

        An entry about a tool that was not checked says nothing.
        """
        by_name = {one.name: one for one in tools}
        for entry in self.accepted:
            tool = by_name.get(entry.tool)
            if tool is None:
                continue
            matching = [one for one in tool.findings if one.id_in(tool.name) == entry.id]
            if not matching:
                if entry.rule in tool.judged_rules:
                    text = f"{entry.shown} is accepted, and does not occur. Remove {entry.id}."
                    tool.unused.append(text)
            elif any((one.rule, one.path) != (entry.rule, entry.path) for one in matching):
                tool.unused.append(f"{entry.id} is not {entry.shown}: it accepts nothing.")
            elif entry.until < today:
                tool.unused.append(f"{entry.shown} was accepted until {entry.until}.")
            else:
                for one in matching:
                    tool.accept(one, Acceptance(entry.reason, entry.until))


def read_policy(path: Path) -> Policy:
    """A policy of JSON or YAML. Raises CheckError."""
    document = read_document(path)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CheckError(f"{path}: is no policy: format must be {FORMAT}")
    _refuse_unknown(path, "", document, ("format", "version", "accepted", "regression_sets"))
    if document.get("version") != 1:
        raise CheckError(f"{path}: version must be 1")
    accepted = [
        _accepted(path, f"accepted[{n}]", one) for n, one in _members(path, document, "accepted")
    ]
    sets = [
        _required(path, f"regression_sets[{n}]", one)
        for n, one in _members(path, document, "regression_sets")
    ]
    if twins := {one.id for one in accepted if [each.id for each in accepted].count(one.id) > 1}:
        raise CheckError(f"{path}: accepts {min(twins)} twice")
    return Policy(accepted, {one.tool: one for one in sets})


def entries_for(
    tools: Iterable[CheckedTool], wanted: Sequence[str], reason: str, until: date
) -> list[Accepted]:
    """Entries that accept findings by their ids. Raises CheckError for an id that is not there."""
    breaks = {
        one.id_in(tool.name): (tool, one)
        for tool in tools
        for one in tool.findings
        if one.rule in ACCEPTABLE
    }
    entries = []
    for each in dict.fromkeys(wanted):
        if each not in breaks:
            raise CheckError(f"no break has the id {each}: nothing is accepted")
        tool, one = breaks[each]
        entries.append(Accepted(each, tool.name, one.rule, one.path, reason, until))
    return entries


def document_of(policy: Policy) -> dict[str, Any]:
    """A policy as a file has it."""
    sets = [
        {name: value for name in _SET if (value := getattr(one, name)) not in ("", None)}
        for one in policy.required.values()
    ]
    accepted = [
        {name: getattr(one, name) for name in _ENTRY} | {"until": str(one.until)}
        for one in policy.accepted
    ]
    return {"format": FORMAT, "version": 1, "regression_sets": sets, "accepted": accepted}


def _members(path: Path, document: Mapping[str, Any], name: str) -> Iterator[tuple[int, Any]]:
    listed = document.get(name, [])
    if not isinstance(listed, list):
        raise CheckError(f"{path}: {name} is no list")
    return enumerate(listed)


def _accepted(path: Path, place: str, one: Any) -> Accepted:
    texts = _texts(path, place, one, _ENTRY, {"path": ""})
    if not _ID.fullmatch(texts["id"]):
        raise CheckError(f"{path}: {place}.id is none of a finding: tooltrail check prints them")
    if texts["rule"] not in ACCEPTABLE:
        raise CheckError(f"{path}: {place}.rule cannot be accepted: {texts['rule']}")
    if len(texts["reason"].strip()) < 3:
        raise CheckError(f"{path}: {place}.reason says nothing")
    return Accepted(**{**texts, "until": read_day(texts["until"], f"{path}: {place}.until")})


def _required(path: Path, place: str, one: Any) -> RequiredSet:
    given = dict(one) if isinstance(one, dict) else one
    numbers = {}
    for name in ("version", "cases"):
        number = given.pop(name, None) if isinstance(given, dict) else None
        if number is not None and (type(number) is not int or number < 1):
            raise CheckError(f"{path}: {place}.{name} must be a whole number, 1 or more")
        numbers[name] = number
    texts = _texts(path, place, given, ("tool", "label"), {"label": ""})
    return RequiredSet(texts["tool"], texts["label"], numbers["version"], numbers["cases"] or 1)


def _texts(
    path: Path, place: str, one: Any, names: Sequence[str], defaults: Mapping[str, str]
) -> dict[str, Any]:
    if not isinstance(one, dict):
        raise CheckError(f"{path}: {place} is no object")
    _refuse_unknown(path, f"{place}.", one, names)
    texts = {}
    for name in names:
        value = one.get(name, defaults.get(name))
        if not isinstance(value, str) or (not value and name not in defaults):
            raise CheckError(f"{path}: {place}.{name} is missing, or no text")
        if len(value) > _TEXT_MAX and name != "path":
            raise CheckError(f"{path}: {place}.{name} is longer than {_TEXT_MAX} characters")
        texts[name] = value
    return texts


def _refuse_unknown(path: Path, place: str, one: Mapping[str, Any], known: Sequence[str]) -> None:
    if unknown := sorted(one.keys() - set(known)):
        raise CheckError(f"{path}: {place}{unknown[0]} is unknown")


def read_day(text: str, what: str) -> date:
    """A day as ISO 8601 has it. Raises CheckError."""
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise CheckError(f"{what}: no day such as 2026-12-31: {text}")
