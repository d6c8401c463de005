"""A board with its figures. The work is bounded, whatever the panels are."""

from dataclasses import dataclass, replace
from datetime import datetime

from audit.pages.calls.call_list import CallRow, call_rows
from audit.pages.show.requested_query import read_query
from audit.queries.alerts import fired_in
from audit.queries.boards import BoardPage, Panel
from audit.queries.call_list import call_page
from audit.queries.call_query import Query
from audit.queries.call_walk import Budget
from audit.queries.over_time import has_figures_before, over_time
from audit.queries.published import published_in
from audit.queries.queried import figures_of_query
from audit.queries.time_range import TimeRange
from audit.show import tiles
from audit.show.boards import TITLES
from audit.show.charts import Chart, range_query
from audit.show.query_charts import charts_of_query
from tenants.access import TenantRequest

CALLS_SHOWN = 10
ROWS, SECONDS = 20_000, 0.6
"""Calls that each query reads, and seconds of all queries of a board together."""


@dataclass(frozen=True, slots=True)
class ShownPanel:
    """A panel with its chart or its calls."""

    panel: Panel
    title: str
    problem: str = ""
    """Why it shows nothing: its query is not for this member."""
    chart: Chart | None = None
    searched_until: datetime | None = None
    """Set if older calls were not read."""
    rows: tuple[CallRow, ...] = ()
    query: str = ""
    """The query of its calls, with the range."""


def shown_panels(
    request: TenantRequest, page: BoardPage, of: TimeRange, now: datetime
) -> list[ShownPanel]:
    """The panels of a board over a range.

    All charts without a query have the same figures: six statements. A query reads at most `ROWS`
    calls, in sections of some thousand, and its charts share them. A list is a short walk.
    """
    queries = {one.q: read_query(request, one.q).of_index() for one in page.panels}
    counted = _charts(page, queries, of, now)
    return [
        _shown(request, number, panel, queries[panel.q], counted, of, now)
        for number, panel in enumerate(page.panels)
    ]


type _Counted = dict[str, tuple[dict[str, Chart], datetime | None]]


def _charts(page: BoardPage, queries: dict[str, Query], of: TimeRange, now: datetime) -> _Counted:
    """The charts of each query that a panel draws, and since when its calls were read."""
    drawn = dict.fromkeys(one.q for one in page.panels if one.shows != "list")
    counted: _Counted = {}
    if "" in drawn:
        figures = over_time(of, with_parts_before=True)
        if not has_figures_before(of.previous.start):
            figures.before = []
        counted[""] = (tiles.charts(figures, fired_in(of), published_in(of)), None)
    walked = [text for text in drawn if text and not queries[text].problems]
    budget = Budget(rows=ROWS, seconds=SECONDS / max(1, len(walked)))
    for text in walked:
        wanted = replace(queries[text].wanted, since=of.start, until=of.end)
        read = figures_of_query(wanted, of, now, budget=budget)
        counted[text] = (charts_of_query(read, queries[text]), read.searched_until)
    return counted


def _shown(
    request: TenantRequest,
    number: int,
    panel: Panel,
    query: Query,
    counted: _Counted,
    of: TimeRange,
    now: datetime,
) -> ShownPanel:
    title = panel.title or TITLES[panel.shows]
    within = f"{range_query(of.start, of.end)} {query}".strip()
    if query.problems:
        return ShownPanel(panel, title, query.problems[0].message)
    if panel.shows == "list":
        wanted = replace(query.wanted, since=of.start, until=of.end)
        budget = Budget(rows=ROWS, seconds=SECONDS / 12)
        listed = call_page(wanted, now=now, size=CALLS_SHOWN, budget=budget)
        rows = tuple(call_rows(request, "board", listed.calls, now))
        return ShownPanel(
            panel, title, searched_until=listed.searched_until, rows=rows, query=within
        )
    charts, searched_until = counted[panel.q]
    note = ", ".join(filter(None, (panel.title and TITLES[panel.shows], charts[panel.shows].note)))
    chart = replace(charts[panel.shows], id=f"panel-{number}", title=title, note=note)
    chart = chart.with_threshold(
        request.GET.get(chart.threshold_name, "").strip() or panel.threshold
    )
    return ShownPanel(panel, title, chart=chart, searched_until=searched_until, query=within)
