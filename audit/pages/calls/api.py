"""Calls: the list, one with its payload, and those that are open."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, cast
from uuid import UUID

import msgspec
from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field

from audit.archive.reading import has_archived, with_archived
from audit.exports.call_document import document, violation_members
from audit.log.payload import LogPayloadError, StoredEvent
from audit.pages.show import schemas
from audit.pages.show.api_query import parsed_query, within
from audit.pages.show.ranges import ListRangeParams
from audit.pages.show.reveal import RevealBody, record_reveal
from audit.pages.show.router import router
from audit.queries.call_events import read_call_events
from audit.queries.call_filter import OPEN, CallFilter
from audit.queries.call_list import CallPage, call_day, call_page, violations_of
from audit.queries.calls import (
    CallDetail,
    FirstViolation,
    call_detail,
    call_of_span,
    call_violations,
)
from audit.queries.cursor import Cursor, parse_cursor
from audit.queries.decisions import DecisionStep, decided_day, decisions_of_call
from audit.queries.listed_call import ListedCall
from audit.queries.open_calls import condition_of, overdue_ms
from audit.queries.open_list import open_tally, producers_heard
from audit.queries.withheld import without_message, without_messages
from config.http.problems import ProblemError
from tenants.actions import record_view
from tenants.api_acts import Act, acts
from tenants.api_auth import ApiRequest
from tenants.api_reads import Params, reads, seal, unseal
from tenants.keys import actor_of
from tenants.models import Scope

_MILLISECOND = timedelta(milliseconds=1)
_OF_DECISION = (
    *("decision", "by_kind", "by_id", "by_name", "requested_by", "definition_digest"),
    *("violation_count", "paths", "codes"),
)
_PROBLEMS = ("query", "range", "cursor", "limit")
_MORE = ("idempotency_key", "budget_tokens", "locale", "safety_mode")


class CallListParams(ListRangeParams):
    """Which calls."""

    q: str = Field("", examples=["tool:search state:error duration:>2s since:24h"])
    """A query as on the Calls page, with NOT, OR and parentheses. Days and times are UTC."""


class OpenCallParams(CallListParams):
    """Which open calls."""

    kind: Literal["open", "running", "overdue", "crashed", "orphan"] = "open"
    """All open calls or one kind of them. `orphan`: end events whose start has not arrived."""


class CallParams(Params):
    """Which of the calls of one id."""

    day: date | None = None
    """The UTC day the call started, if its id was used on several. Default: the newest call."""


class CallReadParams(CallParams):
    """Which of the calls of one id, and from where."""

    archive: bool = False
    """Read payloads that retention has removed from the log from the archive."""


class CallRevealBody(RevealBody):
    """Why the payload of a call is revealed."""

    day: date | None = None
    """The UTC day the call started, if its id was used on several. Default: the newest call."""
    archive: bool = False
    """Read payloads that retention has removed from the log from the archive."""


@reads(router, "/calls", schemas.CallPage, tag="calls", problems=_PROBLEMS)
def list_calls(request: HttpRequest, params: Query[CallListParams]) -> dict[str, Any]:
    """List calls, newest first. `q` is a query such as `tool:search state:error duration:>2s`.

    A filter without an index searches a bounded time range per request. `searched_until` is then
    its end. Such a page can have fewer than `limit` calls, or none, and not be the last.
    """
    page, calls = _page(request, parsed_query(request, params.q).wanted, params)
    violations = violations_of(calls)
    return {
        "items": [document(call, violations.get(call.invocation_id)) for call in calls],
        **_behind(request, page),
    }


@reads(router, "/open", schemas.OpenPage, tag="calls", problems=_PROBLEMS)
def list_open(request: HttpRequest, params: Query[OpenCallParams]) -> dict[str, Any]:
    """List open calls, newest first: running, overdue, or presumed crashed.

    A call is presumed crashed if its producer has been silent for 15 minutes and its timeout, if
    it has one, has passed. `q` filters as in the list of calls.
    """
    wanted = parsed_query(request, params.q).wanted
    is_all = params.kind == "open"
    wanted = wanted.also(*(("state", "open") if is_all else ("condition", params.kind)))
    now = timezone.now()
    page, calls = _page(request, wanted, params)
    heard = producers_heard(call.producer_id for call in calls if call.producer_id)
    violations = violations_of(calls)
    return {
        "tally": open_tally(now),
        "items": [
            {
                **document(call, violations.get(call.invocation_id)),
                **_open_state(call, heard.get(call.producer_id or ""), now),
            }
            for call in calls
        ],
        **_behind(request, page),
    }


@reads(
    router,
    "/calls/{uuid:invocation_id}",
    schemas.CallDetail,
    tag="calls",
    problems=("not_found",),
)
def read_call(
    request: HttpRequest, invocation_id: Path[UUID], params: Query[CallReadParams]
) -> dict[str, Any]:
    """Get a call with its violations and its payload: its events as the executor sent them.

    Payloads also need the scope `payloads`; without it, only time, size and ledger index of the
    events are returned. With `day`, the id of a span that was merged into another call returns
    that call. With `archive`, payloads that the log has no more are read from the archive.
    """
    call, identity = call_of(invocation_id, params.day), cast(ApiRequest, request).auth
    with_payloads = identity.sees_payloads
    if with_payloads and params.archive:
        _record_archived_view(identity.tenant_id, actor_of(identity), call)
    return _document(call, with_payloads=with_payloads, from_archive=params.archive)


@acts(
    router,
    "POST",
    "/calls/{uuid:invocation_id}/reveal",
    schemas.CallDetail,
    scope=Scope.REVEAL,
    tag="calls",
    body=CallRevealBody,
    problems=("not_found", "needs_person"),
)
def reveal_call(act: Act, invocation_id: Path[UUID]) -> dict[str, Any]:
    """Get a call with its payload, as an auditor does on its page. The ledger keeps the reason."""
    call = call_of(invocation_id, None)
    act.refuse_program()
    body = act.read(CallRevealBody)
    if body.day is not None:
        call = call_of(invocation_id, body.day)
    record_reveal(
        act.tenant,
        act.actor,
        "call.reveal",
        str(call.invocation_id),
        body.reason,
        tool=call.tool_name,
        day=f"{call.started_on}",
    )
    if body.archive:
        _record_archived_view(act.tenant.id, act.actor, call)
    return _document(call, with_payloads=True, from_archive=body.archive)


def call_of(invocation_id: UUID, day: date | None) -> CallDetail:
    """The call with this id, of a day or the newest. Raises ProblemError."""
    day = day or call_day(invocation_id, now=timezone.now()) or decided_day(invocation_id)
    call = call_detail(day, invocation_id) if day else None
    if call is None and day is not None and (place := call_of_span(day, invocation_id)):
        call = call_detail(*place)
    if call is None:
        raise ProblemError("not_found", "Call not found.")
    return call


def _record_archived_view(tenant_id: UUID, actor: str, call: CallDetail) -> None:
    """Record that payloads were read from the archive, as the call's page does."""
    record_view(
        tenant_id,
        actor,
        "call.view",
        str(call.invocation_id),
        apart="archive",
        tool=call.tool_name,
        day=f"{call.started_on}",
        archived=True,
    )


