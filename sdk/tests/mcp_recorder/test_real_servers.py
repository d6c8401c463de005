"""Real servers behind the recorder, with real clients: the same bytes on both sides of it."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tooltrail.cli.check.mcp_servers import list_of_command
from tooltrail.events import EVENT

from sdk.tests.support.mcp_client import recorder_environment, spooled

pytestmark = pytest.mark.slow

REAL = Path(__file__).parent / "real"
NPM = {
    "everything": "@modelcontextprotocol/server-everything@2026.8.31",
    "filesystem": "@modelcontextprotocol/server-filesystem@2026.8.31",
    "memory": "@modelcontextprotocol/server-memory@2026.8.31",
    "sdk": "@modelcontextprotocol/sdk@1.32.2",
}
WEATHER = [["get_weather", {"city": "London"}], ["get_weather", {"city": "Atlantis"}]]
_OLD_PYDANTIC = "pydantic==2.10.6"  # mcp 1.2 imports what later ones do not have
_TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Case:
    """A server, the client that calls it, and what is recorded of its calls."""

    client: str
    server: str
    calls: list[list[Any]]
    protocol: str
    states: tuple[str, ...] = ("ok", "failed")


FRESH = {"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]}
CASES = {
    "mcp": Case("mcp==2.3.0", "weather.py mcp", WEATHER, "2026-07-28"),
    "mcp_of_2024": Case("mcp==1.2.0", "weather.py mcp1", WEATHER, "2024-11-05"),
    "fastmcp": Case("fastmcp==4.1.2", "weather.py fastmcp", WEATHER, "2026-07-28"),
    "npm_everything": Case(
        "mcp==2.3.0",
        "everything",
        [["echo", {"message": "hi"}], ["get-sum", {"a": 1, "b": "two"}]],
        "2025-11-25",
    ),
    "npm_filesystem": Case(
        "sdk",
        "filesystem",
        [["read_text_file", {"path": "FOLDER/a.txt"}], ["read_text_file", {"path": "/etc/passwd"}]],
        "2025-11-25",
    ),
    "npm_memory": Case(
        "sdk",
        "memory",
        [["create_entities", FRESH], ["search_nodes", {"query": "Ada"}]],
        "2025-11-25",
        ("ok", "ok"),
    ),
}


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
                timeout=_TIMEOUT_SECONDS,
            )
            (folder / "complete").touch()
    return folder


def server_words(case: Case, folder: Path) -> list[str]:
    if case.server in NPM:
        package = NPM[case.server].rpartition("@")[0]
        index = npm_folder() / "node_modules" / package / "dist" / "index.js"
        return ["node", str(index), str(folder) if case.server == "filesystem" else "stdio"]
    script, package = case.server.split()
    return ["PYTHON", str(REAL / script), package]


def client_words(case: Case, calls: str, folder: Path) -> list[str]:
    if case.client == "sdk":  # a module looks for its imports beside itself
        script = shutil.copy(REAL / "drive.mjs", npm_folder() / f"drive-{os.getpid()}.mjs")
        return ["node", str(script), calls]
    uv = os.environ.get("UV") or shutil.which("uv")
    assert uv, "these tests need uv"
    package = "mcp1" if case.client == "mcp==1.2.0" else case.client.partition("=")[0]
    return [
        *(uv, "run", "--quiet", "--isolated", "--no-project", "--python", sys.executable),
        *("--with", case.client, *(("--with", _OLD_PYDANTIC) if package == "mcp1" else ())),
        *("python", str(REAL / "drive.py"), package, calls),
    ]


@pytest.mark.parametrize("package", ["mcp==2.3.0", "fastmcp==4.1.2"])
@pytest.mark.sampled("real MCP servers", 1)
def test_tools_of_a_real_server_are_listed(package: str) -> None:
    uv = os.environ.get("UV") or shutil.which("uv")
    assert uv, "these tests need uv"
    alone = (uv, "run", "--quiet", "--isolated", "--no-project", "--python", sys.executable)
    script = str(REAL / "weather.py")
    command = [*alone, "--with", package, "python", script, package.partition("=")[0]]
    (tool,) = list_of_command(command, time.monotonic() + _TIMEOUT_SECONDS)
    assert tool.content["name"] == "get_weather"
    assert tool.content["inputSchema"]["required"] == ["city"]


@pytest.mark.generated(1)
@pytest.mark.parametrize("name", CASES)
def test_real_session_has_the_same_bytes_on_both_sides_and_is_recorded(
    name: str, tmp_path: Path
) -> None:
    case = CASES[name]
    (tmp_path / "a.txt").write_text("22.5")
    for side in ("outer", "inner"):
        (tmp_path / side).mkdir()
    calls = json.dumps(case.calls).replace("FOLDER", str(tmp_path))
    tee = [sys.executable, str(REAL / "tee.py")]
    ran = subprocess.run(
        [
            *client_words(case, calls, tmp_path),
            *(*tee, str(tmp_path / "outer"), sys.executable, "-m", "tooltrail", "mcp", "--"),
            *(*tee, str(tmp_path / "inner"), *server_words(case, tmp_path)),
        ],
        env={
            **{key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"},
            **recorder_environment("http://127.0.0.1:9", tmp_path / "spool"),
            "MEMORY_FILE_PATH": str(tmp_path / "memory.json"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]

    for stream in ("in", "out"):
        outer, inner = ((tmp_path / side / stream).read_bytes() for side in ("outer", "inner"))
        assert outer == inner
        assert outer.count(b"\n") >= len(case.calls) + 1
    events = spooled(tmp_path / "spool")
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
