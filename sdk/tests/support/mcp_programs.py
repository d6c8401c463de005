"""Real clients and servers of MCP, of PyPI and npm, and what is recorded of a session of theirs."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tooltrail.events import EVENT

from sdk.tests.support.mcp_client import spooled

REAL = Path(__file__).parents[1] / "mcp_recorder" / "real"
NPM = {
    "everything": "@modelcontextprotocol/server-everything@2026.8.31",
    "filesystem": "@modelcontextprotocol/server-filesystem@2026.8.31",
    "memory": "@modelcontextprotocol/server-memory@2026.8.31",
    "sdk": "@modelcontextprotocol/sdk@1.32.2",
}
WEATHER = [["get_weather", {"city": "London"}], ["get_weather", {"city": "Atlantis"}]]
_OLD_PYDANTIC = "pydantic==2.11.7"  # mcp 1 imports what later ones do not have
TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Case:
    """A server, the client that calls it, and what is recorded of its calls."""

    client: str
    server: str
    calls: list[list[Any]]
    protocol: str
    states: tuple[str, ...] = ("ok", "failed")


def npm_folder() -> Path:
    """Where the servers of npm are installed; once for all processes of these tests."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("servers of npm need Node.js")
    folder = Path(sys.prefix) / "recorded-mcp-servers"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            command = [npm, "install", "--no-fund", "--no-audit", "--no-package-lock"]
            subprocess.run(
                [*command, "--prefix", str(folder), *NPM.values()],
                check=True,
                capture_output=True,
                timeout=TIMEOUT_SECONDS,
            )
            (folder / "complete").touch()
    return folder


def npm_server(name: str) -> list[str]:
    """The command of a server of npm, without its arguments."""
    package = NPM[name].rpartition("@")[0]
    return ["node", str(npm_folder() / "node_modules" / package / "dist" / "index.js")]


def with_packages(requirement: str) -> list[str]:
    """The command that runs Python with a package."""
    uv = os.environ.get("UV") or shutil.which("uv")
    assert uv, "these tests need uv"
    return [
        *(uv, "run", "--quiet", "--isolated", "--no-project", "--python", sys.executable),
        *("--with", requirement),
        *(("--with", _OLD_PYDANTIC) if requirement.startswith("mcp==1.") else ()),
        "python",
    ]


def package_of(requirement: str) -> str:
    """The name of a package in the scripts of `real/`."""
    return "mcp1" if requirement.startswith("mcp==1.") else requirement.partition("=")[0]


def client_words(case: Case, calls: str) -> list[str]:
    """The command of the client, without the server's."""
    if case.client == "sdk":  # a module looks for its imports beside itself
        script = shutil.copy(REAL / "drive.mjs", npm_folder() / f"drive-{os.getpid()}.mjs")
        return ["node", str(script), calls]
    package = package_of(case.client)
    return [*with_packages(case.client), str(REAL / "drive.py"), package, calls]


def environment_of_programs() -> dict[str, str]:
    """The environment of clients and servers: none of ours, and no proxy."""
    ours = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    return ours | {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


def check_record(case: Case, calls: str, spool_dir: Path) -> None:
    """Check that a session is recorded: its calls, states, peers and definitions, without gaps."""
    events = sorted(spooled(spool_dir), key=lambda each: int(each.get("producer_seq", 0)))
    for event in events:
        EVENT.validate_json(json.dumps(event))
    starts = [each for each in events if each["type"] == "toolExecutionStart"]
    ends = [each for each in events if each["type"] == "toolExecutionEnd"]
    assert [[each["tool_name"], each["args"]] for each in starts] == json.loads(calls)
    has_failed = [each["is_error"] or each["output"]["status"] == "error" for each in ends]
    assert tuple("failed" if each else "ok" for each in has_failed) == case.states
    assert {each["mcp"]["protocol_version"] for each in ends} == {case.protocol}
    assert all(each["mcp"]["server"]["name"] and each["mcp"]["client"]["name"] for each in ends)
    definitions = [each for each in events if each["type"] == "toolDefinitions"]
    served = {tool["name"] for each in definitions for tool in each["tools"]}
    assert {tool for tool, _ in case.calls} <= served
    assert not [each for each in events if each["type"] == "gap"]
