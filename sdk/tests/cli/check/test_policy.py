"""Policies of `tooltrail check`: what is accepted, in every form of a report, and what never is."""

import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema_rs
import junitparser
import pytest
from tooltrail.cli.check import junit, sarif, text
from tooltrail.cli.check.definitions import CheckError, Definition
from tooltrail.cli.check.policy import (
    FORMAT,
    Accepted,
    Policy,
    RequiredSet,
    document_of,
    entries_for,
    read_policy,
)
from tooltrail.cli.check.report import (
    ACCEPTABLE,
    BREAKS,
    RULES,
    CheckedTool,
    Finding,
    Report,
    findings_of_comparison,
    findings_of_replay,
)

from sdk.tests.support.checked_tools import HOSTILE, compared

TODAY = date(2026, 11, 27)
LATER = date(2026, 12, 31)


def change(**members: Any) -> dict[str, Any]:
    """A difference that breaks callers."""
    return {
        "side": "input",
        "path": "$.city",
        "keyword": "maxLength",
        "before": 50,
        "after": 10,
        "verdict": "breaking",
        "reason": "Narrower.",
        **members,
    }


def tool_with(*changes: dict[str, Any], **members: Any) -> CheckedTool:
    """A tool with these differences, whose calls were replayed without a finding."""
    answer = compared(changes=list(changes), change_count=len(changes), **members)
    findings = list(findings_of_comparison(answer))
    return CheckedTool(Definition("", {}), answer, findings, {"state": "done", "calls": 0})


def accepting(tool: CheckedTool, *, reason: str = "agreed", until: date = LATER) -> Policy:
    """A policy that accepts all that breaks."""
    ids = [one.id_in(tool.name) for one in tool.findings if one.rule in BREAKS]
    return Policy(entries_for([tool], ids, reason, until))


def test_accepted_break_is_in_every_form(
    tmp_path: Path, sarif_schema: jsonschema_rs.Draft4Validator
) -> None:
    tool = tool_with(change())
    policy = accepting(tool, reason=f"Callers are changed. {HOSTILE}")
    policy.apply([tool], TODAY)
    report = Report("http://127.0.0.1", [tool], [])
    assert (tool.verdict, report.exit_code, report.counts["accepted"]) == ("accepted", 0, 1)
    (finding,) = json.loads(json.dumps(report.document()))["tools"][0]["findings"]
    assert finding["accepted"]["until"] == "2026-12-31"
    lines = list(text.lines(report))
    assert any(line.startswith("      accepted until 2026-12-31: Callers") for line in lines)
    assert all(line.isprintable() for line in lines)
    document = json.loads(json.dumps(sarif.document(report)))
    sarif_schema.validate(document)
    (result,) = document["runs"][0]["results"]
    (suppression,) = result["suppressions"]
    assert (suppression["kind"], suppression["status"]) == ("external", "accepted")
    assert "until 2026-12-31" in suppression["justification"]
    (tmp_path / "check.xml").write_bytes(junit.document(report))
    read = junitparser.JUnitXml.fromfile(str(tmp_path / "check.xml"))
    assert (read.failures, read.skipped) == (0, 1)
    (suite,) = read
    assert "Accepted until 2026-12-31" in next(iter(suite)).result[0].text


def test_break_that_is_not_listed_fails(tmp_path: Path) -> None:
    """Whatever differs from what was accepted, if only a little, is another break."""
    policy = accepting(tool_with(change()))
    others = [
        change(after=9),
        change(before=51),
        change(keyword="pattern"),
        change(path="$.town"),
        change(side="output"),
        change(verdict="unknown"),
    ]
    for other in others:
        tool = tool_with(change(), other)
        policy.apply([tool], TODAY)
        assert [one.accepted is None for one in tool.findings] == [False, True], other
        report = Report("", [tool], [])
        assert (report.exit_code, tool.verdict) == (1, "breaks")
        (tmp_path / "check.xml").write_bytes(junit.document(report))
        assert junitparser.JUnitXml.fromfile(str(tmp_path / "check.xml")).failures == 1
    renamed = tool_with(change(), name="other")
    policy.apply([renamed], TODAY)
    assert renamed.verdict == "breaks"


def test_value_that_the_server_cut_counts_with_the_whole_schema() -> None:
    cut = change(after="x" * 500 + "…")
    policy = accepting(tool_with(cut, input_schema={"enum": [1]}))
    for schema, verdict in (({"enum": [1]}, "accepted"), ({"enum": [2]}, "breaks")):
        tool = tool_with(cut, input_schema=schema)
        policy.apply([tool], TODAY)
        assert tool.verdict == verdict


