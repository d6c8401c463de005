"""Tiles, charts and tables of the page of durations and tokens. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

from audit.events.end_meta import Source
from audit.pages.latency.bands import DOUBLING, bands
from audit.queries.alerts import Fired
from audit.queries.call_query import quoted
from audit.queries.latency import SHARES, Latency, Spent, ToolFilter
from audit.queries.newest import Limit, ToolSpent
from audit.queries.published import Published
from audit.queries.time_range import TimeRange
from audit.show import figures
from audit.show.charts import (
    MARKED,
    Chart,
    Series,
    Slot,
    alert_marks,
    range_query,
    time_slots,
    value_text,
    version_marks,
)
from audit.show.tiles import Tile, relative, tokens_tile

ORDERS = ("tool", "p50", "p90", "p95", "p99", "calls", "tokens", "cache")
"""Columns that the table can be sorted by."""
_SPAN_WIDTH, _SPAN_EDGE = 120, 3


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A tool's version: its percentiles in milliseconds, in the order of `SHARES`."""

    tool: str
    version: str
    spent: Spent
    query: str
    percentiles: dict[str, float | None]
    slowest: str
    """The query for the slowest 5 %."""
    span: "Span | None"

    @property
    def of_tool(self) -> dict[str, str]:
        """URL parameters for the page of only this tool."""
        return {"tool": self.tool}

    @property
    def of_version(self) -> dict[str, str]:
        """URL parameters for the page of only this version."""
        return {"tool": self.tool, "version": self.version}


def order_keys() -> dict[str, Callable[[VersionRow], float | str | None]]:
    """Return what each column of `ORDERS` sorts by."""
    return {
        "tool": lambda row: row.tool,
        "calls": lambda row: row.spent.calls,
        "tokens": lambda row: row.spent.tokens,
        "cache": lambda row: row.spent.cache_share,
        **{name: _percentile(name) for name in SHARES},
    }


def _percentile(name: str) -> Callable[[VersionRow], float | None]:
    return lambda row: row.percentiles[name]


@dataclass(frozen=True, slots=True)
class Span:
    """A version's percentiles on a scale common to all versions, as SVG coordinates."""

    p50: float
    p95: float
    p99: float

    @property
    def length(self) -> float:
        """Distance from the median to the 99th percentile."""
        return round(self.p99 - self.p50, 1)


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """Failed calls of a tool with one type of error."""

    tool: str
    error_type: str
    calls: int
    query: str


def terms(wanted: ToolFilter) -> str:
    """Return the query terms for the calls of a tool and version; '' without a filter."""
    parts = [f"tool:{quoted(wanted.tool)}"] if wanted.tool is not None else []
    if wanted.version:
        parts.append(f"version:{quoted(wanted.version)}")
    return " ".join(parts)


def within_query(of: TimeRange, wanted: ToolFilter) -> str:
    """Return the query for the calls of a tool and version in a range."""
    return f"{range_query(of.start, of.end)} {terms(wanted)}".strip()


def tiles(range_figures: Latency, *, is_comparable: bool) -> list[Tile]:
    """Return the headline figures. `is_comparable`: the whole range before has figures."""
    now, before = range_figures.total, range_figures.previous if is_comparable else Spent()
    parts = range_figures.of.whole(range_figures.parts)
    within = within_query(range_figures.of, range_figures.wanted)
    duration_tiles = []
    for name, share in SHARES.items():
        value = now.duration_ms(share)
        slower = f"{within} duration:>={round(value * 1000)}us" if value is not None else within
        duration_tiles.append(
            Tile(
                name=name,
                value=value_text(value, "duration"),
                query=slower,
                note="median" if share == 0.5 else f"{share:.0%} are faster".replace("%", " %"),
                note_query="",
                change=relative(value, before.duration_ms(share), "duration", more_is="worse"),
                tone="accent",
                course=[part.duration_ms(share) for part in parts],
            )
        )
    cache = Tile(
        name="Cache hit rate",
        value=figures.share(now.cache_share),
        query=f"{within} cache:hit",
        note=figures.counted(now.cache_hits, "call"),
        note_query="",
        change=None,
        tone="ok",
        course=[part.cache_share for part in parts],
    )
    return [*duration_tiles, tokens_tile(now, before, parts, within), cache]


