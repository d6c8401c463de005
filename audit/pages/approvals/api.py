"""Approvals over the API."""

from datetime import UTC
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Query

from audit.exports.approvals import document
from audit.pages.approvals import schemas
from audit.pages.show.ranges import RangeParams, bounds, given
from audit.pages.show.router import router
from audit.queries.approvals import (
    READ_LIMIT,
    Answers,
    ApprovalFilter,
    approvals,
    by_band,
    figures,
)
from audit.queries.cursor import parse_cursor
from tenants.api_reads import ListParams, reads, seal, unseal


class ApprovalParams(RangeParams):
    """Selects approvals by the time of the request, or of the approval if it has none."""

    tool: str | None = None
    """Only approvals of calls of this tool, by its exact name."""
    policy: str | None = None
    """Only requests of this policy, guardrail or person, by id or name."""
    by: str | None = None
    """Only answers of this person, policy or guardrail, by id or name."""
    requested_by: str | None = None
    """Only calls that are made for this person."""
    only_self: bool = False
    """Only what people approved for themselves."""

    def read_approvals(self) -> ApprovalFilter:
        """The filter of approvals."""
        names = ("tool", "policy", "by", "requested_by")
        texts = given(**{name: getattr(self, name) for name in names})
        return ApprovalFilter.read(texts | {"self": "1" if self.only_self else ""})


class ApprovalListParams(ApprovalParams, ListParams):
    """Selects approvals, and how many."""

    state: Literal["", "awaiting"] = ""
    """`awaiting`: only requests that have no answer and whose calls did not run."""


@reads(
    router,
    "/approvals",
    schemas.ApprovalPage,
    tag="figures",
    problems=("range", "cursor", "limit"),
)
def list_approvals(request: HttpRequest, params: Query[ApprovalListParams]) -> dict[str, Any]:
    """List requests for an approval with their answers, newest first.

    What a person approved without a request is listed, too. With `range`, each page has its own
    current time as its end. For a fixed range use `from` and `to`.
    """
    of = params.read_range()
    before = unseal("approvals", params.cursor, lambda place: parse_cursor("\n".join(place), UUID))
    listed = approvals(
        of,
        params.read_approvals(),
        limit=params.limit + 1,
        before=before,
        only_waiting=params.state == "awaiting",
    )
    shown = listed[: params.limit]
    return {
        **bounds(of),
        "items": [document(one) for one in shown],
        "next": seal("approvals", shown[-1].cursor) if len(listed) > params.limit else None,
    }


@reads(
    router,
    "/approvals/summary",
    schemas.ApprovalSummary,
    tag="figures",
    problems=("range",),
)
def read_approval_summary(request: HttpRequest, params: Query[ApprovalParams]) -> dict[str, Any]:
    """Get figures of approvals: how many, by whom, and the time from request to answer.

    `from` is later than requested if the range has more than 20,000 approvals: the newest are
    counted. Times are exact percentiles (nearest rank), in milliseconds.
    """
    of = params.read_range()
    listed = approvals(of, params.read_approvals(), limit=READ_LIMIT + 1)
    if len(listed) > READ_LIMIT:
        listed = listed[:READ_LIMIT]
        since = {"from": listed[-1].decided_at.astimezone(UTC)}
    else:
        since = {}
    of_range = figures(listed)
    return {
        **bounds(of),
        **since,
        "total": _answers(of_range.total),
        "awaiting": of_range.awaiting,
        "ran": of_range.ran,
        "waits": [
            {"name": name, "requests": number} for name, number in by_band(of_range.total.waits_us)
        ],
        "deciders": [
            {"kind": one.kind, "id": one.id, "name": one.name, **_answers(one.answers)}
            for one in of_range.deciders
        ],
    }


def _answers(answers: Answers) -> dict[str, Any]:
    def ms(waited_us: int | None) -> float | None:
        return None if waited_us is None else waited_us / 1000

    return {
        "answers": answers.total,
        "approved": answers.approved,
        "refused": answers.refused,
        "self_approved": answers.self_approved,
        "unasked": answers.unasked,
        "p50_ms": ms(answers.p50_us),
        "p95_ms": ms(answers.p95_us),
    }