def _document(
    call: CallDetail, *, with_payloads: bool, from_archive: bool = False
) -> dict[str, Any]:
    violations = call_violations(call) if call.violation_count else []
    first = FirstViolation(violations[0].path, violations[0].code) if violations else None
    stored: Mapping[Any, StoredEvent] = {}
    log_error = None
    try:
        stored = read_call_events(call)
    except LogPayloadError as error:
        log_error = str(error)
    gone = [event.ledger_index for event in stored.values() if event.raw is None]
    archive = "available" if with_payloads and gone and has_archived(gone) else None
    archive_error = ""
    if archive and from_archive:
        stored, archive_error = with_archived(stored)
        archive = "failed" if archive_error else "read"
    shown: CallDetail = call if with_payloads else without_message(call)
    return {
        **document(shown, first),
        **{name: getattr(call, name) for name in _MORE},
        "violations": [
            {
                **violation_members(one, with_payloads=with_payloads),
                "found_by": one.found_by,
            }
            for one in violations
        ],
        "decisions": [_decision(step, with_payloads) for step in decisions_of_call(call)],
        **{
            kind: recorded(stored[kind], with_payloads=with_payloads) if kind in stored else None
            for kind in ("start", "interim", "end")
        },
        "log_error": log_error,
        "archive": archive,
        "archive_error": archive_error or None,
        "withheld": not with_payloads,
    }


def _decision(step: DecisionStep, with_payloads: bool) -> dict[str, Any]:
    one = step.decision
    return {
        "decided_at": one.decided_at.astimezone(UTC),
        **{name: getattr(one, name) for name in _OF_DECISION},
        "reason": one.reason if with_payloads else None,
        "waited_ms": None if step.waited_us is None else step.waited_us / 1000,
        "is_self_approved": step.is_self_approved,
    }


def recorded(event: StoredEvent, *, with_payloads: bool) -> dict[str, Any]:
    """An event of the log; what was sent is handed on byte by byte, as far as it is UTF-8."""
    raw = event.raw
    if raw is not None:
        raw = raw.decode(errors="replace").encode()
    return {
        "ledger_index": event.ledger_index,
        "received_at": event.received_at.astimezone(UTC),
        "size": len(event.raw or b""),
        "event": msgspec.Raw(raw) if raw is not None and with_payloads else None,
    }


def _page(
    request: HttpRequest, wanted: CallFilter, params: ListRangeParams
) -> tuple[CallPage, list[ListedCall]]:
    """A page, and its calls as far as the key sees them."""
    before, now = unseal("calls", params.cursor, _read_cursor), timezone.now()
    wanted = within(wanted, params.read_span(), now)
    page = call_page(wanted, now=now, before=before, size=params.limit)
    if cast(ApiRequest, request).auth.sees_payloads:
        return page, page.calls
    return page, without_messages(page.calls)


def _behind(request: HttpRequest, page: CallPage) -> dict[str, Any]:
    return {
        "next": seal("calls", page.older) if page.older else None,
        "searched_until": page.searched_until and page.searched_until.astimezone(UTC),
        "withheld": not cast(ApiRequest, request).auth.sees_payloads,
    }


def _read_cursor(place: list[str]) -> Cursor[UUID]:
    return parse_cursor("\n".join(place), UUID)


def _open_state(call: ListedCall, heard_at: datetime | None, now: datetime) -> dict[str, Any]:
    is_orphan = call.state not in OPEN
    return {
        "condition": "orphan" if is_orphan else condition_of(call, heard_at, now),
        "overdue_ms": None if is_orphan else overdue_ms(call, now),
        "producer_heard_at": heard_at and heard_at.astimezone(UTC),
    }
