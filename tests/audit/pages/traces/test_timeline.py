"""The waterfall's rules: every call has a row, a bar and a position, whatever was sent."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.pages.traces.timeline import (
    MAX_INDENT_DEPTH,
    MIN_SPAN_US,
    Node,
    Span,
    Window,
    arrange,
    bar,
    offset_label,
    pack,
    ticks,
    window_of,
)

IDS = range(1, 13)
BIGGEST = 10**16  # microseconds: longer than the wire contract allows


def span(
    number: int, parent: int | None = None, start: int = 0, end: int | None = 1_000_000
) -> Span:
    return Span(number, parent, start, end)


def names(nodes: list[Node]) -> list[tuple[int, int]]:
    return [(node.span.id, node.depth) for node in nodes]


spans = st.lists(
    st.builds(
        Span,
        id=st.sampled_from(IDS),
        parent_id=st.none() | st.sampled_from(IDS),
        start_us=st.integers(-BIGGEST, BIGGEST),
        end_us=st.none() | st.integers(-BIGGEST, BIGGEST),
    ),
    max_size=30,
)


def test_children_follow_their_parent_by_start() -> None:
    nodes = arrange([span(3, 1, 20), span(2, 1, 10), span(4, 2, 12), span(1, None, 5), span(5)])
    assert names(nodes) == [(5, 0), (1, 0), (2, 1), (4, 2), (3, 1)]
    assert [node.child_count for node in nodes] == [0, 2, 1, 0, 0]


def test_child_may_start_before_its_parent() -> None:
    assert names(arrange([span(1, None, 100), span(2, 1, 40)])) == [(1, 0), (2, 1)]


def test_call_with_a_missing_parent_is_a_top_level_orphan() -> None:
    (node,) = arrange([span(1, 99)])
    assert (node.depth, node.is_orphan) == (0, True)


def test_call_with_itself_as_parent_is_an_orphan() -> None:
    (node,) = arrange([span(1, 1)])
    assert (node.depth, node.is_orphan, node.child_count) == (0, True, 0)


def test_cycle_opens_at_its_earliest_call_and_keeps_its_descendants() -> None:
    ring = [span(1, 3, 30), span(2, 1, 10), span(3, 2, 20), span(4, 3, 0)]
    assert names(arrange(ring)) == [(2, 0), (3, 1), (4, 2), (1, 2)]


@pytest.mark.slow
@given(spans)
def test_every_call_has_exactly_one_row(given_spans: list[Span]) -> None:
    nodes = arrange(given_spans)
    assert sorted(node.span.id for node in nodes) == sorted({one.id for one in given_spans})


@pytest.mark.slow
@given(spans)
def test_rows_follow_their_parent_and_siblings_are_ordered_by_start(
    given_spans: list[Span],
) -> None:
    nodes = arrange(given_spans)
    place = {node.span.id: position for position, node in enumerate(nodes)}
    for node in nodes:
        if node.depth:
            assert node.span.parent_id is not None
            parent = nodes[place[node.span.parent_id]]
            assert place[parent.span.id] < place[node.span.id]
            assert node.depth == parent.depth + 1
    for one, two in pairwise(node for node in nodes if node.depth == 0):
        assert one.span.start_us <= two.span.start_us


@pytest.mark.slow
@given(spans)
def test_bars_stay_inside_the_window(given_spans: list[Span]) -> None:
    window = window_of(given_spans)
    assert window.span_us >= MIN_SPAN_US
    for one in given_spans:
        drawn = bar(one, window)
        assert 0 <= drawn.x <= drawn.end <= 100.000001
        assert not drawn.is_outside
        assert drawn.is_open == (one.end_us is None)


@pytest.mark.slow
@given(spans, st.integers(-BIGGEST, BIGGEST), st.integers(1, BIGGEST))
def test_zoomed_window_clips_bars(given_spans: list[Span], start: int, length: int) -> None:
    window = Window(start, start + length)
    for one in given_spans:
        drawn = bar(one, window)
        assert 0 <= drawn.x <= drawn.end <= 100.000001
        if drawn.is_outside:
            assert drawn.width == 0


@given(st.integers(-BIGGEST, BIGGEST), st.integers(1, 10**18), st.integers(-BIGGEST, BIGGEST))
def test_axis_marks_are_ordered_inside_and_uniquely_labelled(
    start: int, length: int, origin: int
) -> None:
    marks = ticks(Window(start, start + length), origin)
    assert len(marks) <= 7
    assert all(0 <= mark.x <= 100 for mark in marks)
    assert all(one.x < two.x for one, two in pairwise(marks))
    assert len({mark.label for mark in marks}) == len(marks)


@pytest.mark.parametrize(
    ("length", "labels"),
    [
        (4_210_000, ["0", "1 s", "2 s", "3 s", "4 s"]),
        (900, ["0", "200 µs", "400 µs", "600 µs", "800 µs"]),
        (730_000, ["0", "200 ms", "400 ms", "600 ms"]),
        (2_600_000, ["0", "500 ms", "1 s", "1.5 s", "2 s", "2.5 s"]),
        (7_000_000_000, ["0", "30 min", "1 h", "1 h 30 min"]),
        (3 * 86_400_000_000, ["0", "12 h", "1 d", "1 d 12 h", "2 d", "2 d 12 h", "3 d"]),
    ],
)
def test_axis_uses_round_numbers(length: int, labels: list[str]) -> None:
    assert [mark.label for mark in ticks(Window(0, length), 0)] == labels


def test_axis_counts_from_the_trace_start_when_zoomed() -> None:
    marks = ticks(Window(1_100_000, 1_900_000), 0)
    assert [mark.label for mark in marks] == ["1.2 s", "1.4 s", "1.6 s", "1.8 s"]
    assert offset_label(-1_500_000) == "−1.5 s"


def test_label_without_room_is_omitted() -> None:
    marks = ticks(Window(0, 265_000), 0)
    assert [(mark.label, mark.has_room) for mark in marks[-2:]] == [
        ("200 ms", True),
        ("250 ms", False),
    ]


def test_open_call_reaches_the_edge_without_extending_the_axis() -> None:
    calls = [span(1, end=1_000_000), span(2, start=500_000, end=None)]
    window = window_of(calls)
    assert window.end_us == 1_080_000
    assert bar(calls[1], window).end == 100


def test_guide_lines_connect_a_row_to_its_parent() -> None:
    top, first, nested, last = arrange([span(1), span(2, 1, 1), span(3, 2, 2), span(4, 1, 3)])
    assert top.guide_path == ""
    assert first.guide_path == "M5 0V13H12M5 13V26"
    assert nested.guide_path == "M5 0V26M19 0V13H26"
    assert last.guide_path == "M5 0V13H12"
    assert (top.indent, nested.indent) == (0, 28)


def test_indent_of_a_chain_of_five_thousand_calls_is_limited() -> None:
    nodes = arrange([span(n, n - 1 if n > 1 else None, start=n) for n in range(1, 5_001)])
    assert nodes[-1].depth == 4_999
    assert nodes[-1].indent == nodes[2_000].indent
    assert len(nodes[-1].guides) == MAX_INDENT_DEPTH


def test_five_thousand_siblings_keep_their_order() -> None:
    nodes = arrange([span(1)] + [span(n, 1, start=n) for n in range(2, 5_001)])
    assert [node.span.id for node in nodes] == list(range(1, 5_001))


@pytest.mark.slow
@given(spans, st.integers(1, 6))
def test_minimap_lanes_do_not_overlap_while_lanes_are_free(
    given_spans: list[Span], lane_count: int
) -> None:
    ordered = sorted(given_spans, key=lambda one: one.start_us)
    window = window_of(ordered)
    lanes = pack(ordered, window, lane_count=lane_count)
    assert all(0 <= lane < lane_count for lane in lanes)
    if len(set(lanes)) < lane_count:  # there were always enough lanes: nothing in a lane overlaps
        for lane in set(lanes):
            ends = window.start_us
            for one, taken in zip(ordered, lanes, strict=True):
                if taken == lane:
                    assert one.start_us >= ends
                    ends = window.end_us if one.end_us is None else max(one.start_us, one.end_us)
