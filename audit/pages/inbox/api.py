"""Lost events over the API: producers with their sequence gaps, and rejected events."""

import base64
from datetime import UTC, datetime
from typing import Any, Literal, cast
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field

from audit.models import RejectedEvent
from audit.pages.show import figure_schemas
from audit.pages.show.ranges import ListRangeParams, RangeParams, bounds
from audit.pages.show.router import router
from audit.queries.cursor import BEGINNING, END
from audit.queries.inbox import InboxFilter, inbox_line, inbox_open_count, inbox_page
from audit.queries.losses import gaps_between, producers
from config.http.problems import ProblemError
from tenants.api_auth import ApiRequest
from tenants.api_reads import ListParams, reads, seal, unseal


class ProducerListParams(RangeParams, ListParams):
    """Which producers: those heard since the range began."""


class InboxParams(ListRangeParams):
    """Which rejected events."""

    state: Literal["waiting", "sent", "discarded", "all"] = "waiting"
    """Only those that are waiting, were sent again, or were discarded."""
    code: str = Field("", max_length=64, examples=["conflict"])
    """Only those rejected for this reason."""


@reads(
    router,
    "/producers",
    figure_schemas.ProducerPage,
    tag="losses",
    problems=("range", "cursor", "limit"),
)
def list_producers(request: HttpRequest, params: Query[ProducerListParams]) -> dict[str, Any]:
    """List the producers active in a range, most recent first, with their sequence gaps.

    Totals count all producers, not only this page. A producer that sends again moves to the front.
    """
    of, now = params.read_range(), timezone.now()
    before = unseal("producers", params.cursor, _read_producer)
    page = producers(of.start, now, size=params.limit, before=before)
    shown = page.producers
    # A page after the last row has no totals, so they come from the first page.
    whole = page if shown or before is None else producers(of.start, now, size=1)
    last = shown[-1] if shown and page.has_more else None
    return {
        **bounds(of),
        "producer_count": whole.count,
        "heard_lately": whole.heard_lately,
        "gaps": [
            {"reason": gap.reason, "lost": gap.lost, "producers": gap.producers}
            for gap in gaps_between(of)
        ],
        "inbox": inbox_open_count(),
        "items": [
            {
                "producer_id": one.producer_id,
                "last_heard_at": one.last_heard_at.astimezone(UTC),
                "missing": one.missing,
                "given_up": one.given_up,
                "is_silent": one.is_silent,
            }
            for one in shown
        ],
        "next": last and seal("producers", last.last_heard_at.astimezone(UTC), last.producer_id),
    }


@reads(
    router,
    "/inbox",
    figure_schemas.InboxPage,
    tag="losses",
    problems=("range", "cursor", "limit"),
)
def list_inbox(request: HttpRequest, params: Query[InboxParams]) -> dict[str, Any]:
    """List rejected events, newest first, each with its reason and resolution."""
    wanted = InboxFilter(
        state="" if params.state == "waiting" else params.state,
        code=params.code.replace("\x00", "\ufffd"),
        **params.read_span()._asdict(),
    )
    before = unseal("inbox", params.cursor, lambda place: UUID("".join(place)))
    with_payloads = cast(ApiRequest, request).auth.sees_payloads
    page = inbox_page(wanted, before=before, size=params.limit, with_raw=with_payloads)
    return {
        "items": [
            {
                "id": row.id,
                "received_at": row.received_at.astimezone(UTC),
                "code": row.code,
                "message": row.message,
                "line": row.line,
                "raw_length": row.raw_length,
                "excerpt": None if row.excerpt is None else row.excerpt.decode(errors="replace"),
                "resolution": row.resolution,
                "resolved_at": row.resolved_at and row.resolved_at.astimezone(UTC),
                "resolved_by": row.resolved_by_name,
            }
            for row in page.rows
        ],
        "next": seal("inbox", page.older) if page.older else None,
        "withheld": not with_payloads,
    }


@reads(
    router,
    "/inbox/{uuid:line_id}",
    figure_schemas.InboxEntry,
    tag="losses",
    problems=("not_found",),
)
def read_inbox_line(request: HttpRequest, line_id: Path[UUID]) -> dict[str, Any]:
    """Get a rejected event with its full line."""
    line = inbox_line(line_id)
    if line is None:
        raise ProblemError("not_found", "Rejected event not found.")
    return entry_document(line, with_payloads=cast(ApiRequest, request).auth.sees_payloads)


def entry_document(line: RejectedEvent, *, with_payloads: bool) -> dict[str, Any]:
    """The members of `InboxEntry`."""
    raw = bytes(line.raw) if with_payloads else None
    text, encoded = None, None
    if raw is not None:
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            encoded = base64.b64encode(raw).decode()
    return {
        "id": line.id,
        "received_at": line.received_at.astimezone(UTC),
        "code": line.code,
        "message": line.message,
        "line": line.line,
        "raw_length": line.raw_length,
        "excerpt": None if raw is None else raw[:240].decode(errors="replace"),
        "resolution": line.resolution,
        "resolved_at": line.resolved_at and line.resolved_at.astimezone(UTC),
        "resolved_by": line.resolved_by_name,
        "batch_id": line.batch_id,
        "event_id": line.event_id,
        "raw": text,
        "raw_base64": encoded,
        "discard_reason": line.discard_reason,
        "withheld": not with_payloads,
    }


def _read_producer(place: list[str]) -> tuple[datetime, str]:
    at, *rest = place
    instant, producer_id = datetime.fromisoformat(at), "\n".join(rest)
    if instant.tzinfo is None or not BEGINNING <= instant <= END or "\x00" in producer_id:
        raise ValueError("no place in the list of producers")
    return instant.astimezone(UTC), producer_id
