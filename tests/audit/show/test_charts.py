"""Charts as values: the drawing and a table with the same data. Without a database."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from audit.alerts.rules import EventKind, Measure
from audit.queries.alerts import Fired
from audit.queries.call_query import parse
from audit.queries.over_time import Figures, OverTime
from audit.queries.time_range import TimeRange
from audit.show.charts import (
    MARKED,
    Chart,
    Mark,
    Series,
    Slot,
    Unit,
    alert_marks,
    range_query,
    sparkline,
    time_slots,
    value_text,
)
from audit.show.tiles import charts, tiles
from audit.templatetags.charts import table_rows, with_term

END = datetime(2026, 11, 21, 12, 30, 0, 250_000, tzinfo=UTC)


def make_chart() -> Chart:
    slots = [Slot("a", "in full a", "tool:a"), Slot("b", "in full b", "tool:b")]
    series = [
        Series("OK", "ok", [2, 0], "state:ok"),
        Series("Failed", "failed", [None, 1200], "state:failed"),
    ]
    return Chart("calls", "Calls", "bars", "count", slots, series)


def test_chart_data_and_table_match() -> None:
    chart = make_chart()
    assert [one["texts"] for one in chart.island["series"]] == [["2", "0"], ["—", "1,200"]]
    cells = re.findall(r'<td class="r">(?:<a [^>]*>)?([^<]*)', table_rows(chart))
    assert cells == ["2", "—", "0", "1,200"]


def test_only_counts_link_to_their_calls() -> None:
    first, second = table_rows(make_chart()).splitlines()
    links = [re.findall(r'href="([^"]*)">([^<]*)', row) for row in (first, second)]
    assert links == [
        [("/calls/?q=tool%3Aa+state%3Aok", "2")],
        [("/calls/?q=tool%3Ab+state%3Afailed", "1,200")],
    ]


def test_the_table_of_traces_links_to_the_traces_of_a_part() -> None:
    slots = [Slot("a", "in full a", "since:2026-11-21T12:30:00Z until:2026-11-21T13:00:00Z")]
    series = [Series("Failed", "failed", [2], "trace=a%26b&state=failed")]
    chart = Chart("list", "Traces", "bars", "count", slots, series, leads_to="traces")
    (address,) = re.findall(r'href="([^"]*)"', table_rows(chart))
    assert address == (
        "/traces/?from=2026-11-21T12%3A30%3A00Z&amp;to=2026-11-21T13%3A00%3A00Z"
        "&amp;trace=a%26b&amp;state=failed"
    )


def test_table_cells_are_escaped() -> None:
    slots = [Slot("a", "<b>a</b>", 'tool:"<i>&"')]
    series = [Series("OK", "ok", [2], "state:ok"), Series("Failed", "failed", [None], "x")]
    assert table_rows(Chart("calls", "Calls", "bars", "count", slots, series)) == (
        '<tr><th scope="row">&lt;b&gt;a&lt;/b&gt;</th><td class="r">'
        '<a href="/calls/?q=tool%3A%22%3Ci%3E%26%22+state%3Aok">2</a></td>'
        '<td class="r">—</td></tr>\n'
    )


def fired(at: datetime, watches: str, severity: str = "alert") -> Fired:
    return Fired(UUID(int=7), at, "<b>fails</b>", severity, "", watches)


def test_alerts_are_marked_in_the_part_in_which_they_began() -> None:
    of = TimeRange(END - timedelta(hours=3), END, UTC)
    first, _ = of.parts[1]
    found = alert_marks(
        of,
        [
            fired(of.start, "failed"),
            fired(first - timedelta(microseconds=1), "failed", "warning"),
            fired(first, "failed"),
            fired(first, "tokens"),
            fired(END - timedelta(milliseconds=1), "failed"),
        ],
        {"failed", "failed_share"},
    )
    assert [(mark.slot, mark.tone) for mark in found] == [
        (0, "failed"),
        (0, "violation"),
        (1, "failed"),
        (len(of.parts) - 1, "failed"),
    ]


def test_marks_are_in_the_drawing_and_in_the_table() -> None:
    chart = replace(
        make_chart(), marks=[Mark(1, "<b>fails</b>", "failed", f"/alerts/{UUID(int=7)}")]
    )
    assert chart.island["marks"] == [[1, "<b>fails</b>", "failed", "triangle"]]
    first, second = table_rows(chart).splitlines()
    assert "alert-mark" not in first
    assert f'href="/alerts/{UUID(int=7)}"' in second
    assert "&lt;b&gt;fails&lt;/b&gt;</a>" in second


def test_each_measure_is_marked_on_one_chart_of_the_overview() -> None:
    watched = [*Measure, *EventKind, ""]
    at = END - timedelta(minutes=1)
    of = TimeRange(END - timedelta(hours=1), END, UTC)
    series = OverTime(of, Figures(), Figures(), [Figures() for _ in of.parts], {})
    listed = charts(series, [fired(at, one) for one in watched])
    assert sum(len(chart.marks) for chart in listed.values()) == len(watched)
    assert {*MARKED["errors"], *MARKED["latency"], *MARKED["violations"]} <= set(watched)


def test_term_is_added_to_a_url() -> None:
    assert with_term("?range=24h", {"tool": "a&b", "version": ""}) == (
        "?range=24h&tool=a%26b&version="
    )
    assert with_term("?", {"tool": "a"}) == "?tool=a"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "share", "0 %"),
        (0.0142, "share", "1.42 %"),
        (0.00001, "share", "< 0.01 %"),
        (0.63, "share", "63.0 %"),
        (0.9999, "share", "99.9 %"),
        (1, "share", "100 %"),
        (301.4, "duration", "301 ms"),
        (1880, "duration", "1.88 s"),
        (12345, "count", "12,345"),
        (None, "share", "—"),
    ],
)
def test_values_are_formatted_with_their_unit(value: float | None, unit: Unit, text: str) -> None:
    assert value_text(value, unit).replace("\xa0", " ") == text


def test_slots_are_named_in_the_time_zone_and_query_exactly_their_calls() -> None:
    of = TimeRange(END - timedelta(hours=24), END, ZoneInfo("Asia/Kathmandu"))
    slots = time_slots(of)
    assert [slots[0].label, slots[1].label] == ["18:15", "19:00"]
    assert any(slot.label == "21\xa0Nov" for slot in slots)
    assert slots[1].name.replace("\u2060", "") == "Fri 20\xa0Nov 19:00–20:00 UTC+5:45"
    for slot, (start, end) in zip(slots, of.parts, strict=True):
        query = parse(slot.query)
        assert query.problems == ()
        assert (query.wanted.since, query.wanted.until) == (start, end)


@pytest.mark.parametrize(
    ("start", "end", "partial"),
    [
        ("2026-11-21T12:30Z", "2026-11-22T12:01Z", "both"),
        ("2026-11-21T12:00Z", "2026-11-22T12:01Z", "last"),
        ("2026-11-21T12:00Z", "2026-11-22T12:00Z", "none"),
    ],
)
def test_partial_slots_are_marked(start: str, end: str, partial: str) -> None:
    """A minute of calls was drawn like an hour, and its error rate was the peak of the day."""
    of = TimeRange(datetime.fromisoformat(start), datetime.fromisoformat(end), UTC)
    slots = time_slots(of)
    expected = {"both": [0, len(slots) - 1], "last": [len(slots) - 1], "none": []}[partial]
    assert [n for n, slot in enumerate(slots) if slot.is_partial] == expected
    assert all(("(part of an hour)" in slot.name) is slot.is_partial for slot in slots)
    chart = Chart("c", "C", "bars", "count", slots, [Series("a", "ok", [1] * len(slots))])
    assert chart.island["partial"] == expected
    assert of.whole(range(len(slots))) == [n for n in range(len(slots)) if n not in expected]


def test_tile_sparkline_excludes_partial_slots() -> None:
    """One failed call in the last minute used to be the peak of the day's error rate."""
    of = TimeRange(
        datetime(2026, 11, 21, 12, tzinfo=UTC), datetime(2026, 11, 22, 12, 1, tzinfo=UTC), UTC
    )
    parts = [Figures(ok=int(end < of.end), failed=int(end == of.end)) for _, end in of.parts]
    all_tiles = tiles(OverTime(of, Figures(), Figures(), parts, {}), is_comparable=False)
    assert [tile.course for tile in all_tiles if tile.name in {"Calls", "Failed"}] == [
        [1] * 24,
        [0] * 24,
    ]


def test_day_of_23_hours_is_a_whole_slot() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    of = TimeRange(
        datetime(2026, 3, 20, tzinfo=berlin), datetime(2026, 4, 10, tzinfo=berlin), berlin
    )
    assert len(of.is_whole) == 21
    assert all(of.is_whole)


def test_range_query_keeps_microseconds() -> None:
    wanted = parse(range_query(END - timedelta(microseconds=1), END)).wanted
    assert (wanted.since, wanted.until) == (END - timedelta(microseconds=1), END)


def test_sparkline_stays_within_its_box() -> None:
    points = [tuple(map(float, each.split(","))) for each in sparkline([1, None, 5, 0]).split()]
    assert len(points) == 4
    level = [1, 0, 0, 0, 0, 3]
    assert len(sparkline(level).split()) == 4  # both ends of the level stretch, none within it
    assert all(0 <= x <= 96 and 0 <= y <= 22 for x, y in points)
    assert sparkline([0, 0]) == sparkline([]) == sparkline([3]) == ""
