"""Requests of an MCP client of the newest version."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.test import Client

from audit.mcp.protocol import CAPABILITIES_META, CLIENT_META, LATEST, VERSION_META
from tenants.keys import create_key
from tenants.models import Scope, Tenant
from tests.support.api_record import Record

_READ = (Scope.READ,)
WITH_PAYLOADS = (Scope.READ, Scope.PAYLOADS)


@dataclass
class Agent:
    """A client of the newest version with a key of a tenant, or at `path` with an access token."""

    tenant: Tenant
    scopes: Sequence[Scope] = _READ
    name: str = "agent"
    key: str = ""
    """Empty: a new one is made."""
    path: str = "/mcp"

    def __post_init__(self) -> None:
        if not self.key:
            self.key = create_key(self.tenant, "agent's key", list(self.scopes))[1]

    def send(self, method: str, params: Mapping[str, Any] | None = None, **headers: str) -> Any:
        """The HTTP response to a request."""
        given = dict(params or {})
        meta = {VERSION_META: LATEST, CAPABILITIES_META: {}, CLIENT_META: {"name": self.name}}
        message = {"jsonrpc": "2.0", "id": 1, "method": method}
        named = given.get("name") or given.get("uri")
        sent = {
            "Authorization": f"Bearer {self.key}",
            "MCP-Protocol-Version": LATEST,
            "Mcp-Method": method,
            **({"Mcp-Name": named} if isinstance(named, str) else {}),
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        body = json.dumps({**message, "params": {**given, "_meta": meta}})
        return Client().post(self.path, body, content_type="application/json", headers=sent)

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """The result of a request that succeeds."""
        response = self.send(method, params)
        assert response.status_code == 200, response.content
        return response.json()["result"]

    def call(self, name: str, /, **arguments: Any) -> Any:
        """The result of a tool."""
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def use(self, name: str, /, **arguments: Any) -> Any:
        """The structured content of a tool that succeeds."""
        result = self.call(name, **arguments)
        assert not result["isError"], result
        return result["structuredContent"]


def arguments_about(record: Record, tool: str) -> dict[str, Any]:
    """What a tool is asked so that it has an answer about the record."""
    return {
        "get_call": {"invocation_id": str(record.failed)},
        "get_trace": {"trace_id": "a/trace"},
        "tool_contract": {"tool": "get_weather"},
        "prove_call": {"invocation_id": str(record.failed)},
        "explain": {"q": "tool:search state:ok"},
    }.get(tool, {})


def problem_of(response: Any) -> Any:
    """The problem in an answer of `/mcp/<tenant>` that refuses an access token."""
    refused = response.json()
    assert refused["id"] is None
    assert refused["error"]["message"] == refused["error"]["data"]["detail"]
    return refused["error"]["data"]
