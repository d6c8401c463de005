"""A chart as a value, for `static/js/charts.js` to draw and for the table behind it.

Pure. `{% include "components/_chart.html" %}` shows a `Chart` on a page. Each mark links to the
calls behind it: the query of its slot (a period of time) together with that of its series.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

from django.urls import reverse

from audit.queries.alerts import Fired
from audit.queries.published import Published
from audit.queries.time_range import TimeRange
from audit.show import figures
from config.instants import iso_exact, local, offset, short_day

Kind = Literal["bars", "lines", "heat"]
"""Bars are stacked; a heat map has a row for each series, the first at the bottom."""
Unit = Literal["count", "share", "duration", "money"]
"""Numbers as they are, shares from 0 to 1, durations in milliseconds, amounts of a currency."""
Role = Literal["", "before", "threshold"]
"""What a series is: figures of the range; those of the range before, as a line; or a threshold."""

_NAMED = 3
"""Versions that a mark names."""
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
    """Narrows the calls of a slot down to those behind a mark; with the chart's own terms."""
    label: str | None = None
    """Of a row of a heat map: what the axis says there; None: its name."""
    role: Role = ""

    @classmethod
    def earlier(
        cls, of: TimeRange, values: Sequence[float | None], name: str = ""
    ) -> "list[Series]":
        """A line of the range before; none if nothing is known of it. `name` is what it shows."""
        named = ", ".join(filter(None, [name, f"{of.length_name} before"]))
        return [cls(named, "dim", values, role="before")] if any(values) else []


@dataclass(frozen=True, slots=True)
class Mark:
    """An event at a slot: an alert fired (a triangle), or a version was published (a diamond)."""

    slot: int
    title: str
    tone: str
    address: str
    """Of its page."""
    symbol: Literal["triangle", "diamond"] = "triangle"


@dataclass(frozen=True)
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
    query: str = ""
    """Narrows the calls of a slot down to all that the chart is about."""
    leads_to: Literal["calls", "traces"] = "calls"
    """The list that marks lead to. For traces, queries of chart and series are parameters of its
    address."""
    threshold_text: str = ""
    """A threshold as the reader typed it."""
    problem: str = ""
    """What is wrong with it."""

    @property
    def island(self) -> dict[str, Any]:
        """The data that the script draws, for `json_script`."""
        return {
            "kind": self.kind,
            "unit": self.unit,
            "across": self.across,
            "is_time": self.across == "Time",
            "query": self.query,
            "slots": [[slot.label, slot.name, slot.query] for slot in self.slots],
            "partial": [n for n, slot in enumerate(self.slots) if slot.is_partial],
            "marks": [[one.slot, one.title, one.tone, one.symbol] for one in self.marks],
            "series": [
                {
                    "name": one.name,
                    "tone": one.tone,
                    "query": one.query,
                    "values": one.values,
                    "texts": texts,
                    "role": one.role,
                    "label": one.label,
                }
                for one, texts in zip(self.series, self.texts, strict=True)
            ],
        }

    @property
    def columns(self) -> list[Series]:
        """The series that the table shows: all but a threshold."""
        return [one for one in self.series if one.role != "threshold"]

    @cached_property
    def texts(self) -> list[list[str]]:
        """The values of each series as text."""
        return [[self.text(value) for value in one.values] for one in self.series]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(value for one in self.series if not one.role for value in one.values)

    @property
    def top(self) -> str:
        """The greatest value, as text."""
        return self.text(max(value or 0 for one in self.series for value in one.values))

    @property
    def takes_threshold(self) -> bool:
        """Whether a threshold can be drawn: at heights of its values."""
        return self.kind != "heat"

    @property
    def threshold_name(self) -> str:
        """The member of the page's address that has the threshold."""
        return f"line-{self.id}"

    @property
    def threshold_example(self) -> str:
        """What a reader may type as a threshold."""
        return {"share": "5 %", "duration": "2 s", "money": "1.50"}.get(self.unit, "100")

    def with_threshold(self, text: str) -> "Chart":
        """The chart with a line at the value that a reader typed; if there is none, it says so."""
        text = text.strip()[:40]
        if not text or not self.takes_threshold:
            return self
        try:
            level = read_level(text, self.unit)
        except ValueError as error:
            return replace(self, threshold_text=text, problem=str(error))
        name = f"Threshold {self.text(level)}"
        line = Series(name, "ink", [level] * len(self.slots), role="threshold")
        return replace(self, series=[*self.series, line], threshold_text=text)

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


