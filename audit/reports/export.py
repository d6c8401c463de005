"""A report as a file: the JSON document, CSV with one figure per row, or `audit.reports.pdf`."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from audit.exports.csv_file import csv_rows
from audit.reports.pdf import pdf
from audit.reports.queries import Report
from config.instants import iso

COLUMNS = ("section", "list", "position", "figure", "value")
"""The CSV's columns. A single figure has neither list nor position. Positions start at 1."""


@dataclass(frozen=True, slots=True)
class Form:
    """A file format: the function that writes it (report, tenant's name), and its content type."""

    write: Callable[[Report, str], bytes]
    content_type: str


def head(report: Report) -> dict[str, Any]:
    """A report's metadata, without its figures; instants are RFC 3339 in UTC."""
    return {
        "id": str(report.id),
        "created_at": iso(report.created_at),
        "made_by": report.made_by or None,
        "made_as": report.made_as,
        "kind": report.kind,
        "from": iso(report.of.start),
        "to": iso(report.of.end),
        "time_zone": str(report.of.zone),
        "ledger_size": report.ledger_size,
        "query": report.query,
        "again_of": report.again_of and str(report.again_of),
    }


def document(report: Report) -> dict[str, Any]:
    """A whole report as JSON values, for the file and the API."""
    return {**head(report), "figures": report.figures}


def csv_documents(report: Report) -> Iterator[dict[str, Any]]:
    """One row per figure, the report's metadata first; null becomes an empty cell."""
    for name, value in head(report).items():
        yield _row("report", None, None, name, value)
    for section, members in report.figures.items():
        if not isinstance(members, dict):
            yield _row("report", None, None, section, members)
            continue
        for name, value in members.items():
            if not isinstance(value, list):
                yield _row(section, None, None, name, value)
                continue
            for position, one in enumerate(value, 1):
                if not isinstance(one, dict):
                    yield _row(section, name, position, None, one)
                    continue
                for figure, each in one.items():
                    yield _row(section, name, position, figure, each)


def _row(section: str, of: str | None, position: int | None, figure: str | None, value: Any) -> Any:
    return dict(zip(COLUMNS, (section, of, position, figure, value), strict=True))


def _json(report: Report, tenant_name: str) -> bytes:
    return json.dumps({"tenant": tenant_name, **document(report)}, indent=1).encode() + b"\n"


def _csv(report: Report, tenant_name: str) -> bytes:
    rows = [_row("report", None, None, "tenant", tenant_name), *csv_documents(report)]
    return b"".join(csv_rows(iter([rows]), COLUMNS))


FORMS = {
    "pdf": Form(pdf, "application/pdf"),
    "csv": Form(_csv, "text/csv; charset=utf-8"),
    "json": Form(_json, "application/json"),
}
"""By file name extension."""
