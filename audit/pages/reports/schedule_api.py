"""The schedule of reports over the API."""

from typing import Any, Literal

from django.http import HttpRequest
from pydantic import Field

from audit.pages.reports.acts import save_schedule
from audit.pages.reports.api import router
from audit.pages.reports.forms import ScheduleForm
from audit.reports.schedule import KEEP_DAYS, LEAST_DAYS, MOST_DAYS, schedule
from tenants.api_acts import Act, Body, acts, checked
from tenants.api_reads import Answer, reads
from tenants.models import Scope

Kind = Literal["day", "week", "month"]


class ReportSchedule(Answer):
    """Which reports the worker makes, and how long all reports are kept."""

    kinds: list[Kind]
    time_zone: str
    """IANA name of the time zone of days, weeks and months."""
    keep_days: int


class ScheduleBody(Body):
    """The new schedule."""

    kinds: list[Kind]
    """None: no reports are made by schedule."""
    time_zone: str = Field("UTC", examples=["Europe/Berlin"])
    keep_days: int = Field(KEEP_DAYS, ge=LEAST_DAYS, le=MOST_DAYS)


@reads(router, "/reports/schedule", ReportSchedule, tag="reports")
def read_report_schedule(request: HttpRequest) -> dict[str, Any]:
    """Get which reports the worker makes, and how long reports are kept."""
    return _document()


@acts(
    router,
    "PUT",
    "/reports/schedule",
    ReportSchedule,
    scope=Scope.ADMIN,
    tag="reports",
    body=ScheduleBody,
)
def change_report_schedule(act: Act) -> dict[str, Any]:
    """Replace the schedule. Reports that are due are made within minutes."""
    form = checked(ScheduleForm(act.read(ScheduleBody).model_dump()))
    save_schedule(act.tenant, act.actor, form.schedule)
    return _document()


def _document() -> dict[str, Any]:
    decided = schedule()
    return {
        "kinds": list(decided.kinds),
        "time_zone": decided.time_zone,
        "keep_days": decided.keep_days,
    }
