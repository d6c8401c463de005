"""A trace's calls as the rows of its page: tree, bars, reasons, filter and zoom.

Pure. `audit.pages.traces.timeline` has the rules of time and `audit.show.reasons` the texts. This
module combines them for the template, for the window of rows that one page shows.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from django.utils.safestring import SafeString

from audit.events.instants import microseconds
from audit.pages.traces.lane import Label, label, svg
from audit.pages.traces.minimap import Outline, Zoom, minimap, zooms
from audit.pages.traces.timeline import (
    Bar,
    Node,
    Span,
    Tick,
    Window,
    arrange,
    bar,
    ticks,
    window_of,
)
from audit.pages.traces.trace_shape import (
    critical_path,
    gaps,
    repeats,
    sizes,
)
from audit.queries.call_filter import OPEN
from audit.queries.calls import Call, Tone, TraceDetail
from audit.show import reasons
from audit.show.figures import milliseconds

WINDOW_ROWS = 60
"""Rows drawn at once, more than fit on a screen. The others load when scrolled to."""

_BY_STATE = {"failed", "waiting", "working", "cancelled", "refused", "awaiting"}
_ENDLESS = (*OPEN, "awaiting")  # states of calls without an end
_ELSEWHERE = -1  # the place of a call that is not in the trace
_DEEP = 4  # nesting depth from which names have less than half of their column
_GAP_SHARE = 0.3  # percent of the lane: two pixels

Only = Literal[
    "",
    "failed",
    "violation",
    "open",
    "waiting",
    "working",
    "cancelled",
    "refused",
    "awaiting",
    "path",
]
"""Which calls are shown. `path`: those on the critical path."""


@dataclass(frozen=True, slots=True)
class View:
    """Which part of a trace is shown. `zoom` is in microseconds since the trace's start."""

    only: Only = ""
    find: str = ""
    tool: str = ""
    zoom: tuple[int, int] | None = None
    first_row: int | None = None  # None: show the window with the selected call
    selected: UUID | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A call's row."""

    call: Call
    node: Node
    bar: Bar
    reason: str
    label: Label
    is_selected: bool
    is_context: bool  # shown only because a call below it matches
    is_critical: bool  # on the critical path
    is_alike: bool  # same tool and arguments as the selected call
    repeat: tuple[int, int] | None  # number among calls with the same content, and their count
    limit_x: float | None  # place of its timeout as a share, if that is in the window
    inside_count: int  # calls inside it, shown or not

    @property
    def lane(self) -> SafeString:
        """The lane as SVG."""
        limit = (
            None
            if self.limit_x is None or self.call.timeouts_ms is None
            else (self.limit_x, milliseconds(self.call.timeouts_ms))
        )
        return svg(self.call.tone, self.bar, self.label, is_critical=self.is_critical, limit=limit)


@dataclass(frozen=True, slots=True)
class RowRange:
    """Rows that are not drawn yet. `first` counts from 0; `depth` is their least depth."""

    first: int
    count: int
    depth: int

    @property
    def last(self) -> int:
        """Number of the last row, counted from 1."""
        return self.first + self.count


@dataclass(frozen=True, slots=True)
class Gap:
    """An interval in which no tool ran, as shares."""

    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Waterfall:
    """A window of rows and everything around it."""

    rows: list[Row]
    ticks: list[Tick]
    gaps: list[Gap]
    idle_us: int  # sum of all gaps in the whole trace
    span_us: int  # length of the minimap
    tools: list[tuple[str, int]]  # name and number of calls, most calls first
    outlines: list[Outline]
    lane_count: int
    zooms: list[Zoom]
    window_x: float  # the visible window in the minimap, as shares
    window_width: float
    is_zoomed: bool
    selected: Call | None
    highlight: Call  # the call to open first: see _highlight
    highlight_reason: str
    first_row: int  # counts from 0
    earlier: RowRange | None  # the window before this one, if any
    later: list[RowRange]  # the windows after it
    is_deep: bool  # names are indented so far that they need more room


def svg_share(percent: float) -> str:
    """Format a share of a width for SVG: `12.34%`."""
    return f"{percent:.2f}%"