def charts(
    range_figures: Latency, fired: Sequence[Fired] = (), published: Sequence[Published] = ()
) -> dict[str, Chart]:
    """Return the charts by name: over_time (a heat map), histogram, tokens.

    Alerts and published versions are marked. The range before, if it is known, is a line; a heat
    map has no place for one.
    """
    of = range_figures.of
    slots, per = time_slots(of), f"per {of.step_name}"
    versions = version_marks(of, published)
    of_tool, latency = terms(range_figures.wanted), range_figures.total.latency
    heat = [
        Series(
            band.name,
            "accent",
            [band.count(part.latency) for part in range_figures.parts],
            f"{of_tool} {band.term}".strip(),
            label=band.power_of_ten,
        )
        for band in bands(latency, DOUBLING)
    ]
    narrow = bands(latency)
    lengths = [
        Slot(
            band.label,
            band.name,
            f"{within_query(range_figures.of, range_figures.wanted)} {band.term}",
        )
        for band in narrow
    ]
    counted = [
        Series("Calls", "accent", [band.count(latency) for band in narrow]),
        *Series.earlier(of, [band.count(range_figures.previous.latency) for band in narrow]),
    ]
    tokens = [
        Series(
            name,
            tone,
            [getattr(part, member) for part in range_figures.parts],
            f"{of_tool} tokens:>0",
        )
        for name, tone, member in (
            ("In", "accent", "prompt_tokens"),
            ("Out", "accent-2", "completion_tokens"),
        )
    ]
    marks = " · ".join(
        f"{name} {value_text(range_figures.total.duration_ms(share), 'duration')}"
        for name, share in SHARES.items()
    )
    return {
        "over_time": Chart(
            id="over-time",
            query=of_tool,
            marks=[*alert_marks(range_figures.of, fired, MARKED["latency"]), *versions],
            title="Duration over time",
            kind="heat",
            unit="count",
            slots=slots,
            series=heat,
            note=f"calls {per}",
        ),
        "histogram": Chart(
            id="histogram",
            title="Duration",
            kind="bars",
            unit="count",
            slots=lengths,
            series=counted,
            note=marks,
            across="Duration",
        ),
        "tokens": Chart(
            id="tokens",
            query=of_tool,
            marks=[*alert_marks(range_figures.of, fired, {"tokens"}), *versions],
            title="Tokens",
            kind="bars",
            unit="count",
            slots=slots,
            series=[*tokens, *Series.earlier(of, [part.tokens for part in range_figures.before])],
            note=per,
        ),
    }


def version_rows(range_figures: Latency) -> list[VersionRow]:
    """Return every tool and version, most calls first."""

    def most(row: VersionRow) -> tuple[int, str, str]:
        return (-row.spent.calls, row.tool, row.version)

    within = range_query(range_figures.of.start, range_figures.of.end)
    measured = {
        key: {name: spent.duration_ms(share) for name, share in SHARES.items()}
        for key, spent in range_figures.versions.items()
    }
    known = [ms for each in measured.values() for ms in each.values() if ms is not None]
    low, high = min(known, default=1.0), max(known, default=1.0)
    rows = []
    for (tool, version), spent in range_figures.versions.items():
        percentiles = measured[tool, version]
        query = f"{within} {terms(ToolFilter(tool, version))}"
        p95 = percentiles["p95"]
        slowest = f"{query} duration:>={round(p95 * 1000)}us" if p95 is not None else query
        span = _span(percentiles, low, high)
        rows.append(
            VersionRow(
                tool=tool,
                version=version,
                spent=spent,
                query=query,
                percentiles=percentiles,
                slowest=slowest,
                span=span,
            )
        )
    return sorted(rows, key=most)


