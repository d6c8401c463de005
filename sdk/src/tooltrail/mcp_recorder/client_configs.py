"""The lines that a client of MCP needs in its configuration to start a server behind the recorder.

Pure. Sources: the documentation of Claude Desktop, Claude Code, Cursor and VS Code.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Client:
    """Where a client keeps its servers: the file, and the member that holds them."""

    file: str
    member: str = "mcpServers"
    type: str | None = None
    """The value of the member `type` of a server that the client starts; None if it needs none."""
    is_remote_known: bool = True
    """Whether the file may name a server by its URL."""


CLIENTS: Final[Mapping[str, Client]] = {
    "claude-desktop": Client(
        "claude_desktop_config.json (Settings, Developer, Edit Config)", is_remote_known=False
    ),
    "claude-code": Client(".mcp.json in the project, or ~/.claude.json", type="stdio"),
    "cursor": Client(".cursor/mcp.json in the project, or ~/.cursor/mcp.json"),
    "vscode": Client(".vscode/mcp.json in the workspace", "servers", type="stdio"),
}
NO_KEY: Final = "tt_…"


def snippet(client: str, name: str, command: Sequence[str], environment: Mapping[str, str]) -> str:
    """The JSON for a client's file: a server that is started by this command."""
    form = CLIENTS[client]
    server: dict[str, Any] = {} if form.type is None else {"type": form.type}
    server |= {"command": command[0], "args": list(command[1:]), "env": dict(environment)}
    return _document(form, name, server)


def remote_snippet(client: str, name: str, url: str) -> str:
    """The JSON for a client's file: a server at the URL of a running recorder.

    Raises ValueError if the client's file cannot name a URL.
    """
    form = CLIENTS[client]
    if not form.is_remote_known:
        raise ValueError(f"the file of {client} cannot name a URL: give the server's command")
    return _document(form, name, {"type": "http", "url": url})


def where(client: str) -> str:
    """The file that a snippet belongs into, and how to add it otherwise."""
    return CLIENTS[client].file


def _document(form: Client, name: str, server: dict[str, Any]) -> str:
    return json.dumps({form.member: {name: server}}, indent=2, ensure_ascii=False)
