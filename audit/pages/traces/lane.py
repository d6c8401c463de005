"""A call's lane in the timeline as SVG: its bar, its marks, and its reason beside the bar.

Pure. Shares are written as attributes, never as styles. Rendering a template for each lane would
take longer than the rest of the page.
"""

from dataclasses import dataclass
from html import escape
from typing import Literal

from django.utils.safestring import SafeString

from audit.pages.traces.timeline import Bar
from audit.show.text import visible

_TEXT_SHARE = 1.45  # width of a character as a share of the narrowest lane


@dataclass(frozen=True, slots=True)
class Label:
    """The reason text in a lane. It starts at `x`, ends at `x`, or is inside the bar."""

    text: str
    x: float
    place: Literal["right", "left", "inside"]


def label(drawn: Bar, reason: str) -> Label:
    """Place the reason right of the bar, else left of it, else where most room is."""
    needed = len(reason) * _TEXT_SHARE
    right, left = 100 - drawn.end, drawn.x
    if right >= needed or (left < needed and right >= max(left, drawn.width)):
        return Label(reason, drawn.end, "right")  # the lane's edge cuts what does not fit
    if left >= needed:
        return Label(reason, drawn.x, "left")
    if drawn.width >= left:
        return Label(reason, drawn.x, "inside")
    # Cut the text here, between its parts if possible: the lane's edge would cut its beginning.
    kept = reason[: int(left / _TEXT_SHARE) - 1]
    whole_parts = kept.rpartition(" · ")[0]
    return Label(whole_parts or f"{kept}…", drawn.x, "left")


def svg(
    tone: str, drawn: Bar, written: Label, *, is_critical: bool, limit: tuple[float, str] | None
) -> SafeString:
    """Return the lane as SVG. `limit` is the call's timeout: its place as a share, and its text."""
    if drawn.is_outside:
        return SafeString("")
    tone = escape(tone)
    place = f'x="{drawn.x:.2f}%" width="{drawn.width:.2f}%"'
    endless = " is-endless" if drawn.is_open else ""
    parts = [f'<rect class="bar is-{tone}{endless}" {place} y="7" height="12" rx="3"/>']
    if is_critical:
        parts.append(f'<rect class="critical" {place} y="21" height="2"/>')
    if limit is not None:
        x, label = limit
        parts.append(
            f'<line class="limit" x1="{x:.2f}%" x2="{x:.2f}%" y1="3" y2="23">'
            f"<title>Timeout: {escape(label)}</title></line>"
        )
    if written.text:
        away = -6 if written.place == "left" else 6
        parts.append(
            f'<text class="is-{tone} is-{written.place}" x="{written.x:.2f}%" dx="{away}" y="17">'
            f"{visible(written.text)}</text>"
        )
    return SafeString("".join(parts))
