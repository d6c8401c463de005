"""The layout of a graph of calls as an SVG: columns from callers to what they call. Pure."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import log2
from typing import Final, NamedTuple

WIDTH, HEIGHT = 170, 28
"""Of a node, in pixels."""
_ACROSS, _DOWN, _MARGIN = 180, 14, 12
"""Between columns, between rows, around the drawing."""
_ROWS_SEEN: Final = 16
"""Up to so many rows of a graph are seen at once."""
LABEL_HEIGHT, _LABEL_CHARACTER = 14, 6.2
"""Of a label, in pixels: a line, and a character of 11 px on average."""
_BAND = 50  # pixels
_LABEL_PLACES = tuple(n / 100 for n in range(15, 86, 5))
"""Where a label may be on its curve, 0 to 1. Of those that cover least, the nearest is taken."""
_NEAR_SOURCE, _MIDDLE, _NEAR_TARGET = 0.25, 0.5, 0.75
_MANY: Final = 6
_NAME_MAX: Final = 23  # characters that fit into a node


class Line[N: Hashable](NamedTuple):
    """An edge to draw: from, to, how many calls it has, and the text of its label."""

    source: N
    target: N
    calls: int
    label: str


@dataclass(frozen=True, slots=True)
class Box[N: Hashable]:
    """A node in its place: its left upper corner."""

    node: N
    x: int
    y: int

    @property
    def text_x(self) -> int:
        """Where its text begins."""
        return self.x + 10

    @property
    def text_y(self) -> int:
        """The base line of its text."""
        return self.y + 18


@dataclass(frozen=True, slots=True)
class Curve:
    """An edge in its place, in the order of the lines."""

    path: str
    thickness: float
    x: float
    y: float
    """The middle of its label."""
    width: float
    """Of its label, with some space."""

    @property
    def left(self) -> float:
        """The left side of its label."""
        return self.x - self.width / 2

    @property
    def top(self) -> float:
        """The upper side of its label."""
        return self.y - LABEL_HEIGHT / 2


@dataclass(frozen=True, slots=True)
class Drawing[N: Hashable]:
    """Boxes and curves, and the size of the drawing."""

    boxes: Sequence[Box[N]]
    curves: Sequence[Curve]
    width: int
    height: int


def short_name(name: str) -> str:
    """A name as it fits into a node."""
    return name if len(name) <= _NAME_MAX else f"{name[: _NAME_MAX - 1]}…"


def draw[N: Hashable](lines: Sequence[Line[N]]) -> Drawing[N]:
    """Place the nodes: each right of the nodes that call it, near to them. Cycles are allowed."""
    columns = _columns(lines)
    rows = _rows(columns, lines)
    places = {
        node: Box(
            node,
            _MARGIN + number * (WIDTH + _ACROSS),
            _MARGIN + round(rows[node] * (HEIGHT + _DOWN)),
        )
        for number, column in enumerate(columns)
        for node in column
    }
    height = max((box.y + HEIGHT for box in places.values()), default=0)
    width = _MARGIN * 2 + len(columns) * (WIDTH + _ACROSS) - (_ACROSS if columns else 0)
    curves = _curves(lines, places)
    return Drawing(list(places.values()), curves, width + 40, height + _MARGIN)


def _rows[N: Hashable](columns: Sequence[Sequence[N]], lines: Sequence[Line[N]]) -> dict[N, float]:
    """The row of each node: columns in the middle of each other, if all is seen at once.

    Else a node is beside the first node that it calls, so that its calls are near to it, and the
    first nodes are at the top, where a reader begins.
    """
    tallest = max((len(column) for column in columns), default=0)
    if tallest <= _ROWS_SEEN:
        return {
            node: (tallest - len(column)) / 2 + row
            for column in columns
            for row, node in enumerate(column)
        }
    below: dict[N, list[N]] = defaultdict(list)
    for line in lines:
        below[line.source].append(line.target)
    rows: dict[N, float] = {}
    for column in reversed(columns):
        free, placed = 0.0, {}
        for node in column:
            beside = min((rows[each] for each in below[node] if each in rows), default=free)
            placed[node] = max(free, beside)
            free = placed[node] + 1
        rows |= placed
    return rows


def _columns[N: Hashable](lines: Sequence[Line[N]]) -> list[list[N]]:
    below: dict[N, list[N]] = defaultdict(list)
    nodes: dict[N, None] = {}
    called: set[N] = set()
    for line in lines:
        nodes |= {line.source: None, line.target: None}
        if line.source != line.target:
            below[line.source].append(line.target)
            called.add(line.target)
    roots = [node for node in nodes if node not in called]
    column_of = _depths([*roots, *nodes], below)
    columns: list[list[N]] = [[] for _ in range(max(column_of.values(), default=-1) + 1)]
    for node in nodes:
        columns[column_of[node]].append(node)
    above: dict[N, list[N]] = defaultdict(list)
    for line in lines:
        above[line.target].append(line.source)
    rows = {node: row for row, node in enumerate(columns[0] if columns else [])}
    for column in columns[1:]:
        column.sort(key=lambda node: _mean([rows[each] for each in above[node] if each in rows]))
        rows |= {node: row for row, node in enumerate(column)}
    return columns


def _depths[N: Hashable](starts: Sequence[N], below: dict[N, list[N]]) -> dict[N, int]:
    """The longest way to each node from a start, without edges that close a cycle."""
    order: list[N] = []
    closing: set[tuple[N, N]] = set()
    state: dict[N, int] = {}  # 1: on the way to it, 2: done
    for start in starts:
        if start in state:
            continue
        state[start] = 1
        stack = [(start, iter(below[start]))]
        while stack:
            node, rest = stack[-1]
            for target in rest:
                if state.get(target) == 1:
                    closing.add((node, target))
                elif target not in state:
                    state[target] = 1
                    stack.append((target, iter(below[target])))
                    break
            else:
                state[node] = 2
                order.append(node)
                stack.pop()
    depths = dict.fromkeys(order, 0)
    for node in reversed(order):
        for target in below[node]:
            if (node, target) not in closing:
                depths[target] = max(depths[target], depths[node] + 1)
    return depths


_Point = tuple[float, float]
_Area = tuple[float, float, float, float]  # left, top, right, bottom


def _curves[N: Hashable](lines: Sequence[Line[N]], places: dict[N, Box[N]]) -> list[Curve]:
    """The edges. Each label is at the place of its curve where it covers least of what is there."""
    covered = _Areas()
    for box in places.values():
        covered.add((box.x, box.y, box.x + WIDTH, box.y + HEIGHT))
    curves = []
    leaving = Counter(line.source for line in lines)
    arriving = Counter(line.target for line in lines)
    for line in lines:
        points = _points(places[line.source], places[line.target])
        (ax, ay), *rest = points
        path = f"M{ax:.0f} {ay:.0f}C{' '.join(f'{x:.0f} {y:.0f}' for x, y in rest)}"
        thickness = round(1 + log2(max(line.calls, 1)) / 3, 1)
        width = round(len(line.label) * _LABEL_CHARACTER + 4, 1)
        # Where many edges leave or arrive together, a label belongs to the end of its own.
        spread = leaving[line.source] - arriving[line.target]
        near = _MIDDLE
        if abs(spread) >= _MANY:
            near = _NEAR_TARGET if spread > 0 else _NEAR_SOURCE
        x, y = _label_place(points, width, covered, near)
        covered.add(_label(x, y, width))
        curves.append(Curve(path, thickness, round(x, 1), round(y, 1), width))
    return curves


def _label_place(points: Sequence[_Point], width: float, covered: "_Areas", near: float) -> _Point:
    """The nearest place of a label on its curve that covers nothing, or that covers least."""
    tried: list[tuple[float, _Point]] = []
    for at in sorted(_LABEL_PLACES, key=lambda place: abs(place - near)):
        place = _on_curve(points, at)
        tried.append((covered.below(_label(*place, width)), place))
        if not tried[-1][0]:
            break
    return min(tried, key=lambda one: one[0])[1]


def _label(x: float, y: float, width: float) -> _Area:
    return x - width / 2, y - LABEL_HEIGHT / 2, x + width / 2, y + LABEL_HEIGHT / 2


def _points[N: Hashable](source: Box[N], target: Box[N]) -> list[_Point]:
    """The four points of an edge's Bézier curve."""
    x1, y1 = source.x + WIDTH, source.y + HEIGHT / 2
    x2, y2 = target.x, target.y + HEIGHT / 2
    if x2 > x1:
        bend = (x2 - x1) / 2
        return [(x1, y1), (x1 + bend, y1), (x2 - bend, y2), (x2, y2)]
    # Back, or to itself: around the right side of both.
    bend, x2 = 46, target.x + WIDTH
    y1, y2 = y1 - 4, y2 + 4 if y2 == y1 else y2
    return [(x1, y1), (x1 + bend, y1), (x2 + bend, y2), (x2, y2)]


