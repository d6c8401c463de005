"""Tiles and charts of the overview. The tiles compare a range with the range before.

Pure. It turns figures into values for the template.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from audit.queries.alerts import Fired
from audit.queries.over_time import Figures, OverTime, ToolFigures
from audit.queries.published import Published
from audit.show import figures
from audit.show.charts import (
    MARKED,
    Chart,
    Series,
    alert_marks,
    range_query,
    time_slots,
    value_text,
    version_marks,
)

Goodness = Literal["better", "worse", "other"]
"""Whether a change is for the better, for the worse, or neither."""

TOOLS_SHOWN = 8
_MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True)
class Change:
    """How a figure differs from the range before."""

    text: str
    goodness: Goodness
    before: str
    """The value in the range before."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A headline figure, the query of the calls behind it, and its values over time."""

    name: str
    value: str
    query: str
    note: str
    note_query: str
    change: Change | None
    tone: str
    course: list[float | None]
    note_change: Change | None = None


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A row of the table of tools by failures."""

    name: str
    calls: int
    failed: int
    violating: int
    error_rate: float
    violation_rate: float
    course: list[int]
    total: Figures

    @property
    def p50_ms(self) -> float | None:
        """The median duration in milliseconds; computed only for rows that are shown."""
        return self.total.duration_ms(0.5)

    @property
    def p95_ms(self) -> float | None:
        """The 95th percentile of durations in milliseconds, likewise."""
        return self.total.duration_ms(0.95)


def tiles(range_figures: OverTime, *, is_comparable: bool) -> list[Tile]:
    """The headline figures, compared only if the range before is whole (`is_comparable`)."""
    now, parts = range_figures.total, range_figures.of.whole(range_figures.parts)
    before = range_figures.previous if is_comparable else Figures()
    within = range_query(range_figures.of.start, range_figures.of.end)
    p50, p95, p99 = (now.duration_ms(share) for share in (0.5, 0.95, 0.99))
    slow = f"{within} duration:>={round(p95 * 1000)}us" if p95 is not None else within
    return [
        Tile(
            name="Calls",
            value=figures.count(now.calls),
            query=within,
            note=f"{figures.count(now.open)} open",
            note_query=f"{within} state:open" if now.open else "",
            change=relative(now.calls, before.calls, "count"),
            tone="accent",
            course=[part.calls for part in parts],
            note_change=difference(now.open, before.open) if is_comparable else None,
        ),
        Tile(
            name="Failed",
            value=figures.share(now.error_rate),
            query=f"{within} state:failed",
            note=f"{figures.counted(now.failed, 'call')}",
            note_query="",
            change=points(now.error_rate, before.error_rate),
            tone="failed",
            course=[part.error_rate for part in parts],
        ),
        Tile(
            name="Schema violations",
            value=figures.share(now.violation_rate),
            query=f"{within} violation:*",
            note=f"{figures.counted(now.violating, 'call')}",
            note_query="",
            change=points(now.violation_rate, before.violation_rate),
            tone="violation",
            course=[part.violation_rate for part in parts],
        ),
        Tile(
            name="p50 · p95",
            value=f"{value_text(p50, 'duration')} · {value_text(p95, 'duration')}" if p50 else "—",
            query=slow,
            note=f"p99 {value_text(p99, 'duration')}" if p99 else "",
            note_query="",
            change=_both(slower(now, before, 0.5), slower(now, before, 0.95)),
            tone="accent",
            course=[part.duration_ms(0.95) for part in parts],
            note_change=slower(now, before, 0.99),
        ),
        tokens_tile(now, before, parts, within),
    ]


class UsesTokens(Protocol):
    """Figures that count tokens."""

    prompt_tokens: int
    completion_tokens: int

    @property
    def tokens(self) -> int: ...


def tokens_tile(
    now: UsesTokens, before: UsesTokens, parts: Sequence[UsesTokens], within: str
) -> Tile:
    """The tokens of a range, compared with the range before. `within` is the range's query."""
    return Tile(
        name="Tokens",
        value=figures.short_count(now.tokens),
        query=f"{within} tokens:>0",
        note=f"{figures.short_count(now.prompt_tokens)} ▸"
        f" {figures.short_count(now.completion_tokens)}",
        note_query="",
        change=relative(now.tokens, before.tokens, "count"),
        tone="accent",
        course=[part.tokens for part in parts],
    )


