"""Kinds of violations, as a file (NDJSON or CSV) and as API documents.

Both forms end with the number of kinds: without it, a file was cut off.
"""

from typing import Any

from audit.exports.forms import text_forms
from audit.queries.violations import ViolationKind
from config.instants import iso_exact

COLUMNS = (
    "side",
    "tool_name",
    "tool_version",
    "path_pattern",
    "code",
    "violations",
    "calls",
    "of_calls",
    "share",
    "first_at",
    "last_at",
    "first_ever_at",
    "new_since",
)
"""Members and columns, in order."""


def document(kind: ViolationKind) -> dict[str, Any]:
    """A kind's members: JSON values, instants as RFC 3339 in UTC, unknown values as null."""
    return {
        "side": kind.side,
        "tool_name": kind.tool_name,
        "tool_version": kind.tool_version or None,
        "path_pattern": kind.path_pattern,
        "code": kind.code,
        "violations": kind.violations,
        "calls": kind.calls,
        "of_calls": kind.of_calls,
        "share": kind.share,
        **{
            name: iso_exact(getattr(kind, name))
            for name in ("first_at", "last_at", "first_ever_at")
        },
        "new_since": kind.new_since,
    }


FORMS = text_forms(COLUMNS)
"""The forms of the file, by file extension."""
