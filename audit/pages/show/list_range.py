"""How far back lists go: the choices of the range filter on lists of traces, events, actions."""

from datetime import timedelta

LIST_RANGES: dict[str, tuple[str, timedelta | None]] = {
    "": ("Any time", None),
    "1h": ("1 h", timedelta(hours=1)),
    "24h": ("24 h", timedelta(hours=24)),
    "7d": ("7 d", timedelta(days=7)),
}
"""By its name in addresses: the label, and how far back from now; None for any time."""
