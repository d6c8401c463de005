"""The lines that a client of MCP needs in its configuration to start a server behind the recorder.

Pure. Sources, of October 2026: modelcontextprotocol.io/quickstart/user (Claude Desktop),
code.claude.com/docs/en/mcp (Claude Code), cursor.com/docs/mcp (Cursor),
code.visualstudio.com/docs/agents/reference/mcp-configuration (VS Code).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_KEY: Final = "TOOLTRAIL_API_KEY"
_INPUT: Final = "tooltrail-api-key"


@dataclass(frozen=True, slots=True)
class Client:
    """Where a client keeps its servers: the file, and the member that holds them."""

    file: str
    key: str
    """What stands for our API key in the file, which may be in a repository."""
    member: str = "mcpServers"
    started: Mapping[str, str] = field(default_factory=lambda: {"type": "stdio"})
    """What a server has that the client starts, beside its command."""
    remote: Mapping[str, str] | None = field(default_factory=lambda: {"type": "http"})
    """What a server has beside its URL; None if the file cannot name one."""
    inputs: Sequence[Mapping[str, Any]] = ()
    """What the client asks its user for."""


CLIENTS: Final[Mapping[str, Client]] = {
    "claude-desktop": Client(
        "claude_desktop_config.json (Settings, Developer, Edit Config)",
        "tt_…",
        started={},
        remote=None,
    ),
    "claude-code": Client(".mcp.json in the project, or ~/.claude.json", f"${{{_KEY}}}"),
    "cursor": Client(
        ".cursor/mcp.json in the project, or ~/.cursor/mcp.json", f"${{env:{_KEY}}}", remote={}
    ),
    "vscode": Client(
        ".vscode/mcp.json in the workspace",
        f"${{input:{_INPUT}}}",
        member="servers",
        inputs=[
            {
                "type": "promptString",
                "id": _INPUT,
                "description": "API key of Tooltrail, scope ingest",
                "password": True,
            }
        ],
    ),
}


def snippet(client: str, name: str, command: Sequence[str], url: str) -> str:
    """The JSON for a client's file: a server that is started by this command.

    `url` is where the record goes. Our API key is not in it.
    """
    form = CLIENTS[client]
    environment = {"TOOLTRAIL_URL": url, _KEY: form.key}
    server = {"command": command[0], "args": list(command[1:]), "env": environment}
    document: dict[str, Any] = {form.member: {name: {**form.started, **server}}}
    return _written(document | ({"inputs": form.inputs} if form.inputs else {}))


def remote_snippet(client: str, name: str, url: str) -> str:
    """The JSON for a client's file: a server at the URL of a running recorder.

    Raises ValueError if the client's file cannot name a URL.
    """
    form = CLIENTS[client]
    if form.remote is None:
        raise ValueError(f"the file of {client} cannot name a URL: give the server's command")
    return _written({form.member: {name: {**form.remote, "url": url}}})


def where(client: str) -> str:
    """The file that a snippet belongs into, and how our API key gets there."""
    form = CLIENTS[client]
    return f"add this to {form.file}; {form.key} stands for your API key"


def where_remote(client: str) -> str:
    """The file that the snippet of a URL belongs into."""
    form = CLIENTS[client]
    older = '; "type": "sse" for HTTP with SSE (2024-11-05)' if form.remote else ""
    return f"add this to {form.file}{older}"


def _written(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)
