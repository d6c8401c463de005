"""Why analyses and replays skip calls, in words."""

from collections.abc import Mapping

_REASONS = {
    "erased": "payload no longer in the log",
    "nothing": "no value sent or returned",
    "unstructured": "MCP result without structured content",
    "incomplete": "value truncated or omitted by the executor",
    "replaced": "output replaced by the guard, original not recorded",
    "costly": "too expensive to validate",
}


def skipped_reasons(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The reasons with their numbers of calls."""
    return [(_REASONS[why], count) for why, count in sorted(counts.items())]
