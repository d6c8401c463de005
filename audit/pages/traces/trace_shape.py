"""Where a trace's time went: the critical path, the gaps between calls, repeats.

Pure. It works on the rows of `audit.pages.traces.timeline` and has the same input rules: clocks
may differ, and children may outlast their parents.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from audit.pages.traces.timeline import Node, Span, Window

_NEVER = float("inf")


def critical_path(nodes: Sequence[Node]) -> set[int]:
    """Return the calls without which the trace would have ended sooner, wrappers included.

    It goes backwards from the end. On each level it takes the call that ended last, then the last
    of those that had ended when that one began, and so on. It does the same inside each of them.
    `nodes` must be in row order. Tracing tools draw the same path (Jaeger, Uber's CRISP).
    """
    below: dict[int, list[int]] = {}
    above: list[int] = []
    ends: list[float] = []
    for index, (span, depth, *_) in enumerate(nodes):
        del above[depth:]
        below.setdefault(above[-1] if above else -1, []).append(index)
        above.append(index)
        ends.append(_NEVER if span.end_us is None else max(span.start_us, span.end_us))
    path: set[int] = set()
    waiting: list[tuple[int, float]] = [(-1, _NEVER)] if nodes else []
    while waiting:
        parent, until = waiting.pop()
        cursor = _NEVER  # a child that outlasts its parent still counts as the last one
        for index in sorted(below[parent], key=ends.__getitem__, reverse=True):
            span, end = nodes[index].span, ends[index]
            if span.start_us <= until and end <= cursor:
                path.add(span.id)
                cursor = span.start_us
                if index in below:
                    waiting.append((index, min(end, until)))
    return path


def gaps(nodes: Iterable[Node], window: Window) -> list[tuple[int, int]]:
    """Return the intervals in which no innermost call ran, in microseconds.

    This time is not spent in tools: the model thinks, or somebody waits.
    """
    running = sorted((node.span for node in nodes if not node.child_count), key=_start)
    intervals: list[tuple[int, int]] = []
    reached = window.start_us
    for span in running:
        if span.start_us > reached:
            intervals.append((reached, min(span.start_us, window.end_us)))
        reached = max(reached, window.end_us if span.end_us is None else span.end_us, span.start_us)
    if running and reached < window.end_us:
        intervals.append((reached, window.end_us))
    return intervals


def _start(span: Span) -> int:
    return span.start_us


def sizes(nodes: Sequence[Node]) -> list[int]:
    """Return the number of rows inside each row's call, at any depth."""
    inside = [0] * len(nodes)
    for index in range(len(nodes) - 1, -1, -1):
        depth, after = nodes[index].depth, index + 1
        while after < len(nodes) and nodes[after].depth > depth:
            inside[index] += 1 + inside[after]
            after += 1 + inside[after]
    return inside


def repeats(contents: Sequence[Hashable]) -> list[tuple[int, int] | None]:
    """Return each call's number among calls with the same content, and how many there are.

    `contents` must be in order of start. None for a call whose content is unique.
    """
    totals = Counter(contents)
    seen: Counter[Hashable] = Counter()
    marks: list[tuple[int, int] | None] = []
    for content in contents:
        total = totals[content]
        if total == 1:  # most calls of a long trace
            marks.append(None)
            continue
        seen[content] += 1
        marks.append((seen[content], total))
    return marks
