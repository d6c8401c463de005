"""The report of a check as SARIF 2.1.0, for code scanning. Pure.

Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

import hashlib
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tooltrail.cli.check.definitions import relative
from tooltrail.cli.check.report import RULES, CheckedTool, Finding, Report
from tooltrail.cli.check.text import quoted
from tooltrail.version import __version__

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_RULE_IDS: Final = list(RULES)


def document(report: Report) -> dict[str, Any]:
    """The report as a log of one run."""
    driver = {
        "name": "tooltrail check",
        "version": __version__,
        "informationUri": "https://pypi.org/project/tooltrail/",
        "rules": [
            {"id": rule, "shortDescription": {"text": meaning}} for rule, meaning in RULES.items()
        ],
    }
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [_invocation(report)],
                "results": [_result(tool, each) for tool in report.tools for each in tool.findings],
            }
        ],
    }


def _invocation(report: Report) -> dict[str, Any]:
    texts = [one for tool in report.tools for one in tool.unused]
    unused = [{"level": "note", "message": {"text": _plain(one)}} for one in texts]
    notes = {"toolExecutionNotifications": unused} if unused else {}
    return {"executionSuccessful": report.exit_code != 2, **notes}


def _result(tool: CheckedTool, finding: Finding) -> dict[str, Any]:
    about = f"{tool.name} {finding.path}" if finding.path else tool.name
    identity = "\0".join((finding.rule, tool.name, finding.path)).encode(errors="replace")
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": _RULE_IDS.index(finding.rule),
        "level": finding.level,
        "message": {"text": _plain(f"{about}: {finding.message}")},
        "locations": [_location(tool)],
        "partialFingerprints": {"tooltrail/v1": hashlib.sha256(identity).hexdigest()},
    }
    if (accepted := finding.accepted) is not None:
        justification = quoted(f"{accepted.reason} (until {accepted.until})")
        suppression = {"kind": "external", "status": "accepted", "justification": justification}
        result["suppressions"] = [suppression]
    return result


def _location(tool: CheckedTool) -> dict[str, Any]:
    name = quoted(tool.name)
    location: dict[str, Any] = {"logicalLocations": [{"name": name, "kind": "function"}]}
    if tool.definition.file is not None:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": _uri(relative(tool.definition.file))},
            "region": {"startLine": tool.definition.line},
        }
    return location


def _uri(path: Path) -> str:
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _plain(text: str) -> str:
    """A message's text: brackets would be links (3.11.6)."""
    shown = quoted(text).replace("\\", "\\\\")
    return shown.replace("[", "\\[").replace("]", "\\]")
