"""A call as JSON and as a row: members of the API, and with its cost those of exports. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from audit.queries.calls import Call, CallViolation, FirstViolation
from audit.queries.listed_call import ListedCall
from audit.queries.violation_samples import Sample
from config.instants import iso_exact

COLUMNS = (
    "invocation_id",
    "started_at",
    "ended_at",
    "duration_ms",
    "state",
    "tool_name",
    "tool_version",
    "trace_id",
    "parent_invocation_id",
    "call_id",
    "tool_call_id",
    "error_type",
    "error_code",
    "error_message",
    "upstream_status",
    "retry_after_ms",
    "attempt",
    "guard_strategy",
    "guard_outcome",
    "violation_count",
    "violation_path",
    "violation_code",
    "prompt_tokens",
    "completion_tokens",
    "cache_hit",
    "turn_id",
    "run_id",
    "ingestion_run_id",
    "workflow_id",
    "collection_id",
    "document_id",
    "document_version_id",
    "case_id",
    "timeouts_ms",
    "producer_id",
    "mcp_server",
    "mcp_client",
    "mcp_protocol",
    "agent",
    "agent_version",
    "model",
    "provider",
    "principal",
    "environment",
    "service",
    "pair_conflict",
)
"""Members and columns, in order. Path and code of a violation are those of the first one."""
EXPORTED = (*COLUMNS, "cost", "currency")
"""Those of exports. A cost is an exact decimal number; null: the call has no price."""


def document(
    call: Call | ListedCall, violation: FirstViolation | None, columns: Sequence[str] = COLUMNS
) -> dict[str, Any]:
    """The call's members: JSON values, instants as RFC 3339 in UTC, unknown values as null."""
    values: dict[str, Any] = {
        "duration_ms": None if call.duration_us is None else call.duration_us / 1000,
        "violation_path": violation and violation.path,
        "violation_code": violation and violation.code,
        "tool_version": call.tool_version or None,
        "error_type": call.error_type or None,
    }
    return {
        name: values[name] if name in values else _plain(getattr(call, name)) for name in columns
    }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso_exact(value)
    return str(value) if isinstance(value, UUID) else value


def violation_members(one: CallViolation | Sample, *, with_payloads: bool) -> dict[str, Any]:
    """Members of a violation; what was received only for those who may see payloads."""
    return {
        "path": one.path,
        "code": one.code,
        "severity": one.severity,
        "expected": one.expected,
        "received": one.received if with_payloads else None,
        "strategy": one.strategy,
        "outcome": one.outcome,
    }
