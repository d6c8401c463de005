"""Rows of a trace's page: reasons and their positions, filters, zoom, minimap."""

import uuid
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from audit.pages.traces import waterfall
from audit.pages.traces.lane import Label, svg
from audit.pages.traces.timeline import Bar
from audit.pages.traces.waterfall import View
from audit.queries.calls import Call, FirstViolation, TraceDetail
from audit.queries.traces import TraceDay
from audit.show import reasons
from audit.show.figures import NBSP

START = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
NOW = START + timedelta(minutes=1)


def call(start_ms: int = 0, duration_ms: int | None = 100, **members: Any) -> Call:
    started_at = START + timedelta(milliseconds=start_ms)
    state = "open" if duration_ms is None else "ok"
    values: dict[str, Any] = dict.fromkeys(Call.__slots__)
    values |= {
        "started_on": started_at.date(),
        "invocation_id": uuid.uuid4(),
        "started_at": started_at,
        "ended_at": duration_ms and started_at + timedelta(milliseconds=duration_ms),
        "duration_us": None if duration_ms is None else duration_ms * 1_000,
        "state": state,
        "tool_name": "get_weather",
        "tool_version": "",
        "trace_id": "t",
        "call_id": "c",
        "error_type": "",
        "violation_count": 0,
        "prompt_tokens": 0,
        "completion_tokens": 0,
    }
    return Call(**(values | members))


def detail(*calls: Call) -> TraceDetail:
    ordered = sorted(calls, key=lambda one: one.started_at)
    summary = TraceDay("t", START, NOW, "get_weather", None, len(calls), 0, 0, 0, 0, 0)
    return TraceDetail(summary, ordered, {}, False)


def label(start_ms: int, duration_ms: int, reason_length: int) -> Label:
    """The label of a call in a trace of one second, with a reason of that many characters."""
    whole = call(0, 1_000)
    message = "x" * (reason_length - len("E · "))
    one = call(start_ms, duration_ms, state="failed", error_type="E", error_message=message)
    built = waterfall.build(detail(whole, one), View(), NOW)
    return next(row.label for row in built.rows if row.call is one)


def test_reason_is_placed_where_space_is_available() -> None:
    assert label(100, 100, 20) == Label("E · " + "x" * 16, 20.0, "right")
    assert label(800, 100, 20) == Label("E · " + "x" * 16, 80.0, "left")
    assert label(50, 900, 60).place == "inside"
    assert label(10, 20, 80).place == "right"


def test_reason_left_of_its_bar_is_cut_at_a_whole_part() -> None:
    cut = label(800, 200, 80)
    assert cut == Label("E", 80.0, "left")


def test_first_failure_to_end_is_selected_first() -> None:
    outer = call(0, 900, state="failed")
    inner = call(100, 200, state="failed")
    broken, hanging = call(50, 10, violation_count=1), call(10, None)
    fine = call(0, 5)
    for calls, highlight in (
        ((outer, inner, broken, hanging, fine), inner),
        ((broken, hanging, fine), broken),
        ((hanging, fine), hanging),
        ((fine,), fine),
    ):
        built = waterfall.build(detail(*calls), View(), NOW)
        assert built.highlight is built.selected is highlight


def test_zoom_clips_bars_and_moves_the_window() -> None:
    calls = [call(0, 100), call(400, 100), call(900, 100)]
    built = waterfall.build(detail(*calls), View(zoom=(350_000, 550_000)), NOW)
    assert [row.bar.is_outside for row in built.rows] == [True, False, True]
    assert built.is_zoomed
    assert (built.window_x, built.window_width) == pytest.approx((35, 20))
    assert (built.rows[1].bar.x, built.rows[1].bar.width) == pytest.approx((25, 50))


def test_minimap_zoom_areas_cover_the_whole_trace() -> None:
    zooms = waterfall.build(detail(call(0, 1_000)), View(), NOW).zooms
    assert (zooms[0].from_us, zooms[-1].to_us) == (0, 1_000_000)
    assert sum(zoom.width for zoom in zooms) == pytest.approx(100)
    assert all(one.to_us > two.from_us for one, two in pairwise(zooms))


