"""Charts of the calls that a query selects. Pure."""

from dataclasses import replace

from audit.queries.call_query import ANYBODY, Query, parse
from audit.queries.queried import QueriedFigures
from audit.show.charts import Chart, Series
from audit.show.tiles import charts

_UNRUN = {
    "refused": ("Refused", "refused"),
    "awaiting": ("Awaiting", "open"),
    "approved": ("Approved", "dim"),
}


def charts_of_query(figures: QueriedFigures, query: Query) -> dict[str, Chart]:
    """The charts of the overview for the calls of a query, whose marks lead to its calls.

    Parts before the last call that was read have no values: nothing is known of them.
    """
    counted = charts(figures.over_time)
    unrun = [
        Series(name, tone, figures.unrun_parts[state], f"state:{state}")
        for state, (name, tone) in _UNRUN.items()
        if state in figures.unrun_parts
    ]
    calls = counted["calls"]
    if unrun:
        counted["calls"] = replace(calls, series=[*unrun, *calls.series])
    until = figures.searched_until
    known = [until is None or start >= until for start, _ in figures.latency.of.parts]
    return {name: _within(chart, query, known) for name, chart in counted.items()}


def within_query(chart: Chart, query: Query) -> Chart:
    """The chart with marks that lead to calls of a query."""
    base = parse(query.without("since", "until"), ANYBODY)

    def terms(one: Series) -> str:
        name, _, value = one.query.partition(":")
        return base.having(name, value) if value else str(base)

    series = [replace(one, query=terms(one)) for one in chart.series]
    return replace(chart, query=str(base), series=series)


def _within(chart: Chart, query: Query, known: list[bool]) -> Chart:
    chart = within_query(chart, query)
    series = [
        replace(
            one,
            values=[
                value if is_known else None
                for value, is_known in zip(one.values, known, strict=True)
            ],
        )
        for one in chart.series
    ]
    # A query of failed calls has no other states to tell of.
    filled = [one for one in series if any(one.values)]
    return replace(chart, series=filled or series)