_LEVEL = re.compile(r"(\d{1,12}(?:[.,]\d{1,6})?)\s*(%|us|µs|ms|s|min|h)?", re.ASCII)
_MILLISECONDS = {"us": 0.001, "µs": 0.001, "ms": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6, None: 1.0}


def read_level(text: str, unit: Unit) -> float:
    """A value as a reader types it: `5 %`, `2 s`, `100`. Raises ValueError that says how."""
    read = _LEVEL.fullmatch(text)
    number, sign = (float(read[1].replace(",", ".")), read[2]) if read else (0.0, None)
    match unit:
        case "share" if read and sign in {None, "%"} and number <= 100:
            return number / 100
        case "duration" if read and sign != "%":
            return number * _MILLISECONDS[sign]
        case "count" | "money" if read and sign is None:
            return number
    how = {"share": "a percentage such as 5 %", "duration": "a duration such as 2 s or 500 ms"}
    raise ValueError(f"The threshold must be {how.get(unit, 'a number')}.")


def with_thresholds(charts: Mapping[str, Chart], params: Mapping[str, str]) -> dict[str, Chart]:
    """The charts of a page with the thresholds that its address names."""
    return {
        name: chart.with_threshold(params.get(chart.threshold_name, ""))
        for name, chart in charts.items()
    }


def day_slots(of: TimeRange, bounds: Sequence[datetime]) -> list[Slot]:
    """UTC days of a range between these ends as slots."""
    return [
        Slot(
            short_day(start.astimezone(UTC)),
            _interval_name(start, end, replace(of, zone=UTC)),
            range_query(start, end),
            is_partial=end - start < timedelta(days=1),
        )
        for start, end in pairwise(bounds)
    ]


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
            reverse("alert_detail", args=[one.id]),
        )
        for one in fired
        if one.watches in watched and one.at >= starts[0]
    ]


def version_marks(of: TimeRange, published: Iterable[Published]) -> list[Mark]:
    """Marks where versions were published; of several in a slot one, which names some of them."""
    starts = of.bounds[:-1]
    by_slot: dict[int, list[Published]] = {}
    for one in published:
        by_slot.setdefault(bisect_right(starts, one.at) - 1, []).append(one)
    marks = []
    for slot, versions in by_slot.items():
        names = [f"{one.tool_name} version {one.number}" for one in versions[:_NAMED]]
        more = [f"{len(versions) - _NAMED} more"] if len(versions) > _NAMED else []
        address = reverse("tool_effect", args=[versions[0].tool_id])
        if len(versions) > 1:
            address = reverse("tool_list")
        else:
            address += f"?version={versions[0].number}"
        title = f"Published: {', '.join([*names, *more])}"
        marks.append(Mark(slot, title, "accent", address, "diamond"))
    return marks


def range_query(start: datetime, end: datetime) -> str:
    """The terms of a query for the calls of a period of time."""
    return f"since:{iso_exact(start)} until:{iso_exact(end)}"


def sparkline(values: Sequence[float | None], width: int = 96, height: int = 22) -> str:
    """The `points` of an SVG polyline of this size; '' without a value.

    Points within a level stretch are left out.
    """
    known = [value or 0 for value in values]
    top = max(known, default=0)
    if top <= 0 or len(known) < 2:
        return ""
    across, last = (width - 2) / (len(known) - 1), len(known) - 1
    return " ".join(
        f"{1 + n * across:.1f},{height - 1.5 - (height - 3) * value / top:.1f}"
        for n, value in enumerate(known)
        if n in (0, last) or not known[n - 1] == value == known[n + 1]
    )


def _interval_name(start: datetime, end: datetime, of: TimeRange) -> str:
    """A period of time as text: `Sat 21 Nov 14:00–15:00 UTC+1`."""
    first, last = local(start, of.zone), local(end, of.zone)
    if first.date() == last.date() or last - first == timedelta(days=1):
        until = f"{last:%H:%M}"
    else:
        until = f"{last:%a} {short_day(last)} {last:%H:%M}"
    return f"{first:%a} {short_day(first)} {first:%H:%M}{_NO_BREAK_DASH}{until} {offset(first)}"