def nodes_of(calls: Sequence[Call]) -> list[Node]:
    """Return the calls in row order. A span's id is the place of its call in `calls`."""
    return arrange(_spans(calls, places(calls)))


def places(calls: Sequence[Call]) -> dict[int, int]:
    """Return each call's place by the number of its id: Python hashes UUIDs in Python code.

    For a repeated id the first place counts.
    """
    last = len(calls) - 1
    return {calls[place].invocation_id.int: place for place in range(last, -1, -1)}


def build(detail: TraceDetail, view: View, now: datetime) -> Waterfall:
    """Build the rows of a trace that `view` selects."""
    calls, place_of = detail.calls, places(detail.calls)
    tones = [call.tone for call in calls]
    spans = _spans(calls, place_of)
    whole = window_of(spans)
    window = _zoomed(whole, view.zoom)
    nodes = arrange(spans)

    def reason(call: Call) -> str:
        pk = call.invocation_id
        return reasons.of_call(call, detail.violations.get(pk), now, detail.decisions.get(pk))

    critical = critical_path(nodes)
    shown, context = _filtered(nodes, calls, _matcher(view, reason, critical))
    highlight = _highlight(calls, tones)
    opened = place_of.get(view.selected.int) if view.selected else highlight
    selected = None if opened is None else calls[opened]
    first = _first_row(shown, view, opened)
    outlines, lane_count = minimap(tones, spans, whole)
    idle = gaps(nodes, whole)
    inside = dict(zip((node.span.id for node in nodes), sizes(nodes), strict=True))
    repeat = repeats([_content(call) for call in calls])

    def row(node: Node) -> Row:
        place = node.span.id
        call, drawn = calls[place], bar(node.span, window)
        text = reason(call)
        return Row(
            call=call,
            node=node,
            bar=drawn,
            reason=text,
            label=label(drawn, text),
            is_selected=call is selected,
            is_context=place in context,
            is_critical=place in critical,
            is_alike=repeat[place] is not None and _content(call) == _content(selected),
            repeat=repeat[place],
            limit_x=_limit_x(call, node.span, window),
            inside_count=inside[place],
        )

    return Waterfall(
        rows=[row(node) for node in shown[first : first + WINDOW_ROWS]],
        ticks=ticks(window, whole.start_us) if _has_extent(spans) else [],
        gaps=_gaps_drawn(idle, window),
        idle_us=sum(end - start for start, end in idle),
        span_us=whole.span_us,
        tools=Counter([call.tool_name for call in calls]).most_common(),
        outlines=outlines,
        lane_count=lane_count,
        zooms=zooms(whole),
        window_x=whole.share(window.start_us),
        window_width=whole.share(window.end_us) - whole.share(window.start_us),
        is_zoomed=window != whole,
        selected=selected,
        highlight=calls[highlight],
        highlight_reason=reason(calls[highlight]),
        first_row=first,
        earlier=_row_range(shown, first - WINDOW_ROWS) if first else None,
        later=[_row_range(shown, n) for n in range(first + WINDOW_ROWS, len(shown), WINDOW_ROWS)],
        is_deep=any(node.depth >= _DEEP for node in nodes),
    )


def _row_range(shown: Sequence[Node], first: int) -> RowRange:
    nodes = shown[first : first + WINDOW_ROWS]
    return RowRange(first, len(nodes), min(node.depth for node in nodes))


def _highlight(calls: Sequence[Call], tones: Sequence[Tone]) -> int:
    """Return the place of the call to open by default.

    A failed call comes first, then one with a violation, an open one, any other. Of several failed
    or violating calls it is the first to end, because a failure spreads outwards from the call it
    began in. The list of traces has the same rule. `calls` must be in order of their start.
    """
    for tone in ("failed", "violation"):
        if alike := [place for place, each in enumerate(tones) if each == tone]:
            return min(alike, key=lambda place: calls[place].ended_at or calls[place].started_at)
    return next((place for place, call in enumerate(calls) if call.state in OPEN), 0)


