"""A chart as a value, for `static/js/charts.js` to draw and for the table behind it.

Pure. `{% include "components/_chart.html" %}` shows a `Chart` on a page. Each mark links to the
calls behind it: the query of its slot (a period of time) together with that of its series.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from audit.queries.alerts import Fired
from audit.queries.time_range import TimeRange
from audit.show import figures
from config.instants import iso_exact, local, offset, short_day

Kind = Literal["bars", "lines", "heat"]
"""Bars are stacked; a heat map has a row for each series, the first at the bottom."""
Unit = Literal["count", "share", "duration", "money"]
"""Numbers as they are, shares from 0 to 1, durations in milliseconds, amounts of a currency."""

_ARTICLES = {"minute": "a ", "hour": "an ", "day": "a ", "week": "a "}
_NO_BREAK_DASH = "\N{WORD JOINER}–\N{WORD JOINER}"


@dataclass(frozen=True, slots=True)
class Slot:
    """A place on the horizontal axis: its short and its full name, and the query of its calls."""

    label: str
    name: str
    query: str
    is_partial: bool = False
    """Whether it is only part of a step, at an end of the range. Drawn dimmed: it says less."""


@dataclass(frozen=True, slots=True)
class Series:
    """One value for each slot, or None. `tone` is a colour in `css/charts.css`."""

    name: str
    tone: str
    values: Sequence[float | None]
    query: str = ""
    """Narrows the calls of a slot down to those behind a mark."""


@dataclass(frozen=True, slots=True)
class Mark:
    """That an alert fired, at a slot."""

    slot: int
    title: str
    tone: str
    alert_id: UUID


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart; `id` is unique on its page. Bars are stacked, in the order of the series."""

    id: str
    title: str
    kind: Kind
    unit: Unit
    slots: Sequence[Slot]
    series: Sequence[Series]
    note: str = ""
    across: str = "Time"
    """What the horizontal axis shows."""
    marks: Sequence[Mark] = ()

    @property
    def island(self) -> dict[str, Any]:
        """The data that the script draws, for `json_script`."""
        return {
            "kind": self.kind,
            "unit": self.unit,
            "slots": [[slot.label, slot.name, slot.query] for slot in self.slots],
            "partial": [n for n, slot in enumerate(self.slots) if slot.is_partial],
            "marks": [[one.slot, one.title, one.tone] for one in self.marks],
            "series": [
                {
                    "name": one.name,
                    "tone": one.tone,
                    "query": one.query,
                    "values": one.values,
                    "texts": [self.text(value) for value in one.values],
                }
                for one in self.series
            ],
        }

    @property
    def rows(self) -> list[tuple[Slot, list[tuple[str, str]]]]:
        """For each slot and each series: the value as text, and the query of its calls or ''."""
        return [
            (
                slot,
                [
                    (
                        self.text(one.values[n]),
                        f"{slot.query} {one.query}".strip() if one.values[n] else "",
                    )
                    for one in self.series
                ],
            )
            for n, slot in enumerate(self.slots)
        ]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(value for one in self.series for value in one.values)

    def text(self, value: float | None) -> str:
        """A value as text with its unit."""
        return value_text(value, self.unit)


def value_text(value: float | None, unit: Unit) -> str:
    """A value with its unit: `1,204`, `1.42 %`, `301 ms`; — for none."""
    if value is None:
        return "—"
    match unit:
        case "share":
            return figures.share(value)
        case "duration":
            return figures.duration(round(value * 1000))
        case "money":
            return figures.money(Decimal(str(value)), "").strip()
        case _:
            return figures.count(round(value))


def time_slots(of: TimeRange) -> list[Slot]:
    """The parts of a range as slots, named in the viewer's local time."""
    days = of.step >= timedelta(days=1)
    slots = []
    for (start, end), is_whole in zip(of.parts, of.is_whole, strict=True):
        there = local(start, of.zone)
        is_midnight = there.hour == there.minute == 0
        label = short_day(there) if days or is_midnight else f"{there:%H:%M}"
        name = _interval_name(start, end, of)
        if not is_whole:
            name += f" (part of {_ARTICLES.get(of.step_name, '')}{of.step_name})"
        slots.append(Slot(label, name, range_query(start, end), is_partial=not is_whole))
    return slots


MARKED = {
    "errors": {"failed", "failed_share"},
    "latency": {"p50", "p95", "p99"},
    "violations": {"violations", "violating_share", "first_violation"},
}
"""What alerts watch that are marked on a chart. All others are marked on that of calls."""


def alert_marks(of: TimeRange, fired: Iterable[Fired], watched: Collection[str]) -> list[Mark]:
    """Marks where rules fired that watch one of these measures or events."""
    starts = of.bounds[:-1]
    return [
        Mark(
            bisect_right(starts, one.at) - 1,
            one.title,
            "failed" if one.severity == "alert" else "violation",
            one.id,
        )
        for one in fired
        if one.watches in watched and one.at >= starts[0]
    ]


def range_query(start: datetime, end: datetime) -> str:
    """The terms of a query for the calls of a period of time."""
    return f"since:{iso_exact(start)} until:{iso_exact(end)}"


def sparkline(values: Sequence[float | None], width: int = 96, height: int = 22) -> str:
    """The `points` of an SVG polyline of this size; '' without a value."""
    known = [value or 0 for value in values]
    top = max(known, default=0)
    if top <= 0 or len(known) < 2:
        return ""
    across = (width - 2) / (len(known) - 1)
    return " ".join(
        f"{1 + n * across:.1f},{height - 1.5 - (height - 3) * value / top:.1f}"
        for n, value in enumerate(known)
    )


def _interval_name(start: datetime, end: datetime, of: TimeRange) -> str:
    """A period of time as text: `Sat 21 Nov 14:00–15:00 UTC+1`."""
    first, last = local(start, of.zone), local(end, of.zone)
    if first.date() == last.date() or last - first == timedelta(days=1):
        until = f"{last:%H:%M}"
    else:
        until = f"{last:%a} {short_day(last)} {last:%H:%M}"
    return f"{first:%a} {short_day(first)} {first:%H:%M}{_NO_BREAK_DASH}{until} {offset(first)}"
