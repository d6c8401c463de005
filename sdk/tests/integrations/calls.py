"""Runs the script of a framework in an environment of its own, and pairs the events it recorded."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tooltrail.events import EVENT
from tooltrail.mcp_results import read_result

HERE = Path(__file__).parent
SDK = HERE.parents[1]
_TIMEOUT_S = 600


@dataclass
class RecordedCall:
    """One call: its start, and the events that ended it."""

    start: dict[str, Any]
    ends: list[dict[str, Any]] = field(default_factory=list)

    @property
    def id(self) -> str:
        return str(self.start["invocation_id"])

    @property
    def parent(self) -> str | None:
        return self.start.get("parent_invocation_id")

    @property
    def output(self) -> Any:
        [end] = self.ends
        return end["output"]

    @property
    def data(self) -> Any:
        """What the tool returned, inside an MCP result, too."""
        data, [end] = self.output["data"], self.ends
        if "output_type" not in end:
            return data
        result = read_result(data)
        assert result is not None
        return result.value

    @property
    def state(self) -> str:
        [end] = self.ends
        return end.get("call_state") or ("failed" if end["is_error"] else "ok")


@dataclass
class Recording:
    """What one framework's script recorded."""

    calls: list[RecordedCall]
    decisions: list[dict[str, Any]]
    beside: dict[str, Any] | None
    """Events and spans of one more call, with OpenTelemetry on."""

    def of(self, tool: str) -> list[RecordedCall]:
        return [call for call in self.calls if call.start["tool_name"] == tool]

    def one(self, tool: str) -> RecordedCall:
        [call] = self.of(tool)
        return call


def command_in_environment(
    framework: str, script: Path, *arguments: str, needs: Iterable[str] = ()
) -> list[str]:
    """The command that runs a script with exactly a framework's versions, and `needs`."""
    uv = os.environ.get("UV") or shutil.which("uv")
    assert uv, "the adapters' tests need uv"
    return [
        *(uv, "run", "--quiet", "--isolated", "--no-project", "--python", sys.executable),
        *("--with-requirements", str(HERE / framework / "requirements.txt")),
        *(word for need in needs for word in ("--with", need)),
        *("--with-editable", str(SDK), "python", str(script), *arguments),
    ]


def run_in_environment(
    framework: str,
    script: Path,
    *arguments: str,
    needs: Iterable[str] = (),
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a script with exactly the versions of the framework's `requirements.txt`, and `needs`."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TOOLTRAIL_", "OTEL_", "VIRTUAL_ENV", "PYTHONPATH"))
    }
    quiet = {"DO_NOT_TRACK": "1", "CREWAI_DISABLE_TELEMETRY": "true"}
    return subprocess.run(
        command_in_environment(framework, script, *arguments, needs=needs),
        env={**inherited, **quiet, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )


def run(framework: str, out: Path) -> Recording:
    """Run `<framework>/run.py`, also with the instrumentations of its `beside.txt`, if it has one.

    Fails if its requirements cannot be installed, if it fails, or if the server would reject an
    event.
    """
    folder = HERE / framework
    needs = [line for each in folder.glob("beside.txt") for line in each.read_text().split()]
    ran = run_in_environment(framework, folder / "run.py", str(out), needs=needs)
    assert ran.returncode == 0, ran.stderr[-4000:]
    calls: dict[str, RecordedCall] = {}
    decisions = []
    written = json.loads(out.read_text())
    assert not needs or written["beside"], "the script made no call beside OpenTelemetry"
    for event in written["events"]:
        EVENT.validate_json(json.dumps(event))
        match event["type"]:
            case "toolExecutionStart":
                assert event["invocation_id"] not in calls, "the same start twice"
                calls[event["invocation_id"]] = RecordedCall(event)
            case "toolExecutionEnd":
                calls[event["invocation_id"]].ends.append(event)
            case "toolCallDecision":
                decisions.append(event)
    return Recording(list(calls.values()), decisions, written["beside"])
