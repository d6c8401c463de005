"""The query of calls from a request of the API."""

from dataclasses import replace
from datetime import datetime
from typing import cast

from django.http import HttpRequest
from pydantic import Field

from audit.pages.show.ranges import RangeParams, Span
from audit.queries.call_filter import CallFilter
from audit.queries.call_query import Query, Reader, parse
from audit.queries.time_range import TimeRange
from config.http.problems import ProblemError
from tenants.api_auth import ApiRequest


class QueriedRangeParams(RangeParams):
    """The parameters of figures that can be those of a query."""

    q: str = Field("", examples=["agent:planner NOT state:failed"])
    """Only calls that match this query, as in the list of calls. They are read one by one, newest
    first, within a budget: the answer says how far back.
    """

    def read_calls(self, request: HttpRequest, of: TimeRange, now: datetime) -> CallFilter | None:
        """The filter of the calls of a range; None without a query. Raises ProblemError."""
        return self.read_any_calls(request, of, now) if self.q.strip() else None

    def read_any_calls(self, request: HttpRequest, of: TimeRange, now: datetime) -> CallFilter:
        """The same; without a query, of all calls of the range."""
        return within(indexed_filter(request, self.q), Span(of.start, of.end), now)


def checked(query: Query) -> Query:
    """The same query. Raises ProblemError with its first problem."""
    if query.problems:
        first = query.problems[0]
        length = first.end - first.start
        raise ProblemError("query", first.message, position=first.start, length=length)
    return query


def parsed_query(request: HttpRequest, text: str) -> Query:
    """A query as the key may ask it. Raises ProblemError for one that cannot be read as a whole."""
    return checked(parse(text, Reader(sees_payloads=cast(ApiRequest, request).auth.sees_payloads)))


def parsed_terms(request: HttpRequest, text: str) -> Query:
    """The same for an act, which must not select all calls: a query without terms is a problem."""
    query = parsed_query(request, text)
    if not query.terms:
        raise ProblemError("query", "An empty query would select all calls.", position=0, length=0)
    return query


def indexed_filter(request: HttpRequest, text: str) -> CallFilter:
    """The filter of a query without terms on payloads. Raises ProblemError."""
    return checked(parsed_query(request, text).of_index()).wanted


def within(wanted: CallFilter, span: Span, now: datetime) -> CallFilter:
    """The filter, within a range as well as in its own."""
    starts = [at for at in (wanted.from_instant(now), span.since) if at is not None]
    ends = [at for at in (wanted.to_instant(now), span.until) if at is not None]
    return replace(wanted, since=max(starts, default=None), until=min(ends, default=None))


def time_of(wanted: CallFilter, of: TimeRange, now: datetime) -> TimeRange:
    """The part of a range that is in a filter's times, too; empty if there is none."""
    start, end = wanted.from_instant(now) or of.start, wanted.to_instant(now) or of.end
    return replace(of, start=start, end=max(start, end))
