"""Choices of the range filter on the lists of traces, rejected events and actions."""

from datetime import timedelta

LIST_RANGES: dict[str, tuple[str, timedelta | None]] = {
    "": ("Any time", None),
    "1h": ("1 h", timedelta(hours=1)),
    "24h": ("24 h", timedelta(hours=24)),
    "7d": ("7 d", timedelta(days=7)),
}
"""By name in URLs: the label, and how far to go back from now. None: any time."""
