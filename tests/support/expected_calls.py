"""Calls read from the log, from which a test computes the figures it expects."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass
class ExpectedCall:
    """A call as the log has it. `end` is its end event, None while it is open."""

    tool: str
    version: str
    at: datetime
    end: dict[str, Any] | None = None

    @property
    def violations(self) -> list[dict[str, Any]]:
        return self.end["guard"]["violations"] if self.end and "guard" in self.end else []

    @property
    def is_failed(self) -> bool:
        assert self.end is not None
        guard = self.end.get("guard", {})
        return (
            self.end["is_error"]
            or self.end["output"]["status"] == "error"
            or guard.get("outcome") in {"failed", "error-result"}
        )


def assert_percentiles(duration_ms: Any, calls: list[ExpectedCall]) -> None:
    """Compare shown percentiles with the exact ones; within 5 %, or both at most 1 ms."""
    durations = sorted(call.end["duration_ms"] for call in calls if call.end is not None)
    for share in (0.5, 0.95, 0.99):
        shown = duration_ms(share)
        if not durations:
            assert shown is None
            continue
        exact = durations[max(0, -(-int(share * 1000) * len(durations) // 1000) - 1)]
        if exact >= 1:
            assert abs(shown - exact) <= 0.05 * exact + 0.002, (share, shown, exact)
        else:
            assert shown <= 1
