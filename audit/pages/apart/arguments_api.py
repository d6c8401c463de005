"""Comparisons of arguments, over the API."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path
from pydantic import Field

from audit.apart.finding import CannotCompareError
from audit.models import ArgumentComparison
from audit.pages.apart.arguments import ShownDifference, ShownPart, begin_comparison, shown_rows
from audit.pages.show.api_query import parsed_query
from audit.pages.show.ranges import RangeParams
from audit.pages.show.router import router
from audit.work import argument_comparison as job
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, acts
from tenants.api_reads import Answer, reads, utc
from tenants.models import Scope


class ComparisonBody(Body):
    """Which calls are compared in their arguments with the other calls of their tool."""

    q: str = Field(examples=["state:failed tool:search"])
    """The selection: a query with `tool:` and at least one other term."""
    range: str = Field("24h", examples=["24h", "15m", "30d"])
    """How far back from now: minutes, hours or days, up to 400 days."""


class ArgumentPart(Answer):
    """An argument, and what is more frequent there: a type, or a value."""

    path: list[str]
    """Names of members, from the outermost on."""
    type: str | None
    """`absent`, `null`, `boolean`, `number`, `text`, `list`, `empty list` or `object`."""
    value: Any
    """If `type` is null: the value; null if the call that had it was erased."""


class ArgumentDifference(Answer):
    """An argument, or two together, that are more frequent in the selection."""

    parts: list[ArgumentPart]
    also: list[list[ArgumentPart]]
    """What exactly the same calls have: the data cannot tell which one is the cause."""
    selected: int
    """Selected calls that have it, among those that were read."""
    rest: int
    share_selected: float
    share_rest: float
    lift: float | None
    """`share_selected / share_rest`; null if no other call has it."""
    p: float
    example: UUID
    """A selected call that has it: its invocation id."""


class ArgumentsCompared(Answer):
    """A comparison of arguments, its progress and what it found. Kept for a day."""

    id: UUID
    state: Literal["waiting", "running", "done", "cancelled", "failed"]
    created_at: datetime
    q: str
    tool: str
    """The others are calls of this tool."""
    from_: datetime = Field(alias="from")
    to: datetime
    calls: int
    """To be read, evenly chosen: at most 3,000 of each side."""
    read: int
    erased: int
    """Calls without arguments: they were erased."""
    tested: int
    """Values and pairs of values that were tested."""
    set_apart: list[ArgumentDifference]
    withheld: bool
    """Always false: only keys that may read payloads see a comparison."""


@acts(
    router,
    "POST",
    "/apart/arguments",
    ArgumentsCompared,
    scope=Scope.PAYLOADS,
    tag="figures",
    body=ComparisonBody,
    status=201,
    problems=("query", "range"),
)
def start_comparison(act: Act) -> dict[str, Any]:
    """Find the arguments that set the calls of a query apart, in the background.

    Read the progress by its id. The ledger keeps the query.
    """
    body = act.read(ComparisonBody)
    query, of = parsed_query(act.request, body.q), RangeParams(range=body.range).read_range()
    try:
        one = begin_comparison(act.tenant, act.actor, query, of, timezone.now())
    except CannotCompareError as error:
        raise ProblemError("query", str(error)) from error
    return _comparison(one)


@reads(
    router,
    "/apart/arguments/{uuid:comparison_id}",
    ArgumentsCompared,
    scope=Scope.PAYLOADS,
    tag="figures",
    problems=("not_found",),
)
def read_comparison(request: HttpRequest, comparison_id: Path[UUID]) -> dict[str, Any]:
    """Get the progress of a comparison of arguments, and what it found."""
    one = _existing(comparison_id)
    return _comparison(one) | {
        "set_apart": [_difference(row) for row in shown_rows(one, job.differences_of(one))]
    }


@acts(
    router,
    "POST",
    "/apart/arguments/{uuid:comparison_id}/cancel",
    ArgumentsCompared,
    scope=Scope.PAYLOADS,
    tag="figures",
    problems=("not_found",),
)
def cancel_comparison(act: Act, comparison_id: Path[UUID]) -> dict[str, Any]:
    """Cancel a comparison of arguments."""
    job.cancel_comparison(_existing(comparison_id).id, timezone.now())
    return _comparison(_existing(comparison_id))


def _existing(pk: UUID) -> ArgumentComparison:
    one = job.find_comparison(pk)
    if one is None:
        raise ProblemError("not_found", "Comparison not found.")
    return one


def _comparison(one: ArgumentComparison) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": one.state,
        "created_at": utc(one.created_at),
        "q": one.query,
        "tool": one.tool_name,
        "from": utc(one.since),
        "to": utc(one.until),
        "calls": one.call_count,
        "read": one.read_count,
        "erased": one.erased_count,
        "tested": one.tested_count,
        "set_apart": [],
        "withheld": False,
    }


def _difference(row: ShownDifference) -> dict[str, Any]:
    return {
        "parts": [_part(part) for part in row.parts],
        "also": [[_part(part) for part in parts] for parts in row.also],
        "selected": row.difference.selected,
        "rest": row.difference.rest,
        "share_selected": row.share_selected,
        "share_rest": row.share_rest,
        "lift": row.lift,
        "p": row.difference.p,
        "example": UUID(row.difference.invocation_id),
    }


def _part(part: ShownPart) -> dict[str, Any]:
    return {"path": list(part.path), "type": part.type or None, "value": part.value}