def test_what_stands_for_others_that_are_not_listed_cannot_be_accepted() -> None:
    kind = {"side": "args", "path": "$.a", "code": "X", "new": 1}
    sides = [{"side": "args", "judged": 3}]
    replay = {"calls": 3, "newly_violating": 1, "sides": sides, "kinds": []}
    many = [{**kind, "path": f"$.a{n}"} for n in range(200)]
    regression = {"differing": 2, "not_judged": 0, "differences": []}
    unlisted = [
        *findings_of_replay(replay),
        *findings_of_replay({**replay, "kinds": many}),
        *findings_of_replay({**replay, "newly_violating": 0, "regression": regression}),
        *findings_of_comparison(compared(changes=[change()], change_count=201)),
    ]
    breaking = [one for one in unlisted if one.rule in BREAKS]
    assert len(breaking) == 203
    assert {one.id_in("get_weather") for one in breaking} == {""}
    (listed,) = findings_of_replay({**replay, "kinds": [kind]})
    assert listed.id_in("x")


def test_violations_of_another_schema_are_another_break() -> None:
    kind = {"side": "args", "path": "$.a", "code": "X", "new": 1}
    replay = {"calls": 3, "newly_violating": 1, "sides": [{"judged": 1}], "kinds": [kind]}
    case = {"invocation_id": "a", "side": "args", "new": [["$.a", "X"]], "gone": []}
    replay["regression"] = {"differing": 1, "not_judged": 0, "differences": [case]}
    ids = [
        [one.id_in("t") for one in findings_of_replay({**replay, **more}, {"args": schema})]
        for schema, more in (({"a": 1}, {}), ({"a": 1}, {"calls": 9}), ({"a": 2}, {}))
    ]
    assert ids[0] == ids[1], "more calls of the same kind are no other break"
    assert not set(ids[0]) & set(ids[2])
    assert len(set(ids[0])) == 2


def test_acceptance_that_is_over_says_so() -> None:
    tool = tool_with(change())
    accepting(tool, until=date(2026, 11, 26)).apply([tool], TODAY)
    assert (tool.verdict, len(tool.unused)) == ("breaks", 1)
    assert "was accepted until 2026-11-26" in "\n".join(text.lines(Report("", [tool], [])))
    accepting(tool, until=TODAY).apply([tool], TODAY)
    assert tool.verdict == "accepted"


def test_break_that_no_longer_occurs_is_said() -> None:
    policy = accepting(tool_with(change()))
    mended = tool_with()
    policy.apply([mended], TODAY)
    report = Report("", [mended], [])
    assert report.exit_code == 0
    assert any("does not occur. Remove" in line for line in text.lines(report))
    assert mended.unused == report.document()["tools"][0]["unused"]
    (invocation,) = sarif.document(report)["runs"][0]["invocations"]
    assert "does not occur" in invocation["toolExecutionNotifications"][0]["message"]["text"]
    assert b"does not occur" in junit.document(report)
    # Another tool of another run says nothing about it, nor does a check without its replay.
    elsewhere = tool_with(name="other")
    policy.apply([elsewhere], TODAY)
    assert elsewhere.unused == []
    kind = Finding("new-violations", "", "$.a", "X")
    identity = kind.id_in("get_weather")
    of_replay = Policy([Accepted(identity, "get_weather", kind.rule, "$.a", "x", LATER)])
    not_replayed = replace(tool_with(change()), replay=None)
    of_replay.apply([not_replayed], TODAY)
    assert not_replayed.unused == []


def test_entry_must_say_what_it_accepts() -> None:
    """A reviewer reads tool, rule and path, and not the id."""
    tool = tool_with(change())
    (entry,) = accepting(tool).accepted
    for wrong in ({"path": "$.harmless"}, {"rule": "undecided-callers"}):
        other = replace(entry, **wrong)  # type: ignore[arg-type]  # one of its members
        Policy([other]).apply([tool], TODAY)
        assert (tool.verdict, len(tool.unused)) == ("breaks", 1)
        tool.unused.clear()


def written(folder: Path, document: Any, name: str = "policy.json") -> Path:
    (folder / name).write_text(document if isinstance(document, str) else json.dumps(document))
    return folder / name


ENTRY = {
    "id": "0123456789abcdef",
    "tool": "get_weather",
    "rule": "breaks-callers",
    "path": "$.city",
    "reason": "agreed",
    "until": "2026-12-31",
}


