"""A clock that can be set to the past and run faster than real time.

History is really executed, but at another time and speed: each run gets its own moment, and one
real millisecond is recorded as `pace` milliseconds.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True)
class Moment:
    """A run's clock: it shows `at` at `monotonic` seconds and runs `pace` times as fast."""

    at: datetime
    monotonic: float
    pace: float


_moment: ContextVar[Moment | None] = ContextVar("moment", default=None)


def now() -> datetime:
    """The time to record calls with, in UTC."""
    moment = _moment.get()
    if moment is None:
        return datetime.now(UTC)
    return moment.at + timedelta(seconds=(time.monotonic() - moment.monotonic) * moment.pace)


@contextmanager
def living_at(at: datetime, pace: float) -> Iterator[None]:
    """Set the clock to `at` and let it run `pace` times as fast until the block ends."""
    token = _moment.set(Moment(at, time.monotonic(), pace))
    try:
        yield
    finally:
        _moment.reset(token)
