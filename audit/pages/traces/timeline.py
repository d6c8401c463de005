"""A trace's calls as a waterfall: order and nesting, bars, axis and minimap.

Pure: turns calls into rows and shares of a width, without database, clock or HTML. Instants
are whole microseconds since one common epoch. Shares are percent, 0 to 100. No input from a
producer makes it fail: parents may be missing or form a ring, clocks may differ, and durations
may be anything from zero to centuries.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

INDENT = 14  # pixels per level
ROW_HEIGHT = 26  # pixels; also --row-height in tokens.css
MAX_INDENT_DEPTH = 6  # deeper calls are drawn at this depth, with their level as a number
MIN_SPAN_US = 1_000  # least width of a window, even of a single instant
_LETTER_SHARE = 1.8  # width of a label's character as a share of the narrowest axis
_OPEN_TAIL = 0.08  # room for open calls after the last known instant, as a share

# Steps that are easy to read: 1-2-5 below a second, clock steps above, then days.
_SECOND, _MINUTE, _HOUR, _DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
_STEPS = (
    [m * 10**e for e in range(6) for m in (1, 2, 5)]
    + [m * _SECOND for m in (1, 2, 5, 10, 15, 30)]
    + [m * _MINUTE for m in (1, 2, 5, 10, 15, 30)]
    + [m * _HOUR for m in (1, 2, 3, 6, 12)]
    + [m * 10**e * _DAY for e in range(8) for m in (1, 2, 5)]
)


class Span(NamedTuple):
    """The data of a call that the timeline needs. `end_us` is None while the call is open.

    `id` is a unique number. Of two calls with the same start, the lower id comes first. UUIDs took
    an eighth of the time of a long trace's page, because Python hashes them in Python code.
    """

    id: int
    parent_id: int | None
    start_us: int
    end_us: int | None


class Node(NamedTuple):
    """A call's place in the tree. Rows are drawn in the order of the nodes."""

    span: Span
    depth: int
    child_count: int
    is_orphan: bool  # its parent is missing, or it is its own ancestor
    guides: tuple[bool, ...]  # for each level drawn above: its line continues below this row

    @property
    def level(self) -> int:
        """Depth counted from 1: the outermost calls are on level 1."""
        return self.depth + 1

    @property
    def is_deeper_than_drawn(self) -> bool:
        """Whether the name is indented less than its depth requires."""
        return self.depth > MAX_INDENT_DEPTH

    @property
    def indent(self) -> int:
        """Indent of the name in pixels."""
        return min(self.depth, MAX_INDENT_DEPTH) * INDENT

    @property
    def guide_path(self) -> str:
        """Lines that connect the row to its parent, as an SVG path `indent` pixels wide."""
        parts: list[str] = []
        for level, goes_on in enumerate(self.guides):
            x = level * INDENT + 5
            if level == len(self.guides) - 1:
                parts.append(f"M{x} 0V{ROW_HEIGHT // 2}H{x + 7}")
                if goes_on:
                    parts.append(f"M{x} {ROW_HEIGHT // 2}V{ROW_HEIGHT}")
            elif goes_on:
                parts.append(f"M{x} 0V{ROW_HEIGHT}")
        return "".join(parts)


@dataclass(frozen=True, slots=True)
class Window:
    """The interval that a width shows. `end_us` is greater than `start_us`."""

    start_us: int
    end_us: int

    @property
    def span_us(self) -> int:
        return self.end_us - self.start_us

    def share(self, instant_us: int) -> float:
        """Return the place of an instant as a share, clipped to 0 … 100."""
        return min(100.0, max(0.0, (instant_us - self.start_us) / self.span_us * 100))


