"""The whole trace in small, above its rows: lines of all calls, and the parts it zooms to. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from audit.pages.traces.timeline import Span, Window, pack
from audit.queries.calls import Tone

LANES = 10
WIDTH = 1_000  # units of its view box
ZOOM_STEPS = 8  # parts of the minimap that can be zoomed into

_WORST_LAST: tuple[Tone, ...] = (
    *("ok", "approved", "cancelled", "awaiting", "waiting", "working", "open", "refused"),
    *("violation", "failed"),
)


@dataclass(frozen=True, slots=True)
class Outline:
    """All calls of one colour in the minimap, as one SVG path."""

    tone: str
    path: str


@dataclass(frozen=True, slots=True)
class Zoom:
    """A part of the minimap and the interval it zooms to, in microseconds from the start."""

    x: float
    width: float
    from_us: int
    to_us: int


def zooms(whole: Window) -> list[Zoom]:
    """Return equal parts of the minimap. Each zooms to itself and half of each neighbour."""
    step = whole.span_us / ZOOM_STEPS
    return [
        Zoom(
            x=100 / ZOOM_STEPS * n,
            width=100 / ZOOM_STEPS,
            from_us=max(0, int((n - 0.5) * step)),
            to_us=min(whole.span_us, int((n + 1.5) * step) + 1),
        )
        for n in range(ZOOM_STEPS)
    ]


def minimap(
    tones: Sequence[Tone], spans: Sequence[Span], whole: Window
) -> tuple[list[Outline], int]:
    """Draw the whole trace in small: one path of short lines per colour, the worst last."""
    lanes = pack(spans, whole, lane_count=LANES)  # calls are sorted by start
    pieces: dict[Tone, dict[str, None]] = {tone: {} for tone in _WORST_LAST}
    scale = WIDTH / whole.span_us
    for tone, span, lane in zip(tones, spans, lanes, strict=True):
        end = whole.end_us if span.end_us is None else span.end_us
        x = round((span.start_us - whole.start_us) * scale)
        width = max(3, round((end - span.start_us) * scale))
        # Equal pieces are drawn once, so that thousands of calls need only some kilobytes.
        pieces[tone][f"M{min(x, WIDTH - 3)} {lane}.5h{width}"] = None
    outlines = [Outline(tone, "".join(paths)) for tone, paths in pieces.items() if paths]
    return outlines, max(lanes, default=0) + 1