def test_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    (entry,) = read_policy(written(tmp_path, file_with(accepted=[ENTRY]))).accepted
    policy = Policy([entry], {"get_weather": RequiredSet("get_weather", "long", 2, 3)})
    again = read_policy(written(tmp_path, document_of(policy)))
    assert again == policy
    yaml = (
        f"format: {FORMAT}\nversion: 1\nregression_sets: [{{tool: get_weather}}]\n"
        'accepted:\n  - {id: "0123456789abcdef", tool: get_weather, rule: regression,'
        ' reason: "ab c", until: "2026-12-31"}\n'
    )
    assert read_policy(written(tmp_path, yaml, "policy.yaml")).accepted[0].path == ""


def test_documented_policy_is_read(tmp_path: Path) -> None:
    document = (Path(__file__).parents[4] / "docs" / "check.md").read_text()
    (block,) = re.findall(r"^```json\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    policy = read_policy(written(tmp_path, block))
    assert [one.shown for one in policy.accepted] == ["get_weather breaks-callers $.city"]
    assert policy.required == {"get_weather": RequiredSet("get_weather", "regression", cases=5)}


def file_with(**members: Any) -> dict[str, Any]:
    return {"format": FORMAT, "version": 1, **members}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("{", "invalid JSON"),
        ([], "is no policy"),
        ({"accepted": []}, "is no policy"),
        (file_with(version=2), "version must be 1"),
        (file_with(accept=[]), "accept is unknown"),
        (file_with(accepted={}), "accepted is no list"),
        (file_with(accepted=["x"]), "accepted[0] is no object"),
        (file_with(accepted=[ENTRY, ENTRY]), "twice"),
        (file_with(accepted=[ENTRY | {"id": "x"}]), "accepted[0].id"),
        (file_with(accepted=[ENTRY | {"rule": "refused"}]), "cannot be accepted"),
        (file_with(accepted=[ENTRY | {"rule": "not-replayed"}]), "cannot be accepted"),
        (file_with(accepted=[ENTRY | {"reason": " "}]), "says nothing"),
        (file_with(accepted=[ENTRY | {"reason": ""}]), "reason is missing"),
        (file_with(accepted=[ENTRY | {"reason": "x" * 501}]), "longer than 500"),
        (file_with(accepted=[ENTRY | {"until": "soon"}]), "no day"),
        (file_with(accepted=[ENTRY | {"until": "2026-02-30"}]), "no day"),
        (file_with(accepted=[ENTRY | {"until": None}]), "until is missing"),
        (file_with(accepted=[ENTRY | {"more": 1}]), "accepted[0].more is unknown"),
        (file_with(regression_sets=[{}]), "regression_sets[0].tool is missing"),
        (file_with(regression_sets=[{"tool": "a", "cases": 0}]), "cases must be"),
        (file_with(regression_sets=[{"tool": "a", "version": True}]), "version must be"),
        (file_with(regression_sets=[7]), "regression_sets[0] is no object"),
    ],
    ids=str,
)
def test_wrong_file_is_explained(tmp_path: Path, document: Any, problem: str) -> None:
    with pytest.raises(CheckError) as error:
        read_policy(written(tmp_path, document))
    assert problem in str(error.value)


def test_only_what_breaks_can_be_accepted() -> None:
    tools = [
        CheckedTool(Definition("", {}), compared(name=rule), [Finding(rule, "", "", "x")])
        for rule in RULES
    ]
    for tool in tools:
        identity = tool.findings[0].id_in(tool.name)
        assert bool(identity) == (tool.name in ACCEPTABLE)
    assert {*BREAKS} - {*ACCEPTABLE} == {"refused"}
    with pytest.raises(CheckError, match="no break has the id"):
        entries_for(tools, ["0" * 16], "x", LATER)


@pytest.mark.parametrize(
    ("required", "newest", "is_there"),
    [
        ({}, None, False),
        ({}, {"label": "", "number": 2, "case_count": 0}, False),
        ({}, {"label": "a", "number": 1, "case_count": 1}, True),
        ({"label": "b"}, {"label": "a", "number": 1, "case_count": 1}, False),
        ({"version": 2}, {"label": "a", "number": 3, "case_count": 1}, False),
        (
            {"version": 3, "cases": 4},
            {"label": "a", "number": 3, "case_count": 4},
            True,
        ),
        ({"cases": 5}, {"label": "a", "number": 3, "case_count": 4}, False),
    ],
)
def test_required_set(required: dict[str, Any], newest: Any, is_there: bool) -> None:
    assert (RequiredSet("t", **required).why_missing(newest) == "") == is_there
