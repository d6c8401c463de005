"""The forms of a report of `tooltrail check`: text, JSON, SARIF and JUnit."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import junitparser
import pytest
from tooltrail.cli.check import junit, sarif, text
from tooltrail.cli.check.definitions import Definition
from tooltrail.cli.check.report import (
    BREAKS,
    INCOMPLETE,
    RULES,
    CheckedTool,
    Report,
    findings_of_comparison,
    findings_of_replay,
)

from sdk.tests.support.checked_tools import compared, hostile_report, report_of_every_rule

REPORTS = {"every_rule": report_of_every_rule, "hostile": hostile_report}


@pytest.mark.parametrize("name", REPORTS)
def test_sarif_is_valid(name: str, sarif_schema: jsonschema_rs.Draft4Validator) -> None:
    document = sarif.document(REPORTS[name]())
    sarif_schema.validate(json.loads(json.dumps(document)))
    broken = document | {"version": "2.0.0"}
    assert not sarif_schema.is_valid(broken)  # so that the schema is no empty one


def test_sarif_names_rule_level_and_place_of_each_finding() -> None:
    (run,) = sarif.document(report_of_every_rule())["runs"]
    rules = [one["id"] for one in run["tool"]["driver"]["rules"]]
    assert rules == list(RULES)
    for number, result in enumerate(run["results"]):
        assert rules[result["ruleIndex"]] == result["ruleId"] == rules[number]
        fails = result["ruleId"] in (*BREAKS, *INCOMPLETE)
        assert result["level"] == ("error" if fails else "note")
        (location,) = result["locations"]
        assert location["physicalLocation"] == {
            "artifactLocation": {"uri": "a%20b/tools.json"},
            "region": {"startLine": number + 1},
        }
    prints = [one["partialFingerprints"]["tooltrail/v1"] for one in run["results"]]
    assert len(set(prints)) == len(prints)


def test_sarif_messages_hold_no_links() -> None:
    (run,) = sarif.document(hostile_report())["runs"]
    for result in run["results"]:
        assert not re.search(r"(?<!\\)\[", result["message"]["text"])
        assert "physicalLocation" not in result["locations"][0]


@pytest.mark.parametrize("name", REPORTS)
def test_junit_is_read_by_others(name: str, tmp_path: Path) -> None:
    report = REPORTS[name]()
    (tmp_path / "check.xml").write_bytes(junit.document(report))
    read = junitparser.JUnitXml.fromfile(str(tmp_path / "check.xml"))
    suites = list(read)
    assert len(suites) == len(report.tools)
    for suite, tool in zip(suites, report.tools, strict=True):
        rules = {each.rule for each in tool.findings}
        kinds = [type(result) for case in suite for result in case.result]
        assert (junitparser.Failure in kinds) == bool(rules & {*BREAKS})
        assert (junitparser.Error in kinds) == bool(rules & {*INCOMPLETE})
    breaking = [tool for tool in report.tools if tool.verdict == "breaks"]
    assert read.failures == len(breaking) > 0
    assert read.tests == sum(suite.tests for suite in suites)


def test_junit_keeps_contract_and_replay_apart(tmp_path: Path) -> None:
    (tmp_path / "check.xml").write_bytes(junit.document(hostile_report()))
    (suite,) = junitparser.JUnitXml.fromfile(str(tmp_path / "check.xml"))
    assert [(case.name, len(case.result)) for case in suite] == [("contract", 1), ("replay", 0)]


def test_text_cannot_command_terminals_and_runners() -> None:
    lines = list(text.lines(hostile_report()))
    for line in lines:
        assert line.isprintable()
        assert not line.lstrip().startswith(("::", "##"))
        assert not re.search(r"##(\[|vso\[)", line)
    assert lines[0].startswith("breaks: x")


def test_text_is_cut() -> None:
    tool = CheckedTool(Definition("", {}), compared(name="x" * 10_000))
    assert all(len(line) < 1_000 for line in text.lines(Report("", [tool], [])))


CHANGES = [
    {"side": "input", "path": "$.a", "keyword": "type", "verdict": "breaking", "reason": "R."},
    {"side": "output", "path": "$.b", "keyword": "pattern", "verdict": "unknown", "reason": "R."},
    {"side": "output", "path": "$.c", "keyword": "type", "verdict": "compatible", "reason": "R."},
    {"side": "contract", "path": "meta", "keyword": "meta", "verdict": "compatible", "reason": ""},
]


def test_comparison_becomes_findings() -> None:
    answer = compared(changes=CHANGES, change_count=7, problems=["wrong"], notes=["left out"])
    assert [(one.rule, one.path) for one in findings_of_comparison(answer)] == [
        ("refused", ""),
        ("not-compared", ""),
        ("breaks-callers", "$.a"),
        ("undecided-consumers", "$.b"),
        ("not-compared", ""),
    ]


def replayed(**members: Any) -> dict[str, Any]:
    """A replay that is done."""
    sides = [{"side": "args", "judged": 3}, {"side": "output", "judged": 3}]
    return {"calls": 3, "newly_violating": 0, "sides": sides, "kinds": [], **members}


def test_replay_becomes_findings() -> None:
    kind = {"side": "args", "path": "$.city", "code": "WRONG_TYPE", "new": 2}
    old = kind | {"path": "$.old", "new": 0}
    assert list(findings_of_replay(replayed())) == []
    (new,) = findings_of_replay(replayed(kinds=[kind, old], newly_violating=2))
    assert (new.rule, new.path) == ("new-violations", "$.city")
    assert "2 stored calls" in new.message
    (unlisted,) = findings_of_replay(replayed(newly_violating=1))  # of a kind beyond the limit
    assert unlisted.rule == "new-violations"
    difference = {
        "invocation_id": "a",
        "side": "args",
        "new": [["$.a", "X"]],
        "gone": [["$.b", "Y"]],
    }
    regression = {"differing": 3, "not_judged": 1, "differences": [difference]}
    findings = list(findings_of_replay(replayed(regression=regression)))
    assert [(one.rule, one.path) for one in findings] == [
        ("regression", "$.a"),
        ("regression", "$.b"),
        ("regression", ""),
        ("not-compared", ""),
    ]
    assert "2 further cases" in findings[2].message
    assert list(findings_of_replay(replayed(regression=None))) == []
    none = [{"side": "args", "judged": 0}, {"side": "output", "judged": 0}]
    for calls in (0, 3):
        (nothing,) = findings_of_replay(replayed(sides=none, calls=calls))
        assert nothing.rule == "no-calls"


@pytest.mark.parametrize("rule", RULES)
def test_exit_code_says_what_is_certain(rule: str) -> None:
    report = report_of_every_rule()
    report.tools = [one for one in report.tools if one.findings[0].rule == rule]
    assert report.exit_code == (1 if rule in BREAKS else 2 if rule in INCOMPLETE else 0)
    assert report_of_every_rule().exit_code == 1  # a break is certain, whatever was not checked
    assert json.loads(json.dumps(report.document()))["exit_code"] == report.exit_code
