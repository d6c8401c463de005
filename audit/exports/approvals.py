"""Approvals, as a file (NDJSON or CSV) and as API documents.

Both forms end with the number of approvals: without it, a file was cut off.
"""

from datetime import datetime
from typing import Any

from audit.exports.forms import text_forms
from audit.queries.approvals import Approval
from config.instants import iso_exact

COLUMNS = (
    "state",
    "requested_at",
    "answered_at",
    "waited_ms",
    "answer",
    "tool_name",
    "tool_version",
    "trace_id",
    "invocation_id",
    "policy_kind",
    "policy_id",
    "policy_name",
    "by_kind",
    "by_id",
    "by_name",
    "requested_by",
    "is_self_approved",
    "definition_digest",
)
"""Members and columns, in order."""


def document(one: Approval) -> dict[str, Any]:
    """An approval's members: JSON values, instants as RFC 3339 in UTC, unknown values as null."""
    return {
        "state": one.state,
        "requested_at": _instant(one.decided_at if one.is_request else None),
        "answered_at": _instant(one.answered_at),
        "waited_ms": None if one.waited_us is None else one.waited_us / 1000,
        "answer": one.answer,
        "tool_name": one.tool_name,
        "tool_version": one.tool_version or None,
        "trace_id": one.trace_id,
        "invocation_id": str(one.invocation_id),
        **{name: getattr(one, name) for name in ("policy_kind", "policy_id", "policy_name")},
        **{name: getattr(one, name) for name in ("by_kind", "by_id", "by_name", "requested_by")},
        "is_self_approved": one.is_self_approved,
        "definition_digest": one.definition_digest,
    }


def _instant(at: datetime | None) -> str | None:
    return None if at is None else iso_exact(at)


FORMS = text_forms(COLUMNS)
"""The forms of the file, by file extension."""
