"""Durations and tokens by tool and version, as a file (NDJSON or CSV) and as API documents.

Both forms end with the number of versions: without it, a file was cut off.
"""

from typing import Any

from audit.exports.forms import text_forms
from audit.queries.latency import SHARES, Latency, Spent

COLUMNS = (
    "tool_name",
    "tool_version",
    "calls",
    "failed",
    *(f"{name}_ms" for name in SHARES),
    "prompt_tokens",
    "completion_tokens",
    "cache_hits",
)
"""Members and columns, in order."""


def documents(range_figures: Latency) -> list[dict[str, Any]]:
    """The members of every version, sorted by tool and version; unknown values are null."""
    return [
        {"tool_name": tool, "tool_version": version or None, **figures_of(spent)}
        for (tool, version), spent in sorted(range_figures.versions.items())
    ]


def figures_of(spent: Spent) -> dict[str, Any]:
    """The figures of some calls. Percentiles are milliseconds, with an error of at most 5 %."""
    return {
        "calls": spent.calls,
        "failed": spent.failed,
        **{f"{name}_ms": _rounded(spent.duration_ms(share)) for name, share in SHARES.items()},
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "cache_hits": spent.cache_hits,
    }


def _rounded(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds, 3)


FORMS = text_forms(COLUMNS)
"""The forms of the file, by file extension."""
