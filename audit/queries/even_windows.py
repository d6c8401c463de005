"""Short windows evenly over a range, for reading a part of its calls. Pure.

Reading all calls of each window gives each call of the range the same chance to be read, whatever
the traffic. The same number of calls from each hour would make those of quiet hours look frequent.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

_MOST: Final = 2_000
_GOLDEN: Final = 0.618033988749895
_PRIME: Final = 7_919
_US: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Windows:
    """The starts of windows of the same length, which do not overlap."""

    starts: list[datetime]
    length: timedelta


def even_windows(start: datetime, end: datetime, share: float) -> Windows:
    """The windows that cover this share of a range; the range itself if the share is 1 or more.

    Each is somewhere in its own part of the range, by the golden ratio, so that no rhythm of the
    calls keeps step with them. They are in no order of time: a reader that stops early has not left
    out the end of the range.
    """
    range_us = (end - start) // _US
    if share >= 1 or range_us < _MOST:
        return Windows([start], end - start)
    part_us = range_us / _MOST
    length_us = max(1, round(part_us * share))
    places = ((n * _PRIME) % _MOST for n in range(_MOST))
    starts = [
        start + timedelta(microseconds=int(n * part_us + (n * _GOLDEN % 1) * (part_us - length_us)))
        for n in places
    ]
    return Windows(starts, timedelta(microseconds=length_us))
