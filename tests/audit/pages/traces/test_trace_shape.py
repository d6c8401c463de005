"""Where a trace spent its time: critical path, gaps, children, repeats."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.pages.traces.timeline import (
    Node,
    Span,
    Window,
    arrange,
    window_of,
)
from audit.pages.traces.trace_shape import (
    critical_path,
    gaps,
    repeats,
    sizes,
)

MOST = 29  # calls


def tree(*calls: tuple[int, int | None, int | None]) -> list[Node]:
    """Rows of calls given as (start, end, number of the parent, from 0)."""
    return arrange(Span(n, parent, start, end) for n, (start, end, parent) in enumerate(calls))


def path(nodes: list[Node]) -> list[int]:
    return sorted(critical_path(nodes))


def test_critical_path_of_sequential_calls_contains_all_calls() -> None:
    assert path(tree((0, 10, None), (10, 30, None), (30, 40, None))) == [0, 1, 2]


def test_last_parallel_call_to_end_is_on_the_critical_path() -> None:
    nodes = tree((0, 100, None), (0, 40, 0), (0, 90, 0), (90, 100, 0), (5, 20, 1), (5, 80, 2))
    assert path(nodes) == [0, 2, 3, 5]


def test_open_and_outlasting_calls_are_on_the_critical_path() -> None:
    assert path(tree((0, 50, None), (10, 80, 0), (0, 9, 0))) == [0, 1, 2]
    assert path(tree((0, None, None), (10, None, 0), (0, 30, 0))) == [0, 1]
    assert path(tree((0, 10, None), (20, 30, 0))) == [0], "started after its parent had ended"


def test_gaps_lie_between_leaf_calls() -> None:
    nodes = tree((0, 100, None), (10, 30, 0), (20, 40, 0), (60, 100, 0))
    assert gaps(nodes, Window(0, 100)) == [(0, 10), (40, 60)]
    assert gaps(tree((0, 10, None), (50, None, None)), Window(0, 100)) == [(10, 50)]
    assert gaps([], Window(0, 100)) == []


def test_descendants_are_counted_at_any_depth() -> None:
    nodes = tree((0, 9, None), (1, 2, 0), (3, 9, 0), (4, 5, 2), (10, 11, None))
    assert sizes(nodes) == [3, 0, 1, 0, 0]


def test_identical_calls_are_numbered() -> None:
    assert repeats(["a", "b", "a", "a"]) == [(1, 3), None, (2, 3), (3, 3)]


_CALLS = st.lists(
    st.tuples(
        st.integers(0, 50),
        st.none() | st.integers(0, 60),
        st.none() | st.integers(0, MOST - 1),
    ),
    min_size=1,
    max_size=MOST,
)


@pytest.mark.slow
@given(_CALLS)
def test_shape_is_consistent_for_arbitrary_times(
    calls: list[tuple[int, int | None, int | None]],
) -> None:
    nodes = tree(*calls)
    window = window_of(node.span for node in nodes)
    critical = critical_path(nodes)
    assert critical, "one call ended last"
    ends = [
        float("inf") if n.span.end_us is None else max(n.span.end_us, n.span.start_us)
        for n in nodes
    ]
    tops = [at for at, node in enumerate(nodes) if node.depth == 0]
    last = max(ends[at] for at in tops)
    assert any(nodes[at].span.id in critical for at in tops if ends[at] == last)
    all_gaps = gaps(nodes, window)
    assert all(window.start_us <= one < other <= window.end_us for one, other in all_gaps)
    assert all(one[1] <= other[0] for one, other in pairwise(all_gaps))
    leaves = [node.span for node in nodes if not node.child_count]
    assert not any(
        start < (window.end_us if leaf.end_us is None else leaf.end_us) and leaf.start_us < end
        for start, end in all_gaps
        for leaf in leaves
    )
    assert sum(sizes(nodes)) == sum(min(node.depth, len(nodes)) for node in nodes)