def _on_curve(points: Sequence[_Point], at: float) -> _Point:
    """The point of a Bézier curve at 0 (its start) to 1 (its end)."""
    rest = 1 - at
    a, b, c, d = rest**3, 3 * rest**2 * at, 3 * rest * at**2, at**3
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = points
    return a * ax + b * bx + c * cx + d * dx, a * ay + b * by + c * cy + d * dy


class _Areas:
    """Areas by the horizontal bands of the drawing that they are in.

    So a label is compared with those near to it. With all of a graph of 320 edges, this took a
    third of the page's time.
    """

    def __init__(self) -> None:
        self._in_band: dict[int, list[_Area]] = defaultdict(list)

    def add(self, area: _Area) -> None:
        for band in _bands(area):
            self._in_band[band].append(area)

    def below(self, area: _Area) -> float:
        """How much of an area is below these, in square pixels."""
        left, top, right, bottom = area
        covered = 0.0
        for band in _bands(area):
            upper, lower = max(top, band * _BAND), min(bottom, (band + 1) * _BAND)
            for one_left, one_top, one_right, one_bottom in self._in_band[band]:
                if one_top < lower and one_bottom > upper and one_left < right and one_right > left:
                    wide = min(right, one_right) - max(left, one_left)
                    covered += wide * (min(lower, one_bottom) - max(upper, one_top))
        return covered


def _bands(area: _Area) -> range:
    return range(int(area[1] // _BAND), int(area[3] // _BAND) + 1)


def _mean(values: Sequence[int]) -> float:
    return sum(values) / len(values) if values else 0.0
