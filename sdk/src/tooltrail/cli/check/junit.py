"""The report of a check as JUnit XML, as CI systems read it. Pure.

A tool is a suite with the cases *contract* and, if calls were replayed, *replay*. A case whose
breaks are all accepted is *skipped*, with the reasons.
"""

from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree  # it only writes

from tooltrail.cli.check.report import BREAKS, INCOMPLETE, CheckedTool, Finding, Report
from tooltrail.cli.check.text import quoted

_OF_REPLAYS: Final = (
    *("new-violations", "regression", "not-replayed", "no-regression-set", "no-calls"),
)


def document(report: Report) -> bytes:
    """The report as XML."""
    root = ElementTree.Element("testsuites", {"name": "tooltrail check"})
    totals = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for tool in report.tools:
        suite = _suite(tool)
        root.append(suite)
        for name in totals:
            totals[name] += int(suite.attrib[name])
    root.attrib |= {name: str(count) for name, count in totals.items()}
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(tool: CheckedTool) -> ElementTree.Element:
    of_replay = [one for one in tool.findings if one.rule in _OF_REPLAYS]
    of_contract = [one for one in tool.findings if one.rule not in _OF_REPLAYS]
    cases = [_case(tool, "contract", of_contract)]
    if tool.unused:
        lines = "\n".join(f"policy: {quoted(one)}" for one in tool.unused)
        ElementTree.SubElement(cases[0], "system-err").text = lines
    if of_replay or tool.replay is not None:
        cases.append(_case(tool, "replay", of_replay))
    counts = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": sum(case.find("error") is not None for case in cases),
        "skipped": sum(case.find("skipped") is not None for case in cases),
    }
    suite = ElementTree.Element("testsuite", {"name": quoted(tool.name)})
    suite.attrib |= {name: str(count) for name, count in counts.items()}
    suite.extend(cases)
    return suite


def _case(tool: CheckedTool, name: str, findings: Sequence[Finding]) -> ElementTree.Element:
    case = ElementTree.Element("testcase", {"classname": quoted(tool.name), "name": name})
    if tool.definition.file is not None:
        case.set("file", quoted(str(tool.definition.file)))
        case.set("line", str(tool.definition.line))
    for element, rules in (("failure", BREAKS), ("error", INCOMPLETE)):
        some = [one for one in findings if one.rule in rules and one.accepted is None]
        if some:
            attributes = {"type": some[0].rule, "message": _line(some[0])}
            ElementTree.SubElement(case, element, attributes).text = _lines(some)
            return case  # a case has one result
    accepted = [one for one in findings if one.accepted is not None]
    if accepted:
        message = {"message": _line(accepted[0])}
        ElementTree.SubElement(case, "skipped", message).text = _lines(accepted)
    elif findings:
        ElementTree.SubElement(case, "system-out").text = _lines(findings)
    return case


def _lines(findings: Sequence[Finding]) -> str:
    return "\n".join(map(_line, findings))


def _line(finding: Finding) -> str:
    text = f"{finding.rule} {finding.path}: {finding.message}".replace(" : ", ": ")
    if finding.accepted is not None:
        text = f"{text} Accepted until {finding.accepted.until}: {finding.accepted.reason}"
    return quoted(text)
