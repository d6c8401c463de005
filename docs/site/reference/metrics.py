"""The metrics of a web server, from the table it counts with."""

from collections.abc import Iterator

from audit.intake.metrics import FAMILIES
from docs.site.reference.markdown import table


def metrics() -> Iterator[str]:
    """The page."""
    yield "# Metrics\n"
    yield (
        "What each web server counts and `/metrics` exposes. How to scrape it, the gauges of"
        " database and jobs, and the alerts to set:"
        " [Monitoring](/operations.md#monitoring).\n"
    )
    rows = [
        (f"`{name}`", kind, text, ", ".join(f"`{each}`" for each in _labels(suffixes)))
        for name, (kind, text, suffixes) in FAMILIES.items()
    ]
    yield from table(("Name", "Type", "Meaning", "Labels"), rows)


def _labels(suffixes: tuple[str, ...]) -> list[str]:
    names = (each.partition("{")[2].partition("=")[0] for each in suffixes)
    return sorted({name for name in names if name})
