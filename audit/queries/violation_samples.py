"""Single violations, the newest first: of a range, or of some calls' results."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from uuid import UUID

from audit.queries.cursor import END
from audit.queries.time_range import TimeRange
from audit.queries.violations import Side, ViolationFilter, range_parameters
from audit.sql.run import rows

type SamplePlace = tuple[datetime, UUID, int]
"""The position of a violation: `started_at`, `place_id` and `ordinal` of its sample."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A single violation."""

    side: Side
    tool_name: str
    tool_version: str
    path: str
    code: str
    expected: str
    received: str | None
    """None for arguments: what was received is in the log only."""
    severity: str
    strategy: str
    outcome: str
    started_on: date
    invocation_id: UUID
    started_at: datetime
    ordinal: int
    place_id: UUID
    """The call, or the decision that rejected its arguments."""


def samples(
    of: TimeRange, wanted: ViolationFilter, *, limit: int, before: SamplePlace | None = None
) -> list[Sample]:
    """The newest violations of a range, or those older than `before`. At most two
    statements."""
    at, invocation_id, ordinal = before or (of.end, UUID(int=0), 0)
    parameters = range_parameters(of, wanted) | {
        "limit": limit,
        "at": at,
        "id": invocation_id,
        "ordinal": ordinal,
        "last_day": min(at, of.end).astimezone(UTC).date(),
    }
    return [Sample(*row) for row in rows("violation_samples", parameters)]


def samples_of(
    calls: Sequence[tuple[date, UUID]],
    wanted: ViolationFilter,
    *,
    limit: int,
    before: SamplePlace | None = None,
) -> list[Sample]:
    """The newest violations of these calls' results, or those older than `before`. One statement.

    A call is given by its UTC day and its id.
    """
    at, invocation_id, ordinal = before or (END, UUID(int=0), 0)
    names = ("tool", "version", "code", "path", "outcome")
    parameters = {name: getattr(wanted, name) for name in names} | {
        "days": sorted({day for day, _ in calls}),
        "invocation_ids": [pk for _, pk in calls],
        "limit": limit,
        "at": at,
        "id": invocation_id,
        "ordinal": ordinal,
    }
    return [Sample(*row) for row in rows("violation_samples_of", parameters)]
