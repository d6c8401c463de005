"""Days, weeks and months in any time zone, and the options of a report."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from audit.queries.time_range import TimeRange
from audit.reports.periods import (
    in_words,
    last_whole,
    next_first_day,
    period,
    read_period,
    short_words,
    zone_words,
)

BERLIN, KATHMANDU = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kathmandu")
BEIRUT = ZoneInfo("Asia/Beirut")
NOW = datetime(2026, 11, 22, 2, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("day", "start", "hours"),
    [
        (date(2026, 3, 29), "2026-03-28T23:00:00+00:00", 23),
        (date(2026, 10, 25), "2026-10-24T22:00:00+00:00", 25),
        (date(2026, 11, 20), "2026-11-19T23:00:00+00:00", 24),
    ],
)
def test_day_has_the_hours_of_its_time_zone(day: date, start: str, hours: int) -> None:
    of = period("day", day, BERLIN)
    assert of.start.isoformat() == start
    assert of.length == timedelta(hours=hours)


def test_day_in_a_quarter_hour_offset_zone_begins_at_local_midnight() -> None:
    of = period("day", date(2026, 11, 20), KATHMANDU)
    assert (of.start, of.end) == (
        datetime(2026, 11, 19, 18, 15, tzinfo=UTC),
        datetime(2026, 11, 20, 18, 15, tzinfo=UTC),
    )
    assert zone_words(of) == "Asia/Kathmandu, UTC+5:45"


def test_day_with_a_skipped_midnight_begins_when_the_clock_moves_forward() -> None:
    of = period("day", date(2026, 3, 29), BEIRUT)  # at 0:00 it is 1:00
    assert of.start.astimezone(BEIRUT).isoformat() == "2026-03-29T01:00:00+03:00"
    assert of.length == timedelta(hours=23)
    assert period("day", date(2026, 3, 28), BEIRUT).end == of.start


@pytest.mark.parametrize("zone", [UTC, BERLIN, KATHMANDU, BEIRUT])
@pytest.mark.parametrize("kind", ["day", "week", "month"])
def test_periods_are_contiguous(kind: str, zone: ZoneInfo) -> None:
    day, end = date(2026, 1, 1), date(2027, 3, 1)
    while day < end:
        following = next_first_day(kind, day)
        assert period(kind, day, zone).end == period(kind, following, zone).start
        assert period(kind, following - timedelta(days=1), zone) == period(kind, day, zone)
        day = following


def test_last_whole_period_has_ended() -> None:
    for zone in (UTC, BERLIN, KATHMANDU):
        for kind in ("day", "week", "month"):
            for hour in range(0, 24 * 40, 5):
                now = NOW + timedelta(hours=hour)
                of = period(kind, last_whole(kind, now, zone), zone)
                assert (
                    of.end
                    <= now
                    < period(kind, next_first_day(kind, last_whole(kind, now, zone)), zone).end
                )


@pytest.mark.parametrize(
    ("kind", "zone", "words", "short"),
    [
        ("day", UTC, "Friday, 20 November 2026", "Fri 20\N{NO-BREAK SPACE}Nov 2026"),
        (
            "week",
            UTC,
            "Week 47: 16 – 22 November 2026",
            "Week 47: 16\N{NO-BREAK SPACE}Nov – 22\N{NO-BREAK SPACE}Nov 2026",
        ),
        ("month", UTC, "November 2026", "November 2026"),
        ("month", BERLIN, "November 2026", "November 2026"),
    ],
)
def test_periods_are_formatted_in_words(kind: str, zone: ZoneInfo, words: str, short: str) -> None:
    of = period(kind, date(2026, 11, 20), zone)
    assert (in_words(kind, of), short_words(kind, of)) == (words, short)


def test_ranges_are_formatted_in_words() -> None:
    whole = TimeRange(datetime(2026, 10, 30, tzinfo=UTC), datetime(2026, 11, 3, tzinfo=UTC), UTC)
    assert in_words("range", whole) == "30 October – 2 November 2026"
    part = TimeRange(
        datetime(2026, 11, 20, 8, 30, tzinfo=UTC), datetime(2026, 11, 20, 9, tzinfo=UTC), UTC
    )
    assert in_words("range", part) == "20 November 2026, 08:30 – 20 November 2026, 09:00"
    changing = period("day", date(2026, 10, 25), BERLIN)
    assert zone_words(changing) == "Europe/Berlin, UTC+2 to UTC+1"


@pytest.mark.parametrize(
    "params",
    [
        {"kind": "year", "day": "2026-11-20"},
        {"kind": "day"},
        {"kind": "day", "day": "20.11.2026"},
        {"kind": "day", "day": "9999-12-31"},
        {"kind": "month", "day": "0001-01-01"},
        {"kind": "day", "day": "2026-11-23"},
        {"kind": "range"},
        {"kind": "range", "from": "yesterday"},
        {"kind": "range", "from": "2026-11-20", "to": "2026-11-19"},
        {"kind": "range", "from": "2024-11-20", "to": "2026-11-19"},
        {"kind": "range", "from": "2026-11-23"},
        {"kind": "range", "range": "1y"},
        {"kind": "\x00"},
        {},
    ],
)
def test_invalid_report_options_are_rejected_with_a_message(params: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"[a-z0-9]\.$"):
        read_period(params, now=NOW, zone=UTC)


def test_current_day_can_be_reported() -> None:
    kind, of = read_period({"kind": "day", "day": "2026-11-22"}, now=NOW, zone=UTC)
    assert (kind, of.end) == ("day", datetime(2026, 11, 23, tzinfo=UTC))
