"""What sets calls apart, over the API."""

from collections.abc import Iterable
from typing import Any, Literal, cast

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query
from pydantic import Field

from audit.apart.finding import CannotCompareError, Finding, Named, find_apart, tool_beside
from audit.pages.show.figure_schemas import Bounds
from audit.pages.show.ranges import RangeParams, bounds
from audit.pages.show.router import router
from audit.queries.call_query import InvalidQueryError, Reader, parse
from config.http.problems import ProblemError
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, reads


class ApartParams(RangeParams):
    """Which calls, and which others."""

    q: str = Field(examples=["state:failed tool:search"])
    """The selection: a query as on the Calls page. Its own times must be within the range."""
    beside: Literal["tool", "all"] = "tool"
    """The others: `tool`: of the tool that `q` names, if it has other terms, too. `all`: all."""


class ValueOfCalls(Answer):
    """A value of a property."""

    property: str
    value: str
    """Empty: the calls have none."""


class SetApart(Answer):
    """A value, or two together, that are more frequent in the selection."""

    values: list[ValueOfCalls]
    also: list[list[ValueOfCalls]]
    """What exactly the same calls have: the data cannot tell which one is the cause."""
    selected: int
    """Calls of the selection that have the value, among those that were read."""
    rest: int
    share_selected: float
    share_rest: float
    lift: float | None
    """`share_selected / share_rest`; null if no other call has the value."""
    p: float
    """By the exact test, one-sided. Of two values, that neither of them explains it alone."""
    query: str
    """The query of these calls."""


class Apart(Bounds):
    """What sets a selection of calls apart from the rest of a range, the strongest first."""

    calls: int
    """About how many calls the range has to compare."""
    selected: int
    """Calls of the selection that were read. Without 10 on each side nothing is tested."""
    rest: int
    is_sample: bool
    """Whether only a part of the calls was read, evenly over the range."""
    beside_tool: str | None
    """The others are calls of this tool only."""
    properties: list[str]
    tested: int
    """Values and pairs of values that were tested."""
    set_apart: list[SetApart]
    """Empty if nothing distinguishes the selection (false discovery rate 0.001)."""


@reads(router, "/apart", Apart, tag="figures", problems=("range", "query"))
def read_apart(request: HttpRequest, params: Query[ApartParams]) -> dict[str, Any]:
    """Find what sets the calls of a query apart from the other calls of a range.

    At most 60,000 calls are read. Calls that did not run, and terms on payloads, are not supported.
    """
    of, beside_all = params.read_range(), params.beside == "all"
    try:
        query = parse(params.q, Reader(sees_payloads=cast(ApiRequest, request).auth.sees_payloads))
        finding = find_apart(query, of, timezone.now(), beside_all=beside_all)
    except (InvalidQueryError, CannotCompareError) as error:
        raise ProblemError("query", str(error)) from error
    return {
        **bounds(of),
        "calls": finding.read.population,
        "selected": finding.verdict.selected,
        "rest": finding.verdict.rest,
        "is_sample": not finding.read.is_whole,
        "beside_tool": None if beside_all else tool_beside(query),
        "properties": [each.name for each in finding.properties],
        "tested": finding.verdict.tested,
        "set_apart": named_documents(finding),
    }


def named_documents(finding: Finding) -> list[dict[str, Any]]:
    """What a finding names, as `SetApart`."""
    return [_document(one) for one in finding.named]


def _document(one: Named) -> dict[str, Any]:
    return {
        "values": _values(one.difference.values),
        "also": [_values(values) for values in one.difference.also],
        "selected": one.difference.selected,
        "rest": one.difference.rest,
        "share_selected": one.difference.share_selected,
        "share_rest": one.difference.share_rest,
        "lift": one.difference.lift,
        "p": one.difference.p,
        "query": one.query,
    }


def _values(values: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"property": name, "value": value} for name, value in values]
