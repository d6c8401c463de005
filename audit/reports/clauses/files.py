"""A clause report as a file: JSON, CSV with one figure per row, or PDF."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from audit.exports.csv_file import csv_rows
from audit.reports.clauses.answers import clause_document, sources
from audit.reports.clauses.texts import LIMITS
from audit.reports.compose import warnings
from audit.reports.pdf import typeset
from audit.reports.periods import in_words, zone_words
from audit.reports.queries import Report
from audit.show.figures import counted
from config.instants import to_the_minute


@dataclass(frozen=True, slots=True)
class ClauseForm:
    """A file format: the function that writes it, and its content type.

    It gets the report, the tenant's name, and the address of the server for links.
    """

    write: Callable[[Report, str, str], bytes]
    content_type: str


COLUMNS = ("source", "reference", "topic", "kind", "name", "value", "text", "page")
"""The CSV's columns. `kind` is `shows`, or `does not show` with the sentence as `text`."""


def _json(report: Report, tenant_name: str, _: str) -> bytes:
    document = {"tenant": tenant_name, **clause_document(report)}
    return json.dumps(document, indent=1).encode() + b"\n"


def csv_documents(report: Report) -> Iterator[dict[str, Any]]:
    """One row per figure, and one per sentence about what is not shown."""
    for clause in clause_document(report)["clauses"]:
        of = (clause["source"], clause["reference"], clause["topic"])
        for one in clause["shows"]:
            cells = (*of, "shows", one["name"], one["value"], one["text"], one["page"])
            yield dict(zip(COLUMNS, cells, strict=True))
        for sentence in clause["does_not_show"]:
            cells = (*of, "does not show", None, None, sentence, None)
            yield dict(zip(COLUMNS, cells, strict=True))


def _csv(report: Report, *_: str) -> bytes:
    return b"".join(csv_rows(iter([list(csv_documents(report))]), COLUMNS))


def _pdf(report: Report, tenant_name: str, server: str) -> bytes:
    zone = report.of.zone
    made = to_the_minute(report.created_at, zone)
    document = {
        "tenant": tenant_name,
        "server": server.rstrip("/"),
        "title": "Clause report",
        "of": in_words(report.kind, report.of),
        "zone": zone_words(report.of),
        "made": f"Created by {report.made_by or 'the schedule'}, {made}",
        "warnings": warnings(report),
        "facts": [
            ("Report", str(report.id)),
            ("Created at", made),
            ("Ledger size", counted(report.ledger_size, "event")),
            ("Calls", report.query),
        ],
        "sources": [asdict(source) for source in sources(report)],
        "limits": LIMITS,
    }
    return typeset("clauses.typ", document, report.created_at)


CLAUSE_FORMS = {
    "pdf": ClauseForm(_pdf, "application/pdf"),
    "csv": ClauseForm(_csv, "text/csv; charset=utf-8"),
    "json": ClauseForm(_json, "application/json"),
}
"""By file name extension."""
