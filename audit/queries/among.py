"""The calls of a query as conditions of statements that have a range of their own."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from audit.queries.call_conditions import without_walk
from audit.queries.call_filter import CallFilter
from audit.queries.call_walk import SILENCE


@dataclass(frozen=True, slots=True)
class Among:
    """Some calls, as SQL conditions on a `call` and their parameters."""

    conditions: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def those_of(cls, wanted: CallFilter, now: datetime) -> "Among":
        """The calls that match a filter, whatever its times. It has no payload terms."""
        conditions = without_walk(wanted)
        known = {"now": now, "silent_since": now - SILENCE}
        return cls(conditions.text, known | conditions.parameters)


ALL: Final = Among()
