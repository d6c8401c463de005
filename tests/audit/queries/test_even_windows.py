"""Windows for reading a part of a range."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from audit.queries.even_windows import even_windows

START = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.mark.parametrize("share", [0.9, 0.5, 0.01, 0.0001])
@pytest.mark.parametrize("length", [timedelta(minutes=15), timedelta(days=90)])
def test_windows_are_apart_within_the_range_and_cover_the_share(
    length: timedelta, share: float
) -> None:
    windows = even_windows(START, START + length, share)
    starts = sorted(windows.starts)
    assert starts[0] >= START
    assert starts[-1] + windows.length <= START + length
    assert all(first + windows.length <= second for first, second in pairwise(starts))
    assert windows.length * len(starts) / length == pytest.approx(share, rel=0.01)
    halves = sum(start < START + length / 2 for start in starts)
    assert halves * 2 == len(starts)


def test_a_part_of_the_windows_is_of_the_whole_range() -> None:
    windows = even_windows(START, START + timedelta(days=1), 0.1)
    hours = {start.hour for start in windows.starts[:200]}
    assert len(hours) == 24


@pytest.mark.parametrize("share", [1, 7.5])
def test_the_whole_range_is_one_window(share: float) -> None:
    windows = even_windows(START, START + timedelta(days=1), share)
    assert (windows.starts, windows.length) == ([START], timedelta(days=1))
