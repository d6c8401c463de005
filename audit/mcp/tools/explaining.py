"""The tool that says why a query finds nothing."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.utils import timezone
from pydantic import Field

from audit.mcp.caller import McpRequest
from audit.mcp.tool import Tool, ToolParams
from audit.pages.show.api_query import within
from audit.pages.show.ranges import RangeParams, Span
from audit.queries.call_filter import CallFilter
from audit.queries.call_list import call_page
from audit.queries.call_query import Reader, Term, parse
from audit.queries.call_walk import Budget
from tenants.api_reads import Answer, utc

_TERMS_MAX: Final = 10
_EACH: Final = Budget(seconds=0.2)


class ExplainParams(ToolParams, RangeParams):
    """Which query."""

    range: str = ""
    """How far back from now: minutes, hours or days, up to 400 days. Default: any time."""
    q: str = Field(max_length=2_000, examples=["tool:search state:error since:24h"])
    """The query, as for search_calls, with the same range."""

    def read_span(self) -> Span:
        """The requested range. Raises ProblemError."""
        if not (self.range or self.from_ or self.to):
            return Span()
        of = self.read_range()
        return Span(of.start, of.end if self.from_ or self.to else None)


class QueryProblem(Answer):
    """A part of the query that cannot be read."""

    message: str
    start: int
    """Its first character, from 0; `end` is behind its last one."""
    end: int


class ExplainedTerm(Answer):
    """A term of the query."""

    term: str
    newest_alone: datetime | None
    """Start of the newest call that matches this term alone; null if none does."""
    newest_without: datetime | None
    """The same of the other terms without this one: if it is set, this term excludes the rest."""


class Explanation(Answer):
    """Whether a query finds calls, and which of its terms excludes them."""

    problems: list[QueryProblem]
    """With any, nothing was searched."""
    newest: datetime | None
    """Start of the newest call that matches; null if none does."""
    newest_in_range: datetime | None
    """The same, without a query."""
    newest_of_all: datetime | None
    """Start of the newest call of the tenant."""
    terms: list[ExplainedTerm]
    """The first ten."""
    is_complete: bool
    """False: a search ended early, so null may mean that older calls match."""


class _Search:
    """Looks for the newest call of several filters in one range."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self._now = timezone.now()
        self.is_complete = True

    def newest(self, wanted: CallFilter) -> datetime | None:
        """Start of the newest call that matches in the range."""
        page = call_page(within(wanted, self._span, self._now), now=self._now, size=1, budget=_EACH)
        if page.calls:
            return utc(page.calls[0].started_at)
        self.is_complete &= page.searched_until is None
        return None


def _explain(request: McpRequest, params: ExplainParams) -> dict[str, Any]:
    reader = Reader(sees_payloads=request.auth.sees_payloads)
    query, span = parse(params.q, reader), params.read_span()
    search, always = _Search(span), _Search(Span())
    terms = [] if query.problems else query.terms[:_TERMS_MAX]
    return {
        "problems": [
            {"message": one.message, "start": one.start, "end": one.end} for one in query.problems
        ],
        "newest": None if query.problems else search.newest(query.wanted),
        "newest_in_range": search.newest(CallFilter()),
        "newest_of_all": always.newest(CallFilter()),
        "terms": [
            {
                "term": term.text,
                "newest_alone": search.newest(_filter([term], reader)),
                "newest_without": search.newest(
                    _filter([one for one in query.terms if one is not term], reader)
                ),
            }
            for term in terms
        ],
        "is_complete": search.is_complete and always.is_complete,
    }


def _filter(terms: Sequence[Term], reader: Reader) -> CallFilter:
    return parse(" ".join(term.closed for term in terms), reader).readable


EXPLAIN: Final = Tool(
    "explain",
    "Explain a query",
    "Say why a query finds no calls: parts that cannot be read, terms that match nothing, terms"
    " that exclude what the others match, and whether there are calls at all.",
    ExplainParams,
    Explanation,
    _explain,
)
