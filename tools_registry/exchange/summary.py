"""The summary of a tool's preview or outcome, for storage, pages and the API. Pure.

Members for the API: `path`, `name`, `status`, `steps`, `problems`, `notes`, `callers`,
`consumers`. For pages: `changes` (path, keyword and reason of the first few), `more_changes` and
`tool` (its id). For the import job: `fingerprint`.
"""

from collections.abc import Iterable
from typing import Any, Final

from tools_registry.exchange.planning import PlannedTool, Status

CHANGES_SHOWN: Final = 5
STATUSES: Final[tuple[Status, ...]] = ("refused", "changed", "added", "unchanged")
"""Ordered by how much attention they need."""


def summarize(one: PlannedTool) -> dict[str, Any]:
    """The summary of a tool's plan."""
    changes = one.diff.changes if one.diff else []
    return {
        "path": one.read.path,
        "name": one.read.name,
        "status": one.status,
        "steps": [] if one.problems else one.step_texts,
        "problems": one.problems,
        "notes": one.notes,
        **one.verdicts,
        "changes": [
            [each.change.path, each.change.keyword, each.reason] for each in changes[:CHANGES_SHOWN]
        ],
        "more_changes": max(0, len(changes) - CHANGES_SHOWN),
        "tool": str(one.tool.pk) if one.tool else None,
        "fingerprint": one.fingerprint,
    }


def count(summaries: Iterable[dict[str, Any]]) -> dict[str, int]:
    """The number of tools per status, in the order of `STATUSES`."""
    counts: dict[str, int] = dict.fromkeys(STATUSES, 0)
    for one in summaries:
        counts[one["status"]] += 1
    return counts
