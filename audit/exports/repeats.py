"""Loops and repeats, as a file (NDJSON or CSV) and as API documents.

Both forms end with the number of rows: without it, a file was cut off.
"""

from typing import Any

from audit.exports.forms import text_forms
from audit.queries.repeats import Repeats
from audit.queries.repetition import InTrace, Repeat
from config.instants import iso_exact

COLUMNS = (
    "kind",
    "tool_name",
    "call_id",
    "trace_id",
    "traces",
    "calls",
    "failed",
    "cache_hits",
    "wasted_ms",
    "wasted_tokens",
    "first_at",
    "last_at",
)
"""Members and columns, in order."""


def documents(analysis: Repeats) -> list[dict[str, Any]]:
    """Every listed loop and repeat. A repeat has no `trace_id`, but the number of its `traces`."""
    return [
        *(
            {"kind": "loop", **_shared(one), "trace_id": one.trace_id, "traces": 1}
            for one in analysis.loops
        ),
        *(
            {"kind": "repeat", **_shared(one), "trace_id": None, "traces": one.traces}
            for one in analysis.repeats
        ),
    ]


def _shared(one: InTrace | Repeat) -> dict[str, Any]:
    return {
        "tool_name": one.tool_name,
        "call_id": one.call_id,
        "calls": one.calls,
        "failed": one.failed,
        "cache_hits": one.cache_hits,
        "wasted_ms": one.wasted_us / 1000,
        "wasted_tokens": one.wasted_tokens,
        "first_at": iso_exact(one.first_at),
        "last_at": iso_exact(one.last_at),
    }


FORMS = text_forms(COLUMNS)
"""The forms of the file, by file extension."""
