"""`tooltrail mcp --print-config`: what a client needs to start a server behind the recorder."""

import json

import pytest
from tooltrail.cli.main import main
from tooltrail.mcp_recorder.client_configs import CLIENTS

SERVER = ["npx", "-y", "@modelcontextprotocol/server-memory@2026.8.31"]


@pytest.mark.parametrize("client", CLIENTS)
def test_snippet_starts_the_server_behind_the_recorder(
    client: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLTRAIL_URL", "https://tools.example")
    monkeypatch.setenv("TOOLTRAIL_API_KEY", "tt_secret")

    assert main(["mcp", "--print-config", client, "--fail-closed", "--", *SERVER]) == 0

    printed = capsys.readouterr()
    (member,) = json.loads(printed.out).items()
    assert member[0] == ("servers" if client == "vscode" else "mcpServers")
    ((name, server),) = member[1].items()
    assert name == "server-memory"
    assert server["command"].endswith("tooltrail")
    assert server["args"] == ["mcp", "--fail-closed", "--", *SERVER]
    assert server["env"]["TOOLTRAIL_URL"] == "https://tools.example"
    assert "tt_secret" not in printed.out, "a file that may be in a repository has no key"
    assert CLIENTS[client].file in printed.err


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["/usr/bin/weather-server"], "weather-server"),
        (["python", "-m", "weather"], "weather"),
        (["uvx", "mcp-server-git"], "mcp-server-git"),
        (["node", "dist/index.js"], "index.js"),
        (["npx"], "npx"),
    ],
)
def test_server_is_named_after_what_is_run(
    command: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["mcp", "--print-config", "cursor", "--", *command])

    assert list(json.loads(capsys.readouterr().out)["mcpServers"]) == [name]


def test_url_of_a_running_recorder_is_what_a_client_needs_of_a_remote_server(
    capsys: pytest.CaptureFixture[str],
) -> None:
    remote = ["--upstream", "https://tools.example/mcp"]
    assert main(["mcp", "--print-config", "vscode", *remote]) == 0
    (server,) = json.loads(capsys.readouterr().out)["servers"].items()
    assert server == ("tools.example", {"type": "http", "url": "http://127.0.0.1:8765/mcp"})

    assert main(["mcp", "--print-config", "claude-desktop", *remote]) == 2
    assert main(["mcp", *remote, "--", "npx"]) == 2


def test_command_line_without_a_server_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["mcp"]) == 2
    assert "the server's command after --" in capsys.readouterr().err
