"""Values a query of calls may be completed to: those of the last days, the likeliest first."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from audit.sql.run import rows

KNOWN_DAYS = 7
"""Days that are looked at, today included."""

_STATEMENTS = {
    "tool": ("known_tools", 0),
    "version": ("known_tools", 1),
    "error": ("known_error_types", 0),
    "code": ("known_error_codes", 0),
    "violation": ("known_violations", 0),
    "path": ("known_violations", 1),
}
"""For a filter's name the statement that knows its values, and in which column."""


def known_values(name: str, *, now: datetime) -> Mapping[str, list[str]]:
    """The values known for a filter's name; none for one nobody counts. One statement, or none."""
    if name not in _STATEMENTS:
        return {}
    statement, column = _STATEMENTS[name]
    today = now.astimezone(UTC).date()
    parameters = {
        "first_day": today - timedelta(days=KNOWN_DAYS - 1),
        "last_day": today + timedelta(days=1),
    }
    found = (row[column] for row in rows(statement, parameters))
    return {name: list(dict.fromkeys(filter(None, found)))}
