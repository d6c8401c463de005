"""The calls of two queries side by side, over the API."""

from datetime import UTC, datetime
from typing import Any, Literal, cast

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query
from pydantic import Field

from audit.apart.finding import CannotCompareError, find_between
from audit.effect.comparison import Compared
from audit.effect.sides import Side, between
from audit.pages.apart.api import SetApart, named_documents
from audit.pages.show.ranges import RangeParams
from audit.pages.show.router import router
from audit.queries.call_query import InvalidQueryError, Reader, parse
from config.http.problems import ProblemError
from tenants.api_auth import ApiRequest
from tenants.api_reads import Answer, reads


class CompareParams(RangeParams):
    """Which calls. A query without `since:` and `until:` is about the range."""

    a: str = Field(examples=["tool:search version:1"])
    """A query as on the Calls page."""
    b: str = Field(examples=["tool:search version:2"])
    """Another one. A call that matches both is a call of `a`."""


class ComparedSide(Answer):
    """The calls of one query."""

    from_: datetime = Field(alias="from")
    to: datetime
    calls: int
    """How many there are; estimated if `is_sample`."""
    read: int
    is_sample: bool
    """Whether only a part was read, evenly over the time."""
    completed: int
    """Of those that were read, like the figures below."""
    failed: int
    violating: int
    p95_ms: float | None
    tokens_per_call: float | None


class ComparedMeasure(Answer):
    """One measure of both sides, and whether they differ (α = 0.01)."""

    measure: Literal["error_rate", "violation_rate", "p95_ms"]
    a: float | None
    b: float | None
    verdict: Literal["not_enough_data", "no_significant_difference", "lower", "higher"]
    """`lower` and `higher` are significant: of `b` beside `a`."""
    test: Literal["z", "fisher", "bootstrap"] | None
    """The test that was used; null without enough data."""
    p: float | None
    """For a rate: the two-sided p-value."""
    interval_ms: list[float] | None
    """For the p95: the 99 % confidence interval of the difference."""


class ComparedCalls(Answer):
    """The calls of two queries, measured and compared."""

    a: ComparedSide
    b: ComparedSide
    measures: list[ComparedMeasure]
    """Without those that a query decides, such as failures with `state:failed`."""
    tested: int
    """Values and pairs of values that were tested."""
    set_apart: list[SetApart]
    """What is more frequent in `a`. Swap the queries for what is more frequent in `b`."""


@reads(router, "/compare/calls", ComparedCalls, tag="figures", problems=("range", "query"))
def compare_calls(request: HttpRequest, params: Query[CompareParams]) -> dict[str, Any]:
    """Compare the calls of two queries: failures, schema violations, durations, and their values.

    At most 60,000 calls are read. Calls that did not run, and terms on payloads, are not supported.
    A verdict on rates needs 30 completed calls on each side, and one on the p95 needs 150.
    """
    of, now = params.read_range(), timezone.now()
    reader = Reader(sees_payloads=cast(ApiRequest, request).auth.sees_payloads)
    try:
        finding = find_between(parse(params.a, reader), parse(params.b, reader), of, now)
    except (InvalidQueryError, CannotCompareError) as error:
        raise ProblemError("query", str(error)) from error
    compared = between(finding.read, {each.name for each in finding.properties})
    return {
        "a": _side(compared.first, finding.times[0]),
        "b": _side(compared.second, finding.times[1]),
        "measures": [_measure(one) for one in compared.measures],
        "tested": finding.verdict.tested,
        "set_apart": named_documents(finding),
    }


def _side(side: Side, bounds: tuple[datetime, datetime]) -> dict[str, Any]:
    return {
        "from": bounds[0].astimezone(UTC),
        "to": bounds[1].astimezone(UTC),
        "calls": side.number,
        "read": side.read,
        "is_sample": side.is_part,
        "completed": side.completed.calls,
        "failed": side.completed.failed,
        "violating": side.completed.violating,
        "p95_ms": side.completed.p95_ms,
        "tokens_per_call": side.tokens_per_call,
    }


def _measure(one: Compared) -> dict[str, Any]:
    return {
        "measure": one.name,
        "a": one.before,
        "b": one.after,
        "verdict": one.verdict.value,
        "test": one.test.by if one.test else "bootstrap" if one.interval else None,
        "p": one.test.p if one.test else None,
        "interval_ms": [one.interval.low, one.interval.high] if one.interval else None,
    }
