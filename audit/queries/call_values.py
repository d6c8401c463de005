"""Suggested values for call queries: those of the last days, the most frequent first."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from audit.queries.dimensions import DIMENSIONS
from audit.sql.run import rows

KNOWN_DAYS = 7
"""Days that are searched, including today."""

_STATEMENTS = {
    "tool": ("known_tools", 0),
    "version": ("known_tools", 1),
    "error": ("known_error_types", 0),
    "code": ("known_error_codes", 0),
    "violation": ("known_violations", 0),
    "path": ("known_violations", 1),
    "label": ("known_notes", 0),
    "assignee": ("known_notes", 1),
}
"""By filter name: the statement that returns its values, and their column."""


def known_values(name: str, *, now: datetime) -> Mapping[str, list[str]]:
    """The known values of a filter; none if they are not counted. At most one statement."""
    if name not in _STATEMENTS and name not in DIMENSIONS:
        return {}
    today = now.astimezone(UTC).date()
    parameters: dict[str, Any] = {
        "first_day": today - timedelta(days=KNOWN_DAYS - 1),
        "last_day": today + timedelta(days=1),
    }
    if name in DIMENSIONS:
        column, statement = 0, "known_dimension"
        parameters["dimension"] = DIMENSIONS[name]
    else:
        statement, column = _STATEMENTS[name]
    values = (row[column] for row in rows(statement, parameters))
    return {name: list(dict.fromkeys(filter(None, values)))}
