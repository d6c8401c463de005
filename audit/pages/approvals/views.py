"""Approvals: what awaits one now, how long answers took, and who gave them."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from audit.exports.approvals import FORMS, document
from audit.pages.show.active_filters import active_filters
from audit.pages.show.choice import choice
from audit.pages.show.figures_file import figures_file
from audit.pages.show.range_bar import invalid_range, range_bar, requested_range
from audit.queries.approvals import (
    READ_LIMIT,
    Approval,
    ApprovalFigures,
    ApprovalFilter,
    Decider,
    approvals,
    awaiting_now,
    by_band,
    figures,
)
from audit.queries.time_range import TimeRange
from audit.show.charts import range_query
from audit.show.figures import count, counted, duration
from audit.show.tiles import Tile
from config.http.htmx import render_page
from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, tenant_page

WAITING_SHOWN, ANSWERS_SHOWN, DECIDERS_SHOWN = 50, 30, 20
FILTERS = {"tool": "Tool", "policy": "Asked by", "by": "Answered by", "requested_by": "For"}


class Waiting(NamedTuple):
    """A request without an answer, and how long it has waited."""

    approval: Approval
    waiting_us: int


class Band(NamedTuple):
    """Requests that were answered within a span of time; `share` is of the largest band."""

    name: str
    requests: int
    share: float


_WAITING: Mapping[str, Key[Waiting]] = {
    "waiting": lambda row: row.waiting_us,
    "tool": lambda row: row.approval.tool_name,
}
_DECIDERS: Mapping[str, Key[Decider]] = {
    "by": lambda one: one.words or None,
    "approved": lambda one: one.answers.approved,
    "refused": lambda one: one.answers.refused,
    "p50": lambda one: one.answers.p50_us,
    "p95": lambda one: one.answers.p95_us,
    "self": lambda one: one.answers.self_approved,
}
_ANSWERED: Mapping[str, Key[Approval]] = {
    "requested": lambda one: one.decided_at,
    "tool": lambda one: one.tool_name,
    "after": lambda one: one.waited_us,
}
"""The columns by which the three tables are sorted."""


@require_safe
@tenant_page()
def approval_list(request: TenantRequest) -> HttpResponse:
    """Show what awaits approval now, and the approvals that were asked for in the URL's range."""
    now = timezone.now()
    requested, wanted = requested_range(request, now), _wanted(request)
    if requested.problem:
        return invalid_range(request, requested, "approvals/approval_list.html", "Approvals")
    listed = approvals(requested.range, wanted, limit=READ_LIMIT + 1)
    listed, is_cut = listed[:READ_LIMIT], len(listed) > READ_LIMIT
    waiting = awaiting_now(now, wanted, limit=WAITING_SHOWN + 1)
    of_range = figures(listed)
    bands = by_band(of_range.total.waits_us)
    most = max(number for _, number in bands)
    answered = [one for one in listed if one.answer is not None or one.has_run]
    context: dict[str, Any] = {
        **range_bar(request, requested),
        "figures": of_range,
        "tiles": tiles(of_range, waiting, range_query(requested.range.start, requested.range.end)),
        "waiting": sorted_table(
            request,
            [Waiting(one, waiting_us(one, now)) for one in waiting[:WAITING_SHOWN]],
            _WAITING,
            "",
            "sort-waiting",
        ),
        "more_waiting": len(waiting) > WAITING_SHOWN,
        "bands": [Band(name, number, number / most if most else 0) for name, number in bands],
        "deciders": sorted_table(
            request, of_range.deciders, _DECIDERS, "", "sort-by", most=DECIDERS_SHOWN
        ),
        "more_deciders": max(0, len(of_range.deciders) - DECIDERS_SHOWN),
        "answered": sorted_table(
            request, answered, _ANSWERED, "requested", "sort", most=ANSWERS_SHOWN
        ),
        "more_answered": max(0, len(answered) - ANSWERS_SHOWN),
        "since": listed[-1].decided_at if is_cut else None,
        "filters": active_filters(wanted, FILTERS),
        "wanted": wanted,
        "exports": tuple(FORMS),
    }
    return render_page(request, "approvals/approval_list.html", "approvals", context)


@require_safe
@tenant_page()
def approval_export(request: TenantRequest, kind: str) -> HttpResponse:
    """Export all approvals that the URL selects as NDJSON or CSV. It is recorded."""
    wanted = _wanted(request)
    return figures_file(
        request,
        kind,
        FORMS,
        lambda of: [document(one) for one in every(of, wanted)],
        of="approvals",
        action="approval.export",
    )


def _wanted(request: TenantRequest) -> ApprovalFilter:
    choice(request, "self", ["1"])
    return ApprovalFilter.read(request.GET)


def every(of: TimeRange, wanted: ApprovalFilter) -> Iterator[Approval]:
    """Yield all approvals of a range, newest first."""
    some = approvals(of, wanted, limit=READ_LIMIT)
    while some:
        yield from some
        some = approvals(of, wanted, limit=READ_LIMIT, before=some[-1].cursor)


def waiting_us(one: Approval, now: datetime) -> int:
    """Return for how many microseconds a request has waited."""
    return max(0, (now - one.decided_at) // timedelta(microseconds=1))


def tiles(of_range: ApprovalFigures, waiting: list[Approval], within: str) -> list[Tile]:
    """Return the headline figures. Those that are not calls of a query have no link."""
    total = of_range.total
    awaiting = f"{count(min(len(waiting), WAITING_SHOWN))}{'+' * (len(waiting) > WAITING_SHOWN)}"
    p50, p95 = total.p50_us, total.p95_us
    of_answers = f"of {counted(total.total, 'answer')}"
    return [
        _tile("Awaiting now", awaiting, "of any age", "state:awaiting"),
        _tile("Approved", count(total.approved), of_answers, f"{within} decision:approved"),
        _tile("Refused", count(total.refused), of_answers),
        _tile(
            "Time to answer, p50 · p95",
            "—" if p50 is None else f"{duration(p50)} · {duration(p95)}",
            f"of {counted(len(total.waits_us), 'request')} with an answer",
        ),
        _tile("Self-approved", count(total.self_approved), f"of {total.approved:,} approved"),
    ]


def _tile(name: str, value: str, note: str, query: str = "") -> Tile:
    return Tile(
        name=name,
        value=value,
        query=query,
        note=note,
        note_query="",
        change=None,
        tone="accent",
        course=[],
    )
