"""Queries for stored reports, their schedule, registry changes and exports."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from psycopg.types.json import Jsonb

from audit.queries.inbox import first_id_of
from audit.queries.time_range import TimeRange
from audit.sql.run import rows
from tenants.zones import zone_named

type Figures = dict[str, Any]
"""The document of `audit.reports.figures`."""

MadeAs = Literal["person", "key", "schedule"]
"""Who made a report: a member, a program with an API key, or the worker on schedule."""

_LAST_ID = UUID(int=2**128 - 1)
_CLOCKS_DIFFER = timedelta(minutes=2)  # between an instant and the time in an id created with it


@dataclass(frozen=True, slots=True)
class Report:
    """A stored report."""

    id: UUID
    created_at: datetime
    made_by: str
    """A copy of the user's or key's name; '' for the schedule."""
    made_as: MadeAs
    kind: str
    """A key of `audit.reports.periods.KINDS`."""
    of: TimeRange
    ledger_size: int
    """Events in the log when it was made."""
    query: str
    """The query for the report's calls."""
    again_of: UUID | None
    """The report that this one repeats; it may be deleted."""
    figures: Figures
    """In lists, only the headline figures."""


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A page of a list, newest first, and the ids for the links to the pages around it."""

    reports: list[Report]
    newer: UUID | None
    """The newer page has the reports before this id; the nil id stands for the first page."""
    older: UUID | None


@dataclass(frozen=True, slots=True)
class Published:
    """A version that was published."""

    tool_name: str
    number: int
    digest: str
    at: datetime
    by: str
    by_key: str


@dataclass(frozen=True, slots=True)
class Exported:
    """An export that somebody made: `verb` as in `call.export`, `form` as in `csv`."""

    at: datetime
    user_name: str
    verb: str
    form: str
    query: str


def ledger_size() -> int:
    """How many events the log holds. One statement."""
    ((size,),) = rows("ledger_size", {})
    return int(size)


def registry_changes(of: TimeRange, *, limit: int) -> tuple[list[Published], int, int]:
    """Versions published in a range, newest first; how many in all, and how many of new tools."""
    published = rows("registry_changes", {"start": of.start, "end": of.end, "limit": limit})
    counts = (published[0][6], published[0][7]) if published else (0, 0)
    return [Published(*row[:6]) for row in published], *counts


def exports_made(of: TimeRange, *, limit: int) -> tuple[list[Exported], int]:
    """Exports in a range, newest first, and how many there were in all."""
    exported = rows("exports_made", {"start": of.start, "end": of.end, "limit": limit})
    return [Exported(*row[:5]) for row in exported], exported[0][5] if exported else 0


def insert_report(report: Report, *, period: str | None) -> bool:
    """Store a report. False if a report of that kind and period is stored already."""
    return bool(
        rows(
            "report_insert",
            {
                "id": report.id,
                "created_at": report.created_at,
                "made_by": report.made_by,
                "made_as": report.made_as,
                "kind": report.kind,
                "start": report.of.start,
                "end": report.of.end,
                "time_zone": str(report.of.zone),
                "period": period,
                "ledger_size": report.ledger_size,
                "query": report.query,
                "again_of": report.again_of,
                "figures": Jsonb(report.figures, dumps=_dumps),
            },
        )
    )


def find_report(pk: UUID) -> Report | None:
    """A report with all its figures; None if the tenant has no report with that id."""
    return next((_report(row) for row in rows("report_by_id", {"id": pk})), None)


def report_page(*, before: UUID | None = None, size: int = 50) -> ReportPage:
    """The reports before an id, newest first, at most `size`, with their headline figures."""
    page_rows = rows("report_page", {"before": before or _LAST_ID, "page_limit": size + 1})
    reports = [_report(row) for row in page_rows[:size]]
    newer = None
    if before is not None:
        later = rows("report_page_after", {"after": _before(before), "page_limit": size + 1})
        newer = later[size][0] if len(later) > size else UUID(int=0)
    return ReportPage(reports, newer, reports[-1].id if len(page_rows) > size else None)


def scheduled_reports(kinds: Iterable[str], periods: Iterable[str]) -> set[tuple[str, str]]:
    """Of some periods, those with a scheduled report, as (kind, first day). One statement."""
    return set(rows("reports_of_periods", {"kinds": list(kinds), "periods": list(periods)}))


def forget_reports(until: datetime) -> list[UUID]:
    """Delete the reports made before an instant. Returns their ids. One statement."""
    before = first_id_of(until + _CLOCKS_DIFFER)
    return [row[0] for row in rows("reports_forget", {"until": until, "before": before})]


def read_schedule() -> tuple[list[str], str, int] | None:
    """The tenant's schedule: kinds, time zone, days that reports are kept; None if not set."""
    return next(((row[0], row[1], row[2]) for row in rows("report_schedule_read", {})), None)


def write_schedule(kinds: Iterable[str], time_zone: str, keep_days: int) -> None:
    """Set the tenant's schedule. One statement."""
    rows(
        "report_schedule_write",
        {"kinds": list(kinds), "time_zone": time_zone, "keep_days": keep_days},
    )


def _report(row: tuple[Any, ...]) -> Report:
    pk, created_at, made_by, made_as, kind, start, end, zone, *rest, figures = row
    of = TimeRange(start.astimezone(UTC), end.astimezone(UTC), zone_named(zone))
    # Django's connections return jsonb as text.
    size, query, again_of = rest
    return Report(
        id=pk,
        created_at=created_at,
        made_by=made_by,
        made_as=made_as,
        kind=kind,
        of=of,
        ledger_size=size,
        query=query,
        again_of=again_of,
        figures=json.loads(figures),
    )


def _before(pk: UUID) -> UUID:
    return UUID(int=max(0, pk.int - 1))


def _dumps(document: Any) -> str:
    return json.dumps(document, allow_nan=False)
