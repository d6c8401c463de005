"""Reads two URL parameters of a bundle: a stored report, and sizes of earlier checkpoints."""

import re
from uuid import UUID

from audit.reports.queries import Report, find_report

PREVIOUS_MAX = 20
_SIZE = re.compile(r"[0-9]{1,18}")


def report_named(text: str) -> Report | None:
    """The stored report with this id; None if there is none. Needs the tenant's scope."""
    try:
        return find_report(UUID(text))
    except ValueError:
        return None


def read_previous(text: str) -> list[int]:
    """The sizes of earlier checkpoints, sorted. Raises ValueError saying what is wrong."""
    parts = text.replace(",", " ").split()
    if len(parts) > PREVIOUS_MAX or not all(_SIZE.fullmatch(part) for part in parts):
        raise ValueError(
            f"Enter up to {PREVIOUS_MAX} checkpoint sizes, such as 1200,3400. The size is the"
            " second line of a checkpoint."
        )
    return sorted({int(part) for part in parts})