def charts(
    range_figures: OverTime, fired: Sequence[Fired] = (), published: Sequence[Published] = ()
) -> dict[str, Chart]:
    """The charts over time by name: calls, errors, latency, violations.

    Alerts and published versions are marked. The range before, if its parts are known, is a line.
    """
    of, parts = range_figures.of, range_figures.parts
    elsewhere = set().union(*MARKED.values())
    watched = MARKED | {"calls": {one.watches for one in fired} - elsewhere}
    versions = version_marks(of, published)
    marks = {name: alert_marks(of, fired, which) for name, which in watched.items()}
    slots, per = time_slots(of), f"per {of.step_name}"

    def before(figure: Callable[[Figures], float | None], name: str = "") -> list[Series]:
        return Series.earlier(of, [figure(part) for part in range_figures.before], name)

    of_calls = [
        Series("Failed", "failed", [part.failed for part in parts], "state:failed"),
        Series("Open", "open", [part.open for part in parts], "state:open"),
        Series("OK", "ok", [part.ok for part in parts], "state:ok"),
    ]
    if any(cancelled := [part.cancelled for part in parts]):
        of_calls.insert(2, Series("Cancelled", "dim", cancelled, "state:cancelled"))
    rates = [part.error_rate for part in parts]
    broken = [part.violating for part in parts]
    percentiles = [
        Series(name, tone, [part.duration_ms(share) for part in parts])
        for name, tone, share in (
            ("p50", "accent", 0.5),
            ("p95", "accent-2", 0.95),
            ("p99", "accent-3", 0.99),
        )
    ]
    return {
        "calls": Chart(
            id="calls",
            marks=[*marks["calls"], *versions],
            title="Calls by state",
            kind="bars",
            unit="count",
            slots=slots,
            series=[
                *of_calls,
                *before(lambda part: part.calls + part.open + part.cancelled),
            ],
            note=per,
        ),
        "errors": Chart(
            id="errors",
            marks=[*marks["errors"], *versions],
            title="Error rate",
            kind="lines",
            unit="share",
            slots=slots,
            series=[
                Series("Failed", "failed", rates, "state:failed"),
                *before(lambda part: part.error_rate),
            ],
            note=per,
        ),
        "latency": Chart(
            id="latency",
            marks=[*marks["latency"], *versions],
            title="Duration",
            kind="lines",
            unit="duration",
            slots=slots,
            series=[
                *percentiles,
                *before(lambda part: part.duration_ms(0.95), "p95"),
            ],
            note=per,
        ),
        "violations": Chart(
            id="violations",
            marks=[*marks["violations"], *versions],
            title="Calls with schema violations",
            kind="bars",
            unit="count",
            slots=slots,
            series=[
                Series("Calls", "violation", broken, "violation:*"),
                *before(lambda part: part.violating),
            ],
            note=per,
        ),
    }


def worst_first(range_figures: OverTime) -> list[ToolRow]:
    """All tools with calls, those with the most failed and violating calls first."""

    def badness(tool: ToolFigures) -> tuple[int, int, str]:
        return (-tool.total.failed - tool.total.violating, -tool.total.calls, tool.name)

    ran = [tool for tool in range_figures.tools.values() if tool.total.calls]
    return [
        ToolRow(
            name=tool.name,
            calls=tool.total.calls,
            failed=tool.total.failed,
            violating=tool.total.violating,
            error_rate=tool.total.error_rate or 0,
            violation_rate=tool.total.violation_rate or 0,
            course=tool.calls,
            total=tool.total,
        )
        for tool in sorted(ran, key=badness)
    ]


def last_part_with_failures(parts: Sequence[Figures]) -> int | None:
    """The index of the newest part with failed calls (the latest are there); None without any."""
    return next((n for n in reversed(range(len(parts))) if parts[n].failed), None)


def relative(
    now: float | None,
    before: float | None,
    unit: Literal["count", "duration"],
    *,
    more_is: Goodness = "other",
) -> Change | None:
    """The change of a figure in percent; None if there is nothing to compare."""
    if now is None or not before:
        return None
    change = now / before - 1
    goodness: Goodness = more_is
    if abs(change) < 0.005:
        goodness = "other"
    elif change < 0 and more_is == "worse":
        goodness = "better"
    size = abs(change) * 100
    text = f"{size:,.0f}" if size >= 9.95 else f"{size:.1f}"
    was = figures.short_count(round(before)) if unit == "count" else value_text(before, unit)
    return Change(f"{_sign(change)}{text}{figures.NBSP}%", goodness, was)


def slower(now: Figures, before: Figures, share: float) -> Change | None:
    """The change of a percentile of durations in percent. More is worse."""
    durations = now.duration_ms(share), before.duration_ms(share)
    return relative(*durations, "duration", more_is="worse")


def difference(now: int, before: int) -> Change | None:
    """The change of a number, of which more is worse; None if it is and was 0."""
    if not now and not before:
        return None
    more = now - before
    goodness: Goodness = "worse" if more > 0 else "better" if more < 0 else "other"
    text = f"{_sign(more)}{figures.short_count(abs(more))}" if more else "no change"
    return Change(text, goodness, figures.short_count(before))


def _both(first: Change | None, second: Change | None) -> Change | None:
    """Two changes as one, with the goodness of the second."""
    if first is None or second is None:
        return second
    return Change(
        f"{first.text} · {second.text}", second.goodness, f"{first.before} · {second.before}"
    )


def points(now: float | None, before: float | None) -> Change | None:
    """The change of a share in percentage points. More is worse."""
    if now is None or before is None:
        return None
    points = (now - before) * 100
    goodness: Goodness = "other" if abs(points) < 0.005 else "worse" if points > 0 else "better"
    return Change(
        f"{_sign(points)}{abs(points):.2f}{figures.NBSP}pt", goodness, figures.share(before)
    )


def _sign(change: float) -> str:
    return _MINUS if change < 0 else "+"
