"""Choices of the range filter on the lists of traces, rejected events and actions."""

from datetime import timedelta
from typing import NamedTuple


class ListRange(NamedTuple):
    """A choice of the filter."""

    label: str
    length: timedelta | None
    """How far to go back from now. None: any time."""


LIST_RANGES: dict[str, ListRange] = {
    "": ListRange("Any time", None),
    "1h": ListRange("1 h", timedelta(hours=1)),
    "24h": ListRange("24 h", timedelta(hours=24)),
    "7d": ListRange("7 d", timedelta(days=7)),
}
"""The choices by name in URLs."""
