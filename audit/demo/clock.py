"""A clock that can stand in the past and run faster than life.

History is really executed, only at another time and another speed: each run gets a
moment of its own, and what takes one real millisecond is recorded as `pace` of them.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True)
class Moment:
    """Where a run's clock stands: `at` corresponds to `monotonic` seconds, times `pace`."""

    at: datetime
    monotonic: float
    pace: float


_moment: ContextVar[Moment | None] = ContextVar("moment", default=None)


def now() -> datetime:
    """The time a call is recorded with, UTC."""
    moment = _moment.get()
    if moment is None:
        return datetime.now(UTC)
    return moment.at + timedelta(seconds=(time.monotonic() - moment.monotonic) * moment.pace)


@contextmanager
def living_at(at: datetime, pace: float) -> Iterator[None]:
    """Let the clock stand at `at` and run `pace` times as fast until the block ends."""
    token = _moment.set(Moment(at, time.monotonic(), pace))
    try:
        yield
    finally:
        _moment.reset(token)