def error_rows(range_figures: Latency) -> list[ErrorRow]:
    """Return failed calls by tool and error type, the most frequent first."""
    within = range_query(range_figures.of.start, range_figures.of.end)

    def row(tool: str, error_type: str, calls: int) -> ErrorRow:
        query = f"{within} {terms(ToolFilter(tool, range_figures.wanted.version))} state:failed"
        if error_type:
            query += f" error:{quoted(error_type)}"
        return ErrorRow(tool, error_type, calls, query)

    ordered = sorted(range_figures.errors.items(), key=lambda item: (-item[1], item[0]))
    return [row(*key, calls) for key, calls in ordered]


@dataclass(frozen=True, slots=True)
class LimitRow:
    """A tool's limit of one kind compared with its use. Texts include units."""

    tool: str
    given: str
    most: str
    limit: Limit
    shares: list[float]
    query: str
    """The query for the calls that exceeded their limit."""


class UpstreamRow(NamedTuple):
    """Failed calls of a tool with one error type and upstream status."""

    tool: str
    error_type: str
    status: int
    calls: int
    query: str


def upstream_rows(tools: dict[str, ToolSpent], within: str) -> list[UpstreamRow]:
    """Return failed calls by tool, error type and upstream status, the most frequent first."""
    rows = (
        UpstreamRow(
            tool,
            error_type,
            status,
            calls,
            f"{within} tool:{quoted(tool)} state:failed upstream:{status}",
        )
        for tool, spent in tools.items()
        for (error_type, status), calls in spent.upstream.items()
    )
    return sorted(rows, key=lambda row: (-row.calls, row[:3]))


class SourceRow(NamedTuple):
    """A source that a tool's results come from."""

    tool: str
    name: str
    source: Source


def source_rows(sources: dict[tuple[str, str], Source]) -> list[SourceRow]:
    """Return the sources, those with the most calls first."""
    rows = (SourceRow(tool, name, source) for (tool, name), source in sources.items())
    return sorted(rows, key=lambda row: (-row.source.calls, row[:2]))


def limit_rows(tools: dict[str, ToolSpent], kind: str, within: str) -> list[LimitRow]:
    """Return the tools whose calls have a limit. The tool that exceeds it most often is first.

    `kind` is `timeout` (limit in milliseconds, use in microseconds) or `budget` (tokens).
    """

    def rows() -> Iterator[LimitRow]:
        for tool, spent in tools.items():
            limit: Limit = getattr(spent, kind)
            if not limit.calls or limit.low is None or limit.high is None:
                continue
            written = figures.milliseconds if kind == "timeout" else figures.short_count
            given = written(limit.low)
            if limit.high != limit.low:
                given = f"{given} to {written(limit.high)}"
            most = figures.duration if kind == "timeout" else figures.short_count
            over = "over-time" if kind == "timeout" else "over-budget"
            yield LimitRow(
                tool=tool,
                given=given,
                most=most(limit.most),
                limit=limit,
                shares=[count / limit.calls for count in limit.bands],
                query=f"{within} tool:{quoted(tool)} is:{over}",
            )

    return sorted(rows(), key=lambda row: (-row.limit.over, -row.limit.calls, row.tool))


def _span(percentiles: dict[str, float | None], low: float, high: float) -> Span | None:
    """Return the places of three percentiles on a logarithmic scale from `low` to `high`."""

    def place(ms: float) -> float:
        share = log(ms / low) / log(high / low) if high > low else 0.5
        return round(_SPAN_EDGE + share * (_SPAN_WIDTH - 2 * _SPAN_EDGE), 1)

    known: Sequence[float] = [
        ms for name in ("p50", "p95", "p99") if (ms := percentiles[name]) is not None
    ]
    return Span(*map(place, known)) if len(known) == 3 else None
