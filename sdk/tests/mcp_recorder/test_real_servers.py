"""Real servers behind the recorder, with real clients: the same bytes on both sides of it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tooltrail.cli.check.mcp_servers import list_of_command

from sdk.tests.support.mcp_client import recorder_environment
from sdk.tests.support.mcp_programs import (
    REAL,
    TIMEOUT_SECONDS,
    WEATHER,
    Case,
    check_record,
    client_words,
    environment_of_programs,
    npm_server,
    package_of,
    with_packages,
)

pytestmark = pytest.mark.slow

FRESH = {"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]}
CASES = {
    "mcp": Case("mcp==2.3.0", "weather.py mcp", WEATHER, "2026-07-28"),
    "mcp_of_june_2025": Case("mcp==1.13.1", "weather.py mcp1", WEATHER, "2025-06-18"),
    "mcp_of_march_2025": Case("mcp==1.9.4", "weather.py mcp1", WEATHER, "2025-03-26"),
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


def server_words(case: Case, folder: Path) -> list[str]:
    if case.server in ("everything", "filesystem", "memory"):
        what = str(folder) if case.server == "filesystem" else "stdio"
        return [*npm_server(case.server), what]
    script, package = case.server.split()
    return ["PYTHON", str(REAL / script), package]


@pytest.mark.parametrize("package", ["mcp==2.3.0", "fastmcp==4.1.2"])
@pytest.mark.sampled("real MCP servers", 1)
def test_tools_of_a_real_server_are_listed(package: str) -> None:
    command = [*with_packages(package), str(REAL / "weather.py"), package_of(package)]
    (tool,) = list_of_command(command, time.monotonic() + TIMEOUT_SECONDS)
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
            *client_words(case, calls),
            *(*tee, str(tmp_path / "outer"), sys.executable, "-m", "tooltrail", "mcp", "--"),
            *(*tee, str(tmp_path / "inner"), *server_words(case, tmp_path)),
        ],
        env={
            **environment_of_programs(),
            **recorder_environment("http://127.0.0.1:9", tmp_path / "spool"),
            "MEMORY_FILE_PATH": str(tmp_path / "memory.json"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]

    for stream in ("in", "out"):
        outer, inner = ((tmp_path / side / stream).read_bytes() for side in ("outer", "inner"))
        assert outer == inner
        assert outer.count(b"\n") >= len(case.calls) + 1
    check_record(case, calls, tmp_path / "spool")
