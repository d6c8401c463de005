"""`tooltrail query calls --follow`: prints calls as they arrive."""

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

from tooltrail.cli.values import Row

NEWEST = 200
"""Calls asked for at a time. Of older ones no change is seen."""
EVERY_SECONDS = 2.0
_EVERY_MIN = 0.5
_REMEMBERED = 10 * NEWEST


def seconds(text: str) -> float:
    """The option `--every`. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not _EVERY_MIN <= number <= 3600:
        raise argparse.ArgumentTypeError(f"must be {_EVERY_MIN} to 3600 seconds")
    return number


class Follower:
    """Tells which rows are new, or have another state than when they were shown."""

    def __init__(self) -> None:
        self._shown: dict[str, Any] = {}

    def fresh(self, rows: list[Row], most: int | None = None) -> list[Row]:
        """Of rows, the newest first, those to show: the oldest first, at most `most`."""
        fresh = [row for row in rows if self._shown.get(_id(row)) != row.get("state")]
        for row in reversed(rows):
            self._shown.pop(_id(row), None)  # the last ones are the ones seen last
            self._shown[_id(row)] = row.get("state")
        for old in list(self._shown)[:-_REMEMBERED]:
            del self._shown[old]
        return list(reversed(fresh[:most]))


def follow(
    ask: Callable[[Mapping[str, str]], list[Row] | None],
    show: Callable[[list[Row]], None],
    first: int,
    every: float,
) -> None:
    """Show the newest `first` rows, then new ones every so many seconds, until Ctrl-C.

    `ask` returns the newest rows, or None if the server has no answer for the moment.
    """
    follower = Follower()
    most: int | None = first
    while True:
        rows = ask({"limit": str(NEWEST)})
        if rows is not None:
            if fresh := follower.fresh(rows, most):
                show(fresh)
            most = None
        time.sleep(every)


def _id(row: Row) -> str:
    return f"{row.get('started_at')} {row.get('invocation_id')}"
