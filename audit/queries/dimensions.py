"""The dimensions of calls: who made a call, in what, for whom and through whom. Pure."""

from typing import Final

DIMENSIONS: Final = {
    "agent": "agent",
    "agent-version": "agent_version",
    "model": "model",
    "provider": "provider",
    "service": "service",
    "environment": "environment",
    "principal": "principal",
    "conversation": "run_id",
    "server": "mcp_server",
    "client": "mcp_client",
    "protocol": "mcp_protocol",
}
"""Each filter name of the query language and its column of `invocation`."""
