"""How instants are written, in unusual offsets and on days when clocks change."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from config import instants

ZURICH, KATHMANDU = ZoneInfo("Europe/Zurich"), ZoneInfo("Asia/Kathmandu")
ST_JOHNS = ZoneInfo("America/St_Johns")
LAST, FIRST = datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("instant", "zone", "text"),
    [
        (datetime(2026, 11, 20, 0, 0, 0, 1_999, UTC), UTC, "2026-11-20 00:00:00.001 UTC"),
        (datetime(2026, 11, 20, 23, 30, tzinfo=UTC), ZURICH, "2026-11-21 00:30:00.000 UTC+1"),
        (datetime(2026, 6, 20, 23, 30, tzinfo=UTC), ZURICH, "2026-06-21 01:30:00.000 UTC+2"),
        (datetime(2026, 11, 20, 18, 14, tzinfo=UTC), KATHMANDU, "2026-11-20 23:59:00.000 UTC+5:45"),
        (datetime(2026, 11, 20, 18, 15, tzinfo=UTC), KATHMANDU, "2026-11-21 00:00:00.000 UTC+5:45"),
        (datetime(2026, 1, 1, tzinfo=UTC), ST_JOHNS, "2025-12-31 20:30:00.000 UTC−3:30"),
        # 02:30 happens twice when clocks go back, and not at all when they go forward.
        (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), ZURICH, "2026-10-25 02:30:00.000 UTC+2"),
        (datetime(2026, 10, 25, 1, 30, tzinfo=UTC), ZURICH, "2026-10-25 02:30:00.000 UTC+1"),
        (datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC), ZURICH, "2026-03-29 01:59:59.000 UTC+1"),
        (datetime(2026, 3, 29, 1, 0, tzinfo=UTC), ZURICH, "2026-03-29 03:00:00.000 UTC+2"),
        (LAST, KATHMANDU, "9999-12-31 23:59:59.999 UTC"),
    ],
)  # fmt: skip  # by line as they belong together
def test_exact_shows_the_full_timestamp(instant: datetime, zone: ZoneInfo, text: str) -> None:
    assert instants.exact(instant, zone) == text


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (datetime(2026, 11, 20, 0, 0, 0, 1_000, UTC), "00:00:00.001"),
        (datetime(2026, 11, 19, 23, 59, 59, 999_000, UTC), "19 Nov 23:59:59"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2 Jan 03:04:05"),
        (datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC), "2025-12-31 23:59"),
        (datetime(2026, 11, 20, 0, 30, tzinfo=timezone(timedelta(hours=1))), "19 Nov 23:30:00"),
    ],
)
def test_short_omits_parts_shared_with_now(instant: datetime, text: str) -> None:
    now = datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert instants.short(instant, now, UTC).replace(instants.NBSP, " ") == text


def test_today_depends_on_the_time_zone() -> None:
    now = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)  # 00:05 of the 21st in Kathmandu
    before = now - timedelta(minutes=10)
    assert instants.short(before, now, UTC) == "18:10:00.000"
    assert instants.short(before, now, KATHMANDU).replace(instants.NBSP, " ") == "20 Nov 23:55:00"
    assert instants.to_the_minute(before, KATHMANDU) == "2026-11-20 23:55"


def test_iso_is_utc() -> None:
    at = datetime(2026, 11, 20, 0, 2, 11, 204_999, tzinfo=KATHMANDU)
    assert instants.iso(at) == "2026-11-19T18:17:11.204Z"
    assert instants.iso(FIRST) == "0001-01-01T00:00:00.000Z"


def test_place_is_the_last_part_of_the_zone_name() -> None:
    names = ("UTC", "Etc/UTC", "Asia/Kathmandu", "America/Argentina/Buenos_Aires")
    assert [instants.place(name) for name in names] == ["UTC", "UTC", "Kathmandu", "Buenos Aires"]