def test_minimap_of_thousands_of_calls_stays_small() -> None:
    calls = [call(n, 5, state="failed" if n % 9 == 0 else "ok") for n in range(5_000)]
    built = waterfall.build(detail(*calls), View(), NOW)
    assert sum(len(outline.path) for outline in built.outlines) < 100_000
    assert [outline.tone for outline in built.outlines] == ["ok", "failed"]
    assert len(built.rows) == waterfall.WINDOW_ROWS
    assert sum(each.count for each in built.later) == 5_000 - waterfall.WINDOW_ROWS


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, ""),
        ({"attempt": 1}, ""),
        ({"attempt": 2, "cache_hit": True}, "attempt 2 · cache hit"),
        ({"prompt_tokens": 1_000, "completion_tokens": 204}, "1.2 k tok"),
        ({"duration_ms": None}, "open 1 min"),
        ({"duration_ms": None, "timeouts_ms": 59_000}, "open 1 min · overdue"),
        ({"duration_ms": None, "timeouts_ms": 61_000}, "open 1 min"),
        ({"state": "failed"}, "FAILED"),
        (
            {
                "state": "failed",
                "error_type": "UPSTREAM",
                "error_code": "HTTP_503",
                "upstream_status": 503,
                "retry_after_ms": 500,
                "error_message": "\n busy \n trace …",
            },
            "UPSTREAM 503 · retry after 500 ms · busy",
        ),
        (
            {"state": "failed", "error_type": "TIMEOUT", "error_code": "57014"},
            "TIMEOUT 57014",
        ),
        (
            {"violation_count": 3, "guard_outcome": "coerced"},
            "$.t WRONG_TYPE +2 · coerced",
        ),
        (
            {"state": "failed", "violation_count": 1, "guard_outcome": "failed"},
            "FAILED · $.t WRONG_TYPE",
        ),
        (
            {"state": "failed", "error_type": "VALIDATION", "violation_count": 1},
            "$.t WRONG_TYPE",
        ),
        (
            {"duration_ms": 500, "timeouts_ms": 200, "attempt": 2},
            "exceeded 200 ms timeout · attempt 2",
        ),
        ({"duration_ms": 200, "timeouts_ms": 200}, ""),
        ({"duration_ms": 500, "timeouts_ms": 200, "state": "failed", "error_type": "E"}, "E"),
        ({"duration_ms": None, "timeouts_ms": 1, "started_at": NOW}, "open 0 µs"),
    ],
)
def test_row_reason_lists_notable_facts(members: dict[str, Any], expected: str) -> None:
    one = call(**members)
    violation = FirstViolation("$.t", "WRONG_TYPE") if one.violation_count else None
    assert reasons.of_call(one, violation, NOW).replace(NBSP, " ") == expected


def test_long_message_is_truncated() -> None:
    reason = reasons.failure("FATAL", None, None, "x" * 500)
    assert len(reason) < 100
    assert reason.endswith("x…")


def test_window_contains_the_requested_row_and_counts_the_others() -> None:
    parent = call(0, 10_000)
    calls = [parent, *(call(n, 5, parent_invocation_id=parent.invocation_id) for n in range(199))]
    built = waterfall.build(detail(*calls), View(first_row=130), NOW)
    assert (built.first_row, len(built.rows)) == (120, 60)
    assert built.earlier is not None
    assert (built.earlier.first, built.earlier.last) == (60, 120)
    assert [(each.first, each.count, each.depth) for each in built.later] == [(180, 20, 1)]
    assert waterfall.build(detail(*calls), View(first_row=0), NOW).earlier is None


def test_svg_contains_numbers_and_escaped_text() -> None:
    drawn = Bar(x=10, width=20.006, is_open=True, is_outside=False)
    hostile = '</text><script>"&'
    markup = svg(
        "failed", drawn, Label(hostile, 30.006, "right"), is_critical=True, limit=(50, hostile)
    )
    assert "<script" not in markup
    assert markup.count("&lt;script&gt;&quot;&amp;") == 2
    assert '<rect class="bar is-failed is-endless" x="10.00%" width="20.01%"' in markup
    assert '<rect class="critical" x="10.00%"' in markup
    assert '<line class="limit" x1="50.00%" x2="50.00%"' in markup
    outside = Bar(x=0, width=0, is_open=False, is_outside=True)
    assert svg("ok", outside, Label("", 0, "right"), is_critical=True, limit=None) == ""
