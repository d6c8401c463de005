"""What the panels of boards show, in words, and the thresholds that they may have. Pure."""

from collections.abc import Iterator

from audit.queries.boards import BoardPage, Shows
from audit.show.charts import Unit, read_level

TITLES: dict[Shows, str] = {
    "calls": "Calls by state",
    "errors": "Error rate",
    "latency": "Duration",
    "violations": "Calls with schema violations",
    "list": "Newest calls",
}
_UNITS: dict[Shows, Unit] = {
    "calls": "count",
    "errors": "share",
    "latency": "duration",
    "violations": "count",
}


def problems_of(page: BoardPage) -> Iterator[str]:
    """What is wrong with the thresholds of the panels, whose units depend on what they show."""
    for number, panel in enumerate(page.panels, start=1):
        if not panel.threshold:
            continue
        if panel.shows not in _UNITS:
            yield f"Panel {number}: a list has no threshold."
            continue
        try:
            read_level(panel.threshold, _UNITS[panel.shows])
        except ValueError as error:
            yield f"Panel {number}: {error}"
