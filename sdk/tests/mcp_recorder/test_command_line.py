"""`tooltrail mcp --print-config`: what a client needs to start a server behind the recorder."""

import json

import pytest
from tooltrail.cli.main import main
from tooltrail.mcp_recorder.client_configs import CLIENTS

SERVER = ["npx", "-y", "@modelcontextprotocol/server-memory@2026.8.31"]


DOCUMENTED = {
    "claude-desktop": ("mcpServers", {}, "tt_…"),
    "claude-code": ("mcpServers", {"type": "stdio"}, "${TOOLTRAIL_API_KEY}"),
    "cursor": ("mcpServers", {"type": "stdio"}, "${env:TOOLTRAIL_API_KEY}"),
    "vscode": ("servers", {"type": "stdio"}, "${input:tooltrail-api-key}"),
}
"""The member of the servers, what a started one has beside its command, and where a key is from."""


@pytest.mark.parametrize("client", CLIENTS)
def test_snippet_starts_the_server_behind_the_recorder(
    client: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLTRAIL_URL", "https://tools.example")
    monkeypatch.setenv("TOOLTRAIL_API_KEY", "tt_secret")
    options = ["--fail-closed", "--name", "notes", "--spool-dir", "/var/spool/notes"]

    assert main(["mcp", "--print-config", client, *options, "--", *SERVER]) == 0

    printed = capsys.readouterr()
    member, started, key = DOCUMENTED[client]
    document = json.loads(printed.out)
    ((name, server),) = document.pop(member).items()
    assert name == "notes"
    assert server.pop("command").endswith("tooltrail")
    assert server.pop("args") == ["mcp", *options, "--", *SERVER]
    environment = {"TOOLTRAIL_URL": "https://tools.example", "TOOLTRAIL_API_KEY": key}
    assert server == {**started, "env": environment}
    asked = [each["id"] for each in document.pop("inputs", [])]
    assert asked == (["tooltrail-api-key"] if client == "vscode" else [])
    assert document == {}
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
    url = "http://127.0.0.1:8765/mcp"
    for client, server in {
        "claude-code": {"type": "http", "url": url},
        "cursor": {"url": url},
        "vscode": {"type": "http", "url": url},
    }.items():
        assert main(["mcp", "--print-config", client, *remote]) == 0
        member = DOCUMENTED[client][0]
        assert json.loads(capsys.readouterr().out) == {member: {"tools.example": server}}

    assert main(["mcp", "--print-config", "claude-desktop", *remote]) == 2
    assert main(["mcp", *remote, "--", "npx"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--listen", "8765"], "--listen is no HOST:PORT: 8765"),
        (["--listen", "localhost:http"], "--listen is no HOST:PORT: localhost:http"),
        (["--listen", "localhost:70000"], "--listen is no HOST:PORT: localhost:70000"),
        (["--connections", "0"], "not a number of connections: 0"),
        (["--connections", "many"], "not a number of connections: many"),
        (["--upstream", "ftp://tools.example"], "not an http or https URL: ftp://tools.example"),
    ],
)
def test_options_that_cannot_be_used_are_a_usage_error(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(["mcp", "--upstream", "http://127.0.0.1:9/mcp", *options])
    except SystemExit as ended:  # of argparse
        code = int(ended.code or 0)
    assert code == 2
    assert said in capsys.readouterr().err


def test_command_line_without_a_server_is_a_usage_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["mcp"]) == 2
    assert "the server's command after --" in capsys.readouterr().err
