"""Reports over the API: list, read and create, as on the pages."""

from datetime import datetime
from typing import Any, Literal, cast
from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Path, Query, Router
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from audit.reports.clauses.answers import clause_document, has_clauses
from audit.reports.export import document
from audit.reports.periods import read_period
from audit.reports.queries import find_report, report_page
from audit.reports.stored import create_report, of_one_moment, record_creation
from config.http.problems import ProblemError, problem_responses
from config.http.request_bodies import json_body
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.api_reads import Answer, ListParams, Page, Params, reads, seal, unseal
from tenants.keys import actor_of
from tenants.models import ApiKey, Scope, Tenant
from tenants.scope import tenant_scope
from tenants.zones import zone_named, zone_names

_BODY_MAX_BYTES = 10_000

router = Router()


class ReportHead(Answer):
    """A report: its range and its creator."""

    id: UUID
    created_at: datetime
    made_by: str | None
    """Name of the user or key; null for scheduled reports."""
    made_as: Literal["person", "key", "schedule"]
    kind: Literal["day", "week", "month", "range"]
    from_: datetime = Field(alias="from")
    to: datetime
    time_zone: str
    """IANA name of the time zone of its days."""
    ledger_size: int
    """Events in the tenant's log when the report was created."""
    query: str
    """Query of `/calls` for the calls of the report."""
    again_of: UUID | None
    """The report whose range was used again. It may have been deleted."""


class Report(ReportHead):
    """A report with the figures at the time of creation."""

    figures: dict[str, Any]
    """Figures by section; in lists only the headline figures. `format` is the document version."""


class ReportPage(Page[Report]):
    """A page of reports, newest first."""

    OLD_NAME = "reports"


class ClauseFigure(Answer):
    """A figure beside a clause."""

    id: str
    name: str
    value: int | float | str | bool | None
    """A count, a share from 0 to 1, milliseconds, days, or an instant; null: unknown."""
    text: str
    """The same for people."""
    page: str
    """Path of the page behind it; empty if there is none."""


class AnsweredClause(Answer):
    """A clause, what the record shows beside it, and what it does not show."""

    id: str
    source: str
    reference: str
    topic: str
    asks: str
    """What the clause asks for, in our words."""
    shows: list[ClauseFigure]
    does_not_show: list[str]


class ClauseReport(Answer):
    """Figures of a report clause by clause."""

    format: str
    report: ReportHead
    clauses: list[AnsweredClause]
    limits: list[str]
    """What holds for all clauses."""


class Wanted(Params):
    """A report to create: of a day, week, month or range, or the range of an earlier report."""

    model_config = ConfigDict(use_attribute_docstrings=True, extra="forbid", strict=True)

    kind: Literal["day", "week", "month", "range"] = "range"
    day: str = Field("", examples=["2026-11-20"])
    """Any day in the day, week or month."""
    range: str = Field("", examples=["7d"])
    """For `range`: how far back from now: 15m, 1h, 6h, 24h, 7d, 30d or 90d."""
    from_: str = Field("", alias="from", examples=["2026-11-20T10:00:00"])
    """Or its start: an instant (in `time_zone` if it has no offset) or a day."""
    to: str = Field("", examples=["2026-11-21"])
    """Its end: an instant or a day, inclusive. Default: now."""
    time_zone: str = Field("UTC", examples=["Europe/Berlin"])
    """IANA name of the time zone of days, weeks and months."""
    again_of: str = Field("", examples=["01a20108-bf2d-737e-8cda-6686052dfb51"])
    """Instead of all others: id of a report whose range is used again."""
    clauses: bool = False
    """Whether the report also gets the figures of `reports/{report_id}/clauses`."""


@reads(router, "/reports", ReportPage, tag="reports", problems=("cursor", "limit"))
def list_reports(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List reports, newest first, with their headline figures."""
    before = unseal("reports", params.cursor, lambda place: UUID(place[0]))
    page = report_page(before=before, size=params.limit)
    return {
        "items": [document(report) for report in page.reports],
        "next": page.older and seal("reports", page.older),
    }


@reads(router, "/reports/{uuid:report_id}", Report, tag="reports", problems=("not_found",))
def read_report(request: HttpRequest, report_id: Path[UUID]) -> dict[str, Any]:
    """Get a report with all its figures, as they were when it was created."""
    report = find_report(report_id)
    if report is None:
        raise ProblemError("not_found", "Report not found.")
    return document(report)


@reads(
    router,
    "/reports/{uuid:report_id}/clauses",
    ClauseReport,
    tag="reports",
    problems=("not_found",),
)
def read_clauses(request: HttpRequest, report_id: Path[UUID]) -> dict[str, Any]:
    """Get the figures of a report clause by clause, if it was made with `clauses`."""
    report = find_report(report_id)
    if report is None or not has_clauses(report):
        raise ProblemError("not_found", "Report with clauses not found.")
    return clause_document(report)


@router.post(
    "/reports",
    auth=ApiKeyAuth(Scope.READ),
    response={201: Report},
    by_alias=True,
    operation_id="make_report",
    summary="Make report",
    tags=["reports"],
    openapi_extra=json_body(Wanted.model_json_schema())
    | problem_responses(
        ["missing_key", "unknown_key", "missing_scope", "malformed", "range", "not_found"]
    ),
)
def make_report(request: HttpRequest) -> HttpResponse:
    """Create and store a report. Returns 201 with all its figures.

    With `again_of`, the new report has the range of that report, and `figures.since` shows what
    arrived since: the ledger size at that time, and the figures that differ.
    """
    wanted = _wanted(request)
    identity, now = cast(ApiRequest, request).auth, timezone.now()
    with tenant_scope(identity.tenant_id):
        of_one_moment()
        again = None
        if wanted.again_of:
            again = find_report(_uuid(wanted.again_of))
            if again is None:
                raise ProblemError("not_found", "Report not found.")
            kind, of = again.kind, again.of
        else:
            if wanted.time_zone not in zone_names():
                raise ProblemError("range", "Unknown time_zone.", parameter="time_zone")
            params = wanted.model_dump(by_alias=True)
            try:
                kind, of = read_period(params, now=now, zone=zone_named(wanted.time_zone))
            except ValueError as error:
                raise ProblemError("range", str(error)) from error
        key = ApiKey.objects.filter(tenant_id=identity.tenant_id, key_id=identity.key_id).first()
        made_by = key.name if key else identity.key_id
        report = create_report(
            kind,
            of,
            now=now,
            made_by=made_by,
            made_as="key",
            again=again,
            with_clauses=wanted.clauses,
        )
        assert report is not None, "only scheduled ones have a period to clash with"
        tenant = Tenant.objects.get(pk=identity.tenant_id)
        record_creation(tenant, actor_of(identity), report)
    return HttpResponse(
        msgspec.json.encode(document(report)), content_type="application/json", status=201
    )


def _wanted(request: HttpRequest) -> Wanted:
    try:
        return TypeAdapter(Wanted).validate_json(request.read(_BODY_MAX_BYTES))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ProblemError(
            "malformed",
            f"{where}: {first['msg']}." if where else "The body is not valid JSON.",
        ) from error


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise ProblemError("not_found", "Report not found.") from error
