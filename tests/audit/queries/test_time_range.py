"""Time ranges and their parts in every time zone. Without a database."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.queries.hour_cells import (
    HOUR,
    QUARTER,
    cells,
    hour_of,
    slot_of,
)
from audit.queries.time_range import (
    DEFAULT,
    LENGTHS,
    MAX_LENGTH,
    TimeRange,
    read,
)

ZONES = [
    *("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Kathmandu"),
    *("Australia/Lord_Howe", "Pacific/Chatham", "America/St_Johns", "America/Sao_Paulo"),
    *("Africa/Cairo", "Pacific/Apia"),  # midnight that does not exist; a day that does not
]
zones = st.sampled_from(ZONES).map(ZoneInfo)
instants = st.timedeltas(timedelta(0), timedelta(days=18 * 365)).map(
    lambda passed: datetime(2010, 1, 1, tzinfo=UTC) + passed
)
lengths = st.timedeltas(timedelta(microseconds=1), MAX_LENGTH) | st.sampled_from(
    [length for _, length in LENGTHS.values()]
)


@st.composite
def ranges(draw: st.DrawFn) -> TimeRange:
    start = draw(instants)
    return TimeRange(start, start + draw(lengths), draw(zones))


@given(ranges())
def test_parts_cover_the_range_and_none_is_empty(one: TimeRange) -> None:
    bounds = one.bounds
    assert (bounds[0], bounds[-1]) == (one.start, one.end)
    assert all(start < end for start, end in pairwise(bounds))
    assert len(bounds) <= 102
    slack = timedelta(0) if one.step < HOUR else HOUR  # when clocks change
    if one.step == 7 * timedelta(days=1) or one.zone == ZoneInfo("Pacific/Apia"):
        slack = timedelta(days=1)
    assert all(end - start <= one.step + slack for start, end in one.parts)


@given(ranges())
def test_parts_begin_at_round_clock_times(one: TimeRange) -> None:
    for at in one.bounds[1:-1]:
        wall = at.astimezone(one.zone)
        assert wall.second == wall.microsecond == 0
        if one.step < HOUR:
            assert wall.minute % (one.step // timedelta(minutes=1)) == 0
        elif one.step == HOUR:
            assert wall.minute == 0
        elif one.step <= timedelta(hours=6):
            assert wall.minute == 0 or wall.replace(fold=0).astimezone(UTC) != at
            assert wall.hour % (one.step // HOUR) in {0, 1}  # 1: the hour itself is excluded
        elif wall.hour:  # midnight does not exist that day
            assert wall.hour == 1
            before = (at - timedelta(microseconds=1)).astimezone(one.zone)
            assert before.date() < wall.date()
        if one.step == timedelta(days=7):
            assert wall.weekday() == 0


@given(ranges())
def test_previous_range_has_the_same_length_and_ends_at_the_start(one: TimeRange) -> None:
    assert one.previous.end == one.start
    assert one.previous.length == one.length


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-10-25", 25),
        ("Asia/Kathmandu", "2026-10-25", 24),
        ("Australia/Lord_Howe", "2026-04-05", 24),  # 24.5 hours, one of them an hour and a half
    ],
)
def test_day_has_23_24_or_25_hours(zone: str, day: str, hours: int) -> None:
    requested = read(
        {"from": day, "to": day}, now=datetime(2027, 1, 1, tzinfo=UTC), zone=ZoneInfo(zone)
    )
    assert requested.problem == ""
    assert len(requested.range.parts) == hours


def test_days_in_kathmandu_begin_at_a_quarter_past() -> None:
    zone = ZoneInfo("Asia/Kathmandu")
    one = TimeRange(datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 20, tzinfo=UTC), zone)
    assert {f"{at:%H:%M}" for at in one.bounds[1:-1]} == {"18:15"}


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"range": "2y"}, "Unknown range"),
        ({"from": "2026-11-20", "to": "2026-11-19"}, "must end after it starts"),
        ({"from": "yesterday"}, "Enter a time as"),
        ({"from": "2026-02-30"}, "Enter a time as"),
        ({"to": "2026-11-19"}, "start of the range is missing"),
        ({"from": "0001-01-01"}, "between 2000 and 8999"),
        ({"from": "9999-12-31", "to": "9999-12-31"}, "between 2000 and 8999"),
        ({"from": "2020-01-01", "to": "2026-01-01"}, "longer than 400 days"),
        ({"from": "2026-11-20T10:00:00+99:00"}, "Enter a time as"),
        ({"from": "\x00\ud800"}, "Enter a time as"),
    ],
)
def test_invalid_range_is_reported_and_the_default_is_used(
    params: dict[str, str], expected: str
) -> None:
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    result = read(params, now=now, zone=ZoneInfo("Europe/Berlin"))
    assert expected in result.problem
    assert result.range == TimeRange(now - LENGTHS[DEFAULT][1], now, result.range.zone, DEFAULT)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["range", "from", "to"]), st.text(max_size=50)), zones)
def test_arbitrary_parameters_give_a_valid_range(params: dict[str, str], zone: ZoneInfo) -> None:
    result = read(params, now=datetime(2026, 11, 21, 12, tzinfo=UTC), zone=zone)
    assert result.range.start < result.range.end
    assert result.range.bounds


def test_custom_range_uses_the_clock_of_the_viewer() -> None:
    now, zone = datetime(2026, 11, 21, 12, tzinfo=UTC), ZoneInfo("Europe/Berlin")
    custom = read({"from": "2026-11-20T10:00"}, now=now, zone=zone).range
    assert (custom.start, custom.end) == (datetime(2026, 11, 20, 9, tzinfo=UTC), now)


@pytest.mark.slow
@given(
    start=instants,
    gaps=st.lists(
        st.timedeltas(timedelta(seconds=1), timedelta(hours=30))
        | st.integers(1, 120).map(lambda n: n * QUARTER),
        min_size=1,
        max_size=6,
    ),
    is_on_the_quarter=st.booleans(),
    calls=st.lists(st.floats(-0.1, 1.1), max_size=60),
)
def test_rollup_cells_count_every_call_once_in_its_slot(
    start: datetime, gaps: list[timedelta], is_on_the_quarter: bool, calls: list[float]
) -> None:
    bounds = [hour_of(start) + QUARTER if is_on_the_quarter else start]
    for gap in gaps:
        bounds.append(bounds[-1] + gap)
    happened = [start + (bounds[-1] - start) * share for share in calls] + bounds
    covering = cells(bounds)
    for slot, (begin, end) in enumerate(pairwise(bounds)):
        counted = 0
        for at in happened:
            hour = hour_of(at)
            # As `cells` in `sql/over_time.sql` does.
            is_whole = begin <= hour < end and hour not in covering.cut_hours
            counted += is_whole + sum(
                one.at <= at < one.at + QUARTER for one in covering.quarters if one.slot == slot
            )
            for piece in covering.pieces:
                if piece.start <= at < piece.end:
                    counted += (piece.slot == slot) - (piece.taken_from == slot)
        assert counted == sum(begin <= at < end for at in happened)
    assert len({one.at for one in covering.quarters}) == len(covering.quarters)
    # And as few single calls as possible: at most half a quarter's around each edge.
    assert {hour_of(one.at) for one in covering.quarters} <= set(covering.cut_hours)
    for one in covering.quarters:
        assert one.slot == slot_of(bounds, one.at + QUARTER / 2)
    for piece in covering.pieces:
        middle = hour_of(piece.start) + (piece.start - hour_of(piece.start)) // QUARTER * QUARTER
        assert not piece.start <= middle + QUARTER / 2 < piece.end


@given(ranges().filter(lambda one: one.step >= QUARTER))
def test_only_the_ends_of_a_range_are_read_call_by_call(one: TimeRange) -> None:
    pieces = cells(one.bounds).pieces
    assert len(pieces) <= 2
    assert all(piece.end - piece.start <= QUARTER / 2 for piece in pieces)
