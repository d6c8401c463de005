"""What would become of a tool, or became of it, as it is stored, shown and answered. Pure.

Members: `path`, `name`, `status`, `steps`, `problems`, `notes`, `callers`, `consumers`, which are
the API's; for pages `changes` (path, keyword and reason of the first few), `more_changes` and
`tool`, its id; and `fingerprint`.
"""

from collections.abc import Iterable
from typing import Any, Final

from tools_registry.exchange.planning import PlannedTool, Status

CHANGES_TOLD: Final = 5
STATUSES: Final[tuple[Status, ...]] = ("refused", "changed", "added", "unchanged")
"""What somebody must look at first."""


def tell(one: PlannedTool) -> dict[str, Any]:
    """All that is told of a tool's plan."""
    changes = one.diff.changes if one.diff else []
    return {
        "path": one.read.path,
        "name": one.read.name,
        "status": one.status,
        "steps": [] if one.problems else one.said,
        "problems": one.problems,
        "notes": one.notes,
        **one.verdicts,
        "changes": [
            [each.change.path, each.change.keyword, each.reason] for each in changes[:CHANGES_TOLD]
        ],
        "more_changes": max(0, len(changes) - CHANGES_TOLD),
        "tool": str(one.tool.pk) if one.tool else None,
        "fingerprint": one.fingerprint,
    }


def count(told: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How many tools become what, in the order of `STATUSES`."""
    counts: dict[str, int] = dict.fromkeys(STATUSES, 0)
    for one in told:
        counts[one["status"]] += 1
    return counts
