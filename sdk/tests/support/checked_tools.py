"""Reports of `tooltrail check` with every rule and with hostile texts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tooltrail.cli.check.definitions import Definition
from tooltrail.cli.check.report import RULES, CheckedTool, Finding, Report

HOSTILE = (
    'x"]]><failure/>&\x00\x1b[31m\x9b\ud800\u202e\n::error::[a](http://evil) ##vso[task] ##[group]'
)


def compared(**members: Any) -> Mapping[str, Any]:
    """What the server answers about a tool."""
    return {
        "name": "get_weather",
        "status": "changed",
        "tool_id": "0198c0de-0000-7000-8000-000000000001",
        "version": 3,
        "callers": "breaking",
        "consumers": "compatible",
        "change_count": 0,
        "changes": [],
        "problems": [],
        "notes": [],
        "input_schema": {},
        "output_schema": None,
        **members,
    }


def report_of_every_rule() -> Report:
    """A tool for each rule, with that finding."""
    tools = [
        CheckedTool(
            Definition(f"tools.json: tools[{n}]", {}, file=Path("a b/tools.json"), line=n + 1),
            compared(name=f"tool_{n}"),
            [Finding(rule, meaning, "$.city")],
        )
        for n, (rule, meaning) in enumerate(RULES.items())
    ]
    return Report("http://127.0.0.1", tools, [])


def hostile_report() -> Report:
    """A tool whose name, path and texts are hostile, from no file."""
    tool = CheckedTool(
        Definition(HOSTILE, {}),
        compared(name=HOSTILE),
        [Finding("breaks-callers", HOSTILE, HOSTILE), Finding("no-calls", HOSTILE)],
        {"calls": 3, "state": "done"},
        f"http://127.0.0.1/{HOSTILE}",
    )
    return Report("http://127.0.0.1", [tool], [HOSTILE])
