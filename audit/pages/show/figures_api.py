"""Figures of a range: the summary, violations, latency, tokens and repeats.

The rows of figures are ordered by size, and counted for each page again. So the range of the first
page is that of all pages, even if it ended with the time of the request.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query
from pydantic import Field

from audit.exports import latency as latency_export
from audit.exports import repeats
from audit.exports import violations as violation_export
from audit.exports.call_document import violation_members
from audit.pages.show import figure_schemas
from audit.pages.show.api_query import QueriedRangeParams, indexed_filter, time_of, within
from audit.pages.show.figure_page import FigurePage
from audit.pages.show.ranges import Span, ToolRangeParams, bounds, given
from audit.pages.show.router import router
from audit.queries.among import ALL, Among
from audit.queries.call_filter import Text
from audit.queries.call_rows import matched_violations
from audit.queries.cursor import BEGINNING, END
from audit.queries.latency import Latency, Spent, ToolFilter, latency
from audit.queries.polling import polling_tools
from audit.queries.queried import figures_of_query, violations_of_query
from audit.queries.repeats import CALLS, find_repeats
from audit.queries.summary import summary
from audit.queries.time_range import TimeRange
from audit.queries.unrun import unrun_calls
from audit.queries.violation_samples import Sample, SamplePlace, samples
from audit.queries.violations import SIDES, ViolationFilter, violations
from config.http.problems import ProblemError
from tenants.api_auth import ApiRequest
from tenants.api_reads import ListParams, reads, seal, unseal, utc
from tenants.scope import current_tenant_id
from tools_registry.versions import versions_named

_SHARES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
_LIST = ("range", "cursor", "limit")
_ONLY_RESULTS = "q selects results only: use it without side=arguments."


class FigureListParams(QueriedRangeParams, ToolRangeParams, ListParams):
    """Which figures, and how many rows of them."""

    limit: int = Field(1000, ge=1, le=1000)
    """Maximum number of rows."""


class ViolationParams(ToolRangeParams):
    """Which violations."""

    code: str | None = None
    """Only violations with this code, such as `WRONG_TYPE`."""
    path: str | None = None
    """Only violations at this path, with `[*]` for indexes."""
    outcome: str | None = None
    """Only violations with this guard outcome; `rejectedArguments` for those of arguments."""
    side: Literal["", "arguments", "results"] = ""
    """Only violations of rejected arguments, or of results."""

    def read_violations(self) -> ViolationFilter:
        """The filter of violations."""
        names = ("tool", "version", "code", "path", "outcome", "side")
        return ViolationFilter.read(given(**{name: getattr(self, name) for name in names}))


class ViolationListParams(ViolationParams, FigureListParams):
    """Which kinds of violations."""


class ViolationRowParams(ViolationParams, ListParams):
    """Which single violations."""

    q: str = Field("", examples=["tool:search agent:planner"])
    """Only violations of results of calls that match this query, as in the list of calls."""


class RepeatListParams(QueriedRangeParams, ListParams):
    """Which repeats."""

    limit: int = Field(1000, ge=1, le=1000)
    """Maximum number of rows."""

    tool: str | None = None
    """Only calls of this tool, by its exact name."""
    kind: Literal["all", "loop", "repeat"] = "all"
    """Which kind is listed."""
    max_calls: Annotated[int, Field(ge=1, le=CALLS)] = 60_000
    """Maximum number of calls read, in whole hours from the newest; at least one hour is read."""


@reads(router, "/summary", figure_schemas.Summary, tag="figures", problems=("range", "query"))
def read_summary(request: HttpRequest, params: Query[QueriedRangeParams]) -> dict[str, Any]:
    """Get totals of the calls that started in a range.

    `calls` counts completed calls, which succeeded or failed, `open` calls without an end.
    `cancelled` calls are in none of the other figures but `started`. Calls that did not run are
    counted when their latest decision was made. Durations are in milliseconds,
    off by at most 5 %, and null if no call completed.
    """
    of, now = params.read_range(), timezone.now()
    wanted, searched_until = params.read_calls(request, of, now), None
    if wanted is None:
        figures = summary(of.start, of.end)
        started = figures.calls + figures.open + figures.cancelled
        unrun = unrun_calls(of.start, of.end, {"": started}).total
    else:
        queried = figures_of_query(wanted, of, now)
        figures, unrun, searched_until = queried.summary, queried.unrun, queried.searched_until
    return {
        **bounds(of),
        "searched_until": searched_until and utc(searched_until),
        "calls": figures.calls,
        "open": figures.open,
        "cancelled": figures.cancelled,
        "started": unrun.started,
        "errors": figures.errors,
        "refused": unrun.refused,
        "awaiting": unrun.awaiting,
        "approved": unrun.approved,
        "asked_for": unrun.asked_for,
        "refusal_rate": unrun.refusal_rate,
        "violations": figures.violations,
        "violating_calls": figures.violating_calls,
        "prompt_tokens": figures.prompt_tokens,
        "completion_tokens": figures.completion_tokens,
        "duration_ms": {name: figures.duration_ms(share) for name, share in _SHARES},
    }


@reads(router, "/violations", figure_schemas.Violations, tag="figures", problems=("query", *_LIST))
def list_violations(request: HttpRequest, params: Query[ViolationListParams]) -> dict[str, Any]:
    """List schema violations in a range by side, tool, version, path pattern and code.

    `calls` counts calls with such a violation, out of `of_calls`. For results these are the calls
    that started; for arguments also those with a decision that did not start. `new_since`
    is the version that introduced the violation; null if the first known version had it. With `q`,
    only violations of results are listed, and `of_calls` counts calls that match.
    """
    page = FigurePage.read("violations by kind", params)
    of, now, only = page.of, timezone.now(), params.read_violations()
    wanted, searched_until = params.read_calls(request, of, now), None
    if wanted is None:
        range_violations = violations(of, only)
    else:
        if only.side == "arguments":
            raise ProblemError("query", _ONLY_RESULTS)
        queried = violations_of_query(wanted, of, only, now)
        range_violations, searched_until = queried.violations, queried.searched_until
    named = versions_named(
        current_tenant_id(),
        ((one.tool_name, one.tool_version) for one in range_violations.rejected),
    )
    number_of = {key: version.number for key, version in named.items()}
    return {
        **bounds(of),
        "searched_until": searched_until and utc(searched_until),
        "total": range_violations.total,
        "by_side": {side: range_violations.by_side.get(side, 0) for side in SIDES},
        "rejected": [
            {
                "tool_name": one.tool_name,
                "tool_version": one.tool_version or None,
                "registered_number": number_of.get((one.tool_name, one.tool_version)),
                "calls": one.calls,
                "of_calls": one.of_calls,
                "share": one.share,
            }
            for one in range_violations.rejected
        ],
        **page.members([violation_export.document(kind) for kind in range_violations.kinds]),
        "treatments": [
            {
                "side": one.side,
                "strategy": one.strategy,
                "outcome": one.outcome,
                "violations": one.violations,
            }
            for one in range_violations.treatments
        ],
    }


@reads(
    router,
    "/violations/rows",
    figure_schemas.ViolationPage,
    tag="figures",
    problems=("query", *_LIST),
)
def list_violation_rows(request: HttpRequest, params: Query[ViolationRowParams]) -> dict[str, Any]:
    """List single violations of a range, newest first, each with its call.

    With `range`, each page has its own current time as its end. For a fixed range use `from` and
    `to`. With `q`, only violations of results are listed.
    """
    of, before = params.read_range(), unseal("violations", params.cursor, _read_place)
    wanted = params.read_violations()
    searched_until: datetime | None = None
    if params.q.strip():
        if wanted.side == "arguments":
            raise ProblemError("query", _ONLY_RESULTS)
        now = timezone.now()
        calls = within(indexed_filter(request, params.q), Span(of.start, of.end), now)
        page = matched_violations(calls, wanted, now=now, before=before, size=params.limit)
        shown, older, searched_until = page.violations, page.older, page.searched_until
    else:
        rows = samples(of, wanted, limit=params.limit + 1, before=before)
        shown = rows[: params.limit]
        older = _place_of(shown[-1]) if len(rows) > params.limit else None
    with_payloads = cast(ApiRequest, request).auth.sees_payloads
    return {
        "items": [_row(one, with_payloads=with_payloads) for one in shown],
        "next": older and seal("violations", utc(older[0]), *older[1:]),
        "searched_until": searched_until and utc(searched_until),
        "withheld": not with_payloads,
    }


@reads(router, "/latency", figure_schemas.Latency, tag="figures", problems=("query", *_LIST))
def list_latency(request: HttpRequest, params: Query[FigureListParams]) -> dict[str, Any]:
    """List durations and tokens of completed calls by tool and version.

    Counts are exact. Percentiles between 1 ms and 298 s are off by at most 5 %.
    """
    page = FigurePage.read("latency", params)
    of = page.of
    range_figures, searched_until = _spent(request, params, of)
    return {
        **bounds(of),
        "searched_until": searched_until,
        "total": latency_export.figures_of(range_figures.total),
        **page.members(latency_export.documents(range_figures)),
        "parts": _parts(of, [latency_export.figures_of(part) for part in range_figures.parts]),
    }


@reads(router, "/tokens", figure_schemas.Tokens, tag="figures", problems=("query", *_LIST))
def list_tokens(request: HttpRequest, params: Query[FigureListParams]) -> dict[str, Any]:
    """List the tokens of completed calls by tool and version, most tokens first.

    Executors report them in `output.meta.token_usage`.
    """
    page = FigurePage.read("tokens", params)
    of = page.of
    range_figures, searched_until = _spent(request, params, of)
    versions = sorted(range_figures.versions.items(), key=lambda item: (-item[1].tokens, item[0]))
    return {
        **bounds(of),
        "searched_until": searched_until,
        "total": _tokens(range_figures.total),
        **page.members(
            [
                {"tool_name": tool, "tool_version": version or None, **_tokens(spent)}
                for (tool, version), spent in versions
            ]
        ),
        "parts": _parts(of, [_tokens(part) for part in range_figures.parts]),
    }


@reads(router, "/repeats", figure_schemas.Repeats, tag="figures", problems=("query", *_LIST))
def list_repeats(request: HttpRequest, params: Query[RepeatListParams]) -> dict[str, Any]:
    """List identical calls (same tool and call id): loops in one trace, and repeats in any trace.

    `from` is the start of the calls that were read. It is later than requested if the range has
    more calls than `max_calls`; the default answers within 0.1 s. All calls but the first count as
    wasted. Polling tools are excluded. The most frequent are listed; the totals count all. With
    `q`, only calls that match are compared with each other.
    """
    page = FigurePage.read("repeats", params)
    of, now, among = page.of, timezone.now(), ALL
    if (wanted := params.read_calls(request, of, now)) is not None:
        of, among = time_of(wanted, of, now), Among.those_of(wanted, now)
    polling = polling_tools()
    tool = ToolFilter.read(given(tool=params.tool)).tool
    analysis = find_repeats(of, tool, polling, at_most=params.max_calls, among=among)
    return {
        "from": analysis.since.astimezone(UTC),
        "to": of.end.astimezone(UTC),
        "loops": analysis.loop_count,
        "loop_calls": analysis.loop_calls,
        "repeated": analysis.repeated,
        "repeated_calls": analysis.repeated_calls,
        "polling_tools": polling,
        **page.members(
            [one for one in repeats.documents(analysis) if params.kind in {"all", one["kind"]}]
        ),
    }


def _spent(
    request: HttpRequest, params: FigureListParams, of: TimeRange
) -> tuple[Latency, datetime | None]:
    """The figures of completed calls, and until when they were searched for those of a query."""
    now, only = timezone.now(), params.read_filter()
    wanted = params.read_calls(request, of, now)
    if wanted is None:
        return latency(of, only), None
    for member, value in (("tool", only.tool), ("version", only.version)):
        if value is not None:
            wanted = wanted.also(member, Text(value))
    queried = figures_of_query(wanted, of, now)
    return queried.latency, queried.searched_until and utc(queried.searched_until)


def _parts(of: TimeRange, figures: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"from": start, "to": end, **one}
        for (start, end), one in zip(of.parts, figures, strict=True)
    ]


def _tokens(spent: Spent) -> dict[str, int]:
    return {
        "calls": spent.calls,
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "tokens": spent.tokens,
        "cache_hits": spent.cache_hits,
    }


def _row(one: Sample, *, with_payloads: bool) -> dict[str, Any]:
    return {
        "side": one.side,
        "started_at": one.started_at.astimezone(UTC),
        "invocation_id": one.invocation_id,
        "tool_name": one.tool_name,
        "tool_version": one.tool_version or None,
        **violation_members(one, with_payloads=with_payloads),
    }


def _place_of(one: Sample) -> SamplePlace:
    return one.started_at, one.place_id, one.ordinal


def _read_place(place: list[str]) -> SamplePlace:
    at, invocation_id, ordinal = place
    instant, number = datetime.fromisoformat(at), int(ordinal)
    if instant.tzinfo is None or not BEGINNING <= instant <= END or not 0 <= number < 2**31:
        raise ValueError("no place in the list of violations")
    return instant.astimezone(UTC), UUID(invocation_id), number
