"""The query of calls from a URL or a form, read for the current member."""

from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from audit.queries.call_query import Query, Reader, parse
from tenants.access import TenantRequest
from tenants.actions import record_view


@dataclass(frozen=True, slots=True)
class Mistake:
    """A problem as it is shown: the query in three parts. The middle part is invalid."""

    before: str
    wrong: str
    after: str
    message: str


def read_query(request: TenantRequest, text: str | None = None) -> Query:
    """Read `text`, or the URL's `q` if it is None.

    Days and times are in the member's time zone. Only members who may see payloads can query them.
    """
    if text is None:
        text = request.GET.get("q", "")
    return parse(text, reader_of(request))


def reader_of(request: TenantRequest) -> Reader:
    """Return the reader of queries for this member: time zone and access to payloads."""
    zone = timezone.get_current_timezone()
    return Reader(zone, sees_payloads=request.membership.sees_payloads)


def record_payload_query(request: TenantRequest, query: Query, now: datetime) -> None:
    """Record in the audit log, once a minute, that a query used values of payloads."""
    if not query.problems and query.wanted.payload:
        record_view(
            request.tenant.id, request.user, "payload.query", "calls", query=query.on_record(now)
        )


def mistakes(query: Query) -> list[Mistake]:
    """Return the problems of a query, for `components/_mistakes.html`."""
    return [
        Mistake(
            query.text[: problem.start],
            query.text[problem.start : problem.end],
            query.text[problem.end :],
            problem.message,
        )
        for problem in query.problems
    ]


def invalid(query: Query, verb: str) -> str:
    """Return a query's first problem on one line. `verb` is what did not happen: "searched"."""
    problem = query.problems[0]
    where = f" At character {problem.start + 1:,}: " if query.text else " "
    return f"Invalid query. Nothing was {verb}.{where}{problem.message}"