@dataclass(frozen=True, slots=True)
class Bar:
    """A call's bar in a window: left edge and width as shares."""

    x: float
    width: float
    is_open: bool  # no end is known, so the bar reaches the window's edge
    is_outside: bool  # no part of it is in the window

    @property
    def end(self) -> float:
        return self.x + self.width


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick line of the axis."""

    x: float
    label: str

    @property
    def has_room(self) -> bool:
        """Whether the label, which is right of the line, ends before the axis does."""
        return self.x + len(self.label) * _LETTER_SHARE <= 100


def arrange(spans: Iterable[Span]) -> list[Node]:
    """Return the calls in row order: depth first, siblings by start.

    A call whose parent is missing becomes a root. A ring of parents is opened at its earliest
    call. Every call is returned exactly once; a repeated id is dropped.
    """
    by_id: dict[int, Span] = {}
    for span in spans:
        by_id.setdefault(span.id, span)
    ordered = sorted(by_id.values(), key=lambda span: (span.start_us, span.id))
    children: dict[int, list[Span]] = defaultdict(list)
    roots: list[Span] = []
    for span in ordered:
        if span.parent_id is not None and span.parent_id in by_id:
            children[span.parent_id].append(span)
        else:
            roots.append(span)
    nodes = _rows_below(roots, children)
    if len(nodes) < len(ordered):
        tops = roots + _ring_openers(ordered, roots, children, by_id)
        tops.sort(key=lambda span: (span.start_us, span.id))
        nodes = _rows_below(tops, children)
    return nodes


def _rows_below(tops: Sequence[Span], children: Mapping[int, list[Span]]) -> list[Node]:
    """Return the rows of `tops` and of all calls inside them. No top is nested in another."""
    opened = {span.id for span in tops if span.parent_id is not None}
    nodes: list[Node] = []
    stack: list[tuple[Span, int, tuple[bool, ...]]] = [(span, 0, ()) for span in reversed(tops)]
    while stack:
        span, depth, guides = stack.pop()
        inside = children.get(span.id, ())
        is_orphan = depth == 0 and span.parent_id is not None
        if not inside:  # most calls of a long trace
            nodes.append(Node(span, depth, 0, is_orphan, guides))
            continue
        below = [child for child in inside if child.id not in opened]
        nodes.append(Node(span, depth, len(below), is_orphan, guides))
        for position in range(len(below) - 1, -1, -1):
            # Keep only the levels that are drawn: otherwise a chain of n calls takes n² memory.
            drawn = (*guides, position < len(below) - 1)[-MAX_INDENT_DEPTH:]
            stack.append((below[position], depth + 1, drawn))
    return nodes


def _ring_openers(
    ordered: Sequence[Span],
    roots: Sequence[Span],
    children: dict[int, list[Span]],
    by_id: dict[int, Span],
) -> list[Span]:
    """Return the earliest call of every ring. Calls that no root reaches are below one of them."""
    reached: set[int] = set()

    def reach(span: Span) -> None:
        stack = [span.id]
        while stack:
            one = stack.pop()
            if one not in reached:
                reached.add(one)
                stack.extend(child.id for child in children[one])

    for root in roots:
        reach(root)
    openers: list[Span] = []
    for span in ordered:
        if span.id in reached:
            continue
        # Follow the parents into the ring, then take the ring's earliest call.
        path: list[Span] = []
        seen: set[int] = set()
        here = span
        while here.id not in seen:
            seen.add(here.id)
            path.append(here)
            assert here.parent_id is not None  # otherwise a root would have reached it
            here = by_id[here.parent_id]
        ring = path[path.index(here) :]
        opener = min(ring, key=lambda one: (one.start_us, one.id))
        openers.append(opener)
        reach(opener)
    return openers


def window_of(spans: Iterable[Span]) -> Window:
    """Return the window that shows all calls, with room for open ones after the last known end.

    Open calls are not drawn to scale: one left open since yesterday would squeeze everything
    else into a line.
    """
    start: int | None = None
    end = 0
    has_open = False
    for span in spans:
        last = span.start_us if span.end_us is None else max(span.start_us, span.end_us)
        end = last if start is None else max(end, last)
        start = span.start_us if start is None else min(start, span.start_us)
        has_open = has_open or span.end_us is None
    if start is None:
        return Window(0, MIN_SPAN_US)
    length = max(end - start, MIN_SPAN_US)
    if has_open:
        length += max(1, int(length * _OPEN_TAIL))
    return Window(start, start + length)


def bar(span: Span, window: Window) -> Bar:
    """Return the call's bar, clipped to the window."""
    last = window.end_us if span.end_us is None else max(span.start_us, span.end_us)
    x = window.share(span.start_us)
    return Bar(
        x=x,
        width=window.share(last) - x,
        is_open=span.end_us is None,
        is_outside=last < window.start_us or span.start_us > window.end_us,
    )


def ticks(window: Window, origin_us: int, *, at_most: int = 6) -> list[Tick]:
    """Return the axis: 1 to `at_most` + 1 ticks at round distances from `origin_us`."""
    step = next((one for one in _STEPS if window.span_us / one <= at_most), _STEPS[-1])
    first = -((origin_us - window.start_us) // step) * step
    marks: list[Tick] = []
    offset = first
    while origin_us + offset <= window.end_us and len(marks) <= at_most:
        if origin_us + offset >= window.start_us:
            marks.append(Tick(window.share(origin_us + offset), offset_label(offset)))
        offset += step
    return marks


def offset_label(offset_us: int) -> str:
    """Format an exact distance from the start: `0`, `250 ms`, `1.5 s`, `2 min`, `1 d 12 h`."""
    if offset_us == 0:
        return "0"
    sign, rest = ("−", -offset_us) if offset_us < 0 else ("", offset_us)
    if rest < 1_000:
        return f"{sign}{rest} µs"
    if rest < _SECOND:
        return f"{sign}{rest / 1_000:g} ms"
    parts: list[str] = []
    for unit, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if rest >= unit:
            parts.append(f"{rest // unit} {name}")
            rest %= unit
    if rest:
        parts.append(f"{rest / _SECOND:.6f}".rstrip("0").rstrip(".") + " s")
    return sign + " ".join(parts)


def pack(spans: Sequence[Span], window: Window, *, lane_count: int) -> list[int]:
    """Return a lane for each call, so that overlapping calls are apart while lanes last.

    The calls must be sorted by start. If more than `lane_count` run at once, a call shares the
    lane that becomes free first. Used for the minimap, where only the outline matters.
    """
    assert all(one.start_us <= two.start_us for one, two in pairwise(spans)), "sort by start"
    free: list[tuple[int, int]] = []  # when a lane becomes free, and its number
    lanes: list[int] = []
    for span in spans:
        last = window.end_us if span.end_us is None else max(span.start_us, span.end_us)
        if free and (free[0][0] <= span.start_us or len(free) >= lane_count):
            until, lane = free[0]
            heapq.heapreplace(free, (max(last, until), lane))
        else:
            lane = len(free)
            heapq.heappush(free, (last, lane))
        lanes.append(lane)
    return lanes
