"""Loops and repeats as a file: NDJSON or CSV; and as documents of the API.

Both forms end with the number of rows: without it, a file was cut off.
"""

from functools import partial
from typing import Any

from audit.exports.calls import Form, ndjson
from audit.exports.csv_file import csv_rows
from audit.queries.repeats import Repeats
from audit.queries.repetition import InTrace, Repeat

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


def documents(found: Repeats) -> list[dict[str, Any]]:
    """Every listed loop and repeat. A repeat has no `trace_id` and as many `traces` as it has."""
    return [
        *(
            {"kind": "loop", **_shared(one), "trace_id": one.trace_id, "traces": 1}
            for one in found.loops
        ),
        *(
            {"kind": "repeat", **_shared(one), "trace_id": None, "traces": one.traces}
            for one in found.repeats
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
        "first_at": one.first_at.isoformat().replace("+00:00", "Z"),
        "last_at": one.last_at.isoformat().replace("+00:00", "Z"),
    }


FORMS: dict[str, Form] = {
    "ndjson": Form(ndjson, "application/x-ndjson"),
    "csv": Form(partial(csv_rows, columns=COLUMNS), "text/csv; charset=utf-8"),
}
"""By the ending of the file's name."""