def _spans(calls: Sequence[Call], place_of: Mapping[int, int]) -> list[Span]:
    spans: list[Span] = []
    has_repeats = len(place_of) < len(calls)
    for place, call in enumerate(calls):
        start, parent = microseconds(call.started_at), call.parent_invocation_id
        # The duration the producer measured is more exact than the difference of two timestamps.
        end = None if call.state in _ENDLESS else start + (call.duration_us or 0)
        above = None if parent is None else place_of.get(parent.int, _ELSEWHERE)
        number = place_of[call.invocation_id.int] if has_repeats else place
        spans.append(Span(number, above, start, end))
    return spans


def _content(call: Call | None) -> tuple[str, str] | None:
    return None if call is None else (call.tool_name, call.call_id)


def _has_extent(spans: Sequence[Span]) -> bool:
    """Whether any time is known to have passed, so that an axis makes sense."""
    return len({span.start_us for span in spans}) > 1 or any(span.end_us for span in spans)


def _zoomed(whole: Window, zoom: tuple[int, int] | None) -> Window:
    if zoom is None:
        return whole
    start = max(whole.start_us, whole.start_us + zoom[0])
    end = min(whole.end_us, whole.start_us + zoom[1])
    return Window(start, end) if start < end else whole


def _matcher(
    view: View, reason: Callable[[Call], str], critical: set[int]
) -> Callable[[int, Call], bool] | None:
    """Return a test of whether a call matches the view, or None if every call does."""
    needle = view.find.casefold()
    if not needle and not view.only and not view.tool:
        return None

    def matches(place: int, call: Call) -> bool:
        if view.only == "path" and place not in critical:
            return False
        if view.only == "violation" and not call.violation_count:
            return False
        if view.only == "open" and call.state not in OPEN:
            return False
        if view.only in _BY_STATE and call.state != view.only:
            return False
        if view.tool and call.tool_name != view.tool:
            return False
        if not needle:
            return True
        text = f"{call.tool_name} {call.tool_version} {reason(call)} {call.error_message or ''}"
        return needle in text.casefold()

    return matches


def _filtered(
    nodes: Sequence[Node], calls: Sequence[Call], matches: Callable[[int, Call], bool] | None
) -> tuple[list[Node], set[int]]:
    """Return the rows that match with their ancestors, and which of them are only context."""
    if matches is None:
        return list(nodes), set()
    spans = {node.span.id: node.span for node in nodes}
    wanted = {place for place in spans if matches(place, calls[place])}
    context: set[int] = set()
    for one in wanted:
        parent = spans[one].parent_id
        while parent in spans and parent not in context:
            context.add(parent)
            parent = spans[parent].parent_id
    kept = wanted | context
    return [node for node in nodes if node.span.id in kept], context - wanted


def _first_row(shown: Sequence[Node], view: View, opened: int | None) -> int:
    """Return the first row of the window with the requested row, else with the selected call."""
    row = view.first_row or 0
    if view.first_row is None and opened is not None:
        row = next((n for n, node in enumerate(shown) if node.span.id == opened), 0)
    return min(max(0, row), max(0, len(shown) - 1)) // WINDOW_ROWS * WINDOW_ROWS


def _limit_x(call: Call, span: Span, window: Window) -> float | None:
    """Return the place of a call's timeout. None if the call used less than half of it."""
    if call.timeouts_ms is None:
        return None
    if call.duration_us is not None and call.duration_us < call.timeouts_ms * 500:
        return None
    limit_us = span.start_us + call.timeouts_ms * 1_000
    return window.share(limit_us) if window.start_us < limit_us < window.end_us else None


def _gaps_drawn(idle: Iterable[tuple[int, int]], window: Window) -> list[Gap]:
    """Return the gaps that are wide enough to be visible in the window."""
    least_us = window.span_us * _GAP_SHARE / 100
    drawn = (
        Gap(window.share(start), window.share(end) - window.share(start))
        for start, end in idle
        if end - start >= least_us  # only few are, in a long trace
    )
    return [gap for gap in drawn if gap.width >= _GAP_SHARE]
