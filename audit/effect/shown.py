"""Prepares comparisons for pages: a row for each measure, and charts. Pure.

A measure is called improved or worse, lower or higher, only if a test is significant.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from audit.effect.comparison import ALPHA, Calls, Compared, Counted, Verdict, Which, Windows
from audit.queries.alerts import Fired
from audit.show import figures
from audit.show.charts import (
    MARKED,
    Chart,
    Mark,
    Series,
    Slot,
    Unit,
    alert_marks,
    time_slots,
    value_text,
)

Tone = Literal["good", "bad", ""]

_NAMES: Final = {
    "error_rate": "Failed",
    "violation_rate": "Schema violations",
    "p95_ms": "p95 duration",
}
_LINES: Final[tuple[tuple[str, str, Unit, Callable[[Calls], float | None], str], ...]] = (
    ("failed", "Failed", "share", lambda calls: _rate(calls.failed, calls), "errors"),
    (
        "violating",
        "Schema violations",
        "share",
        lambda calls: _rate(calls.violating, calls),
        "violations",
    ),
    ("p95", "p95 duration", "duration", lambda calls: calls.p95_ms, "latency"),
)
"""The key of a chart, its title, unit and measure, and the alerts that are marked on it."""
_MINUS: Final = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True)
class Words:
    """How a page says that a measure differs."""

    lower: str
    higher: str
    sides: str
    tones: tuple[Tone, Tone] = ("", "")
    """Of a lower and of a higher measure."""


OF_VERSIONS: Final = Words("Improved", "Worse", "before or after", ("good", "bad"))
OF_QUERIES: Final = Words("Lower in B", "Higher in B", "in A or B")


@dataclass(frozen=True, slots=True)
class Row:
    """One measure as texts: before, after, difference, verdict and the test behind it."""

    name: str
    before: str
    after: str
    difference: str
    verdict: str
    tone: Tone
    by: str


def measure_rows(measures: Iterable[Compared], words: Words = OF_VERSIONS) -> list[Row]:
    """A row for each measure."""
    return [_row(one, words) for one in measures]


def charts(
    counted: Counted,
    which: Which,
    names: tuple[str, str],
    fired: Sequence[Fired] = (),
    queries: tuple[str, str] = ("", ""),
) -> list[Chart]:
    """A chart of each measure over both windows; `names` are those of the two versions, `queries`
    those of their calls at any time. Alerts are marked.

    With `which` "named", both versions are drawn over both windows: while executors change over,
    both are called.
    """
    slots = [*time_slots(counted.windows.before), *time_slots(counted.windows.after)]
    return [
        replace(
            _chart(counted, which, names, queries, slots, key, title, unit, measure),
            marks=_marks(counted.windows, fired, MARKED[marked]),
        )
        for key, title, unit, measure, marked in _LINES
    ]


def _marks(of: Windows, fired: Sequence[Fired], watched: Collection[str]) -> list[Mark]:
    marks: list[Mark] = []
    for window, offset in ((of.before, 0), (of.after, of.parts_before)):
        within = [one for one in fired if window.start <= one.at < window.end]
        marks += [
            replace(mark, slot=mark.slot + offset) for mark in alert_marks(window, within, watched)
        ]
    return marks


def _chart(
    counted: Counted,
    which: Which,
    names: tuple[str, str],
    queries: tuple[str, str],
    slots: list[Slot],
    key: str,
    title: str,
    unit: Unit,
    measure: Callable[[Calls], float | None],
) -> Chart:
    middle = counted.windows.parts_before
    parts = range(len(slots))
    if which == "all":
        values = [measure(counted.of_part(part)) for part in parts]
        drawn = [
            [value if part < middle else None for part, value in enumerate(values)],
            [value if part >= middle else None for part, value in enumerate(values)],
        ]
    else:
        drawn = [
            [measure(counted.of_part(part, side)) for part in parts] for side in ("before", "after")
        ]
    series = [
        Series(name, tone, values, query)
        for name, tone, values, query in zip(names, ("dim", "accent"), drawn, queries, strict=True)
    ]
    per = f"per {counted.windows.before.step_name}"
    return Chart(
        id=f"effect-{key}",
        title=title,
        kind="lines",
        unit=unit,
        slots=slots,
        series=series,
        note=per,
    )


def _rate(hits: int, calls: Calls) -> float | None:
    return hits / calls.calls if calls.calls else None


def _row(one: Compared, words: Words) -> Row:
    unit: Unit = "duration" if one.name == "p95_ms" else "share"
    before, after = value_text(one.before, unit), value_text(one.after, unit)
    verdict, tone = _verdict(one, words)
    return Row(
        name=_NAMES[one.name],
        before=before,
        after=after,
        difference=_difference(one),
        verdict=verdict,
        tone=tone,
        by=_by(one),
    )


def _verdict(one: Compared, words: Words) -> tuple[str, Tone]:
    match one.verdict:
        case Verdict.NOT_ENOUGH:
            return f"Not enough data: fewer than {one.needs} calls {words.sides}", ""
        case Verdict.SAME:
            return "No significant difference", ""
        case Verdict.LOWER:
            return words.lower, words.tones[0]
        case Verdict.HIGHER:
            return words.higher, words.tones[1]


def _difference(one: Compared) -> str:
    if one.before is None or one.after is None:
        return "—"
    change = one.after - one.before
    sign = _MINUS if change < 0 else "+" if change > 0 else "±"
    if one.name == "p95_ms":
        return f"{sign}{figures.duration(round(abs(change) * 1000))}"
    return f"{sign}{abs(change) * 100:.2f}{figures.NBSP}pt"


def _by(one: Compared) -> str:
    if one.test is not None:
        name = "z-test" if one.test.by == "z" else "Fisher's exact test"
        p = "p < 0.001" if one.test.p < 0.001 else f"p = {one.test.p:.3f}"
        return f"{name}, {p}"
    if one.interval is not None:
        ends = dict.fromkeys((one.interval.low, one.interval.high))
        confidence = f"{(1 - ALPHA) * 100:.0f}{figures.NBSP}%"
        return f"bootstrap at {confidence}: {' to '.join(map(_signed_ms, ends))}"
    return ""


def _signed_ms(milliseconds: float) -> str:
    sign = _MINUS if milliseconds < 0 else "+" if milliseconds > 0 else ""
    return f"{sign}{figures.duration(round(abs(milliseconds) * 1000))}"
