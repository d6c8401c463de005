"""The official MCP inspector lists and uses every tool of a running server, by its command line.

Its answers are validated by the schemas that it listed.
"""

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from audit.mcp.tools import TOOLS
from tests.support.api_record import make_record
from tests.support.factories import make_cast
from tests.support.mcp_agent import Agent, arguments_about
from tests.support.node_packages import installed
from tests.support.server import LiveServer

pytestmark = [pytest.mark.slow, pytest.mark.sampled("mcp client", 1)]
_SOURCE = Path(__file__).parents[2] / "support" / "mcp_inspector"
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}


@pytest.fixture(scope="module")
def inspector() -> list[str]:
    """The command, with the Node.js that it needs: newer than Debian's, so from npm, too."""
    modules = installed(_SOURCE) / "node_modules"
    machine = _MACHINES.get(platform.machine(), "")
    node = modules / f"node-linux-{machine}" / "bin" / "node"
    if not node.exists():
        pytest.skip(f"npm has no Node.js for {platform.machine()}")
    package = modules / "@modelcontextprotocol" / "inspector"
    return [str(node), str(package / "clients" / "launcher" / "build" / "index.js"), "--cli"]


def inspect(
    inspector: list[str], server: LiveServer, agent: Agent, era: str, home: Path, *words: str
) -> Any:
    """What the inspector prints of one request."""
    headers = ("--header", f"Authorization: Bearer {agent.key}")
    completed = subprocess.run(
        [
            *(*inspector, f"{server.url}/mcp", "--transport", "http", "--protocol-era", era),
            *(*headers, "--format", "json", *words),
        ],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    printed = json.loads(completed.stdout)
    assert "result" in printed, printed
    return printed["result"]


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_inspector_lists_and_uses_every_tool(
    inspector: list[str], live_server: LiveServer, tmp_path: Path, era: str
) -> None:
    record = make_record(make_cast("acme"))
    agent = Agent(record.cast.tenant)
    listed = inspect(
        *(inspector, live_server, agent, era, tmp_path), "--method", "tools/list", "--strict"
    )
    tools = {one["name"]: one for one in listed["tools"]}
    assert tools.keys() == TOOLS.keys()
    for name, tool in tools.items():
        arguments = json.dumps(arguments_about(record, name))
        answer = inspect(
            *(inspector, live_server, agent, era, tmp_path),
            *("--method", "tools/call", "--tool-name", name, "--tool-args-json", arguments),
        )
        assert not answer.get("isError"), (name, answer)
        content = answer["structuredContent"]
        jsonschema_rs.Draft202012Validator(tool["outputSchema"]).validate(content)
        assert not jsonschema_rs.Draft202012Validator(tool["outputSchema"]).is_valid({}), name
