"""Makes reports: stores figures and the size of the ledger, both of one moment."""

from datetime import datetime
from typing import Any

from django.db import OperationalError, connection
from psycopg.errors import SerializationFailure
from tooltrail.evidence.statements import report_digest

from audit.models import StoredReport
from audit.queries.time_range import TimeRange
from audit.reports.changes import changes
from audit.reports.clauses.answers import MEMBER
from audit.reports.clauses.record import record_figures
from audit.reports.export import document
from audit.reports.figures import gather
from audit.reports.queries import (
    MadeAs,
    Report,
    insert_report,
    ledger_size,
)
from audit.show.charts import range_query
from config.instants import iso
from tenants.actions import record_action
from tenants.models import Tenant, User, new_id


def of_one_moment() -> None:
    """Make the scope's transaction read everything as of one moment (REPEATABLE READ).

    Must be the first statement in a scope. Without it, a batch stored in the meantime would count
    in some of a report's figures, but not in others and not in its ledger size.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def create_report(
    kind: str,
    of: TimeRange,
    *,
    now: datetime,
    made_by: str,
    made_as: MadeAs,
    period: str | None = None,
    again: Report | None = None,
    with_clauses: bool = False,
) -> Report | None:
    """Make and store a report. None if the scheduled one of that kind and period exists.

    `again` is an earlier report of the same range: the new report also stores what changed since.
    `with_clauses`: also the figures of a clause report.
    Runs after `of_one_moment`, in the same scope.
    """
    size = ledger_size()
    figures = gather(of, now)
    if with_clauses:
        figures[MEMBER] = record_figures(of, now)
    if again is not None:
        figures["since"] = _since(again, figures)
    report = Report(
        id=new_id(),
        created_at=now,
        made_by=made_by,
        made_as=made_as,
        kind=kind,
        of=of,
        ledger_size=size,
        query=range_query(of.start, of.end),
        again_of=None if again is None else again.id,
        figures=figures,
    )
    try:
        return report if insert_report(report, period=period) else None
    except OperationalError as error:
        # Another worker has stored it since our snapshot.
        if isinstance(error.__cause__, SerializationFailure):
            return None
        raise


def record_creation(tenant: Tenant, actor: User | str, report: Report) -> None:
    """Record who created a report, with its hash: evidence bundles prove the report by it."""
    record_action(
        tenant,
        actor,
        "report.create",
        report.query,
        report=str(report.id),
        sha256=report_digest(document(report)),
        rows=[StoredReport(id=report.id)],
    )


def _since(again: Report, figures: dict[str, Any]) -> dict[str, Any]:
    return {
        "report_id": str(again.id),
        "created_at": iso(again.created_at),
        "ledger_size": again.ledger_size,
        "changes": changes(again.figures, figures),
    }
