"""What people do with rejected events, over the API: send again, discard, reveal."""

from typing import Any
from uuid import UUID

from django.utils import timezone
from ninja import Path
from pydantic import Field

from audit.models import RejectedEvent
from audit.pages.inbox.api import entry_document
from audit.pages.show import figure_schemas
from audit.pages.show.ranges import since
from audit.pages.show.reveal import RevealBody, record_reveal
from audit.pages.show.router import router
from audit.queries.inbox import InboxFilter, inbox_line
from audit.work import inbox
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, Stripped, acts
from tenants.api_reads import Answer
from tenants.models import Scope

REASON_MAX = 500


class SendBody(Body):
    """What is sent."""

    line: str | None = None
    """The event as edited, one JSON object. Default: as it was received."""


class DiscardBody(Body):
    """Why a rejected event is discarded."""

    reason: Stripped = Field(min_length=1, max_length=REASON_MAX)


class DiscardAllBody(DiscardBody):
    """Which waiting events are discarded, and why."""

    code: str = Field(min_length=1, max_length=64, examples=["conflict"])
    """Those that were rejected for this reason."""
    until: UUID
    """Id of the newest event that was seen: later ones stay."""
    range: str = Field("", examples=["24h"])
    """How far back they arrived. Default: any time."""


class Discarded(Answer):
    """How many events were discarded."""

    discarded: int


@acts(
    router,
    "POST",
    "/inbox/{uuid:line_id}/send",
    figure_schemas.InboxEntry,
    scope=Scope.OPERATE,
    tag="losses",
    body=SendBody,
    problems=("not_found", "conflict"),
)
def send_inbox_line(act: Act, line_id: Path[UUID]) -> dict[str, Any]:
    """Send a rejected event again. `resolution` of the answer says what became of it."""
    _line_of(line_id)
    edited = act.read(SendBody).line
    try:
        inbox.send_again(act.tenant, act.actor, line_id, edited, timezone.now())
    except inbox.DealtWithError as error:
        raise _dealt_with() from error
    except inbox.NotSentError as error:
        raise ProblemError("conflict", str(error)) from error
    return _entry(act, line_id)


@acts(
    router,
    "POST",
    "/inbox/{uuid:line_id}/discard",
    figure_schemas.InboxEntry,
    scope=Scope.OPERATE,
    tag="losses",
    body=DiscardBody,
    problems=("not_found", "conflict"),
)
def discard_inbox_line(act: Act, line_id: Path[UUID]) -> dict[str, Any]:
    """Discard a rejected event. It stays in the list of discarded ones."""
    _line_of(line_id)
    reason = act.read(DiscardBody).reason
    try:
        inbox.discard(act.tenant, act.actor, line_id, reason, timezone.now())
    except inbox.DealtWithError as error:
        raise _dealt_with() from error
    return _entry(act, line_id)


@acts(
    router,
    "POST",
    "/inbox/discard",
    Discarded,
    scope=Scope.OPERATE,
    tag="losses",
    body=DiscardAllBody,
    problems=("range",),
)
def discard_inbox_lines(act: Act) -> dict[str, Any]:
    """Discard the waiting events of one code, with one reason: up to 10,000, the oldest first."""
    body, now = act.read(DiscardAllBody), timezone.now()
    wanted = InboxFilter(code=body.code, since=since(body.range, now))
    count = inbox.discard_all(
        tenant=act.tenant,
        actor=act.actor,
        wanted=wanted,
        until=body.until,
        reason=body.reason,
        now=now,
    )
    return {"discarded": count}


@acts(
    router,
    "POST",
    "/inbox/{uuid:line_id}/reveal",
    figure_schemas.InboxEntry,
    scope=Scope.REVEAL,
    tag="losses",
    body=RevealBody,
    problems=("not_found", "needs_person"),
)
def reveal_inbox_line(act: Act, line_id: Path[UUID]) -> dict[str, Any]:
    """Get a rejected event with its full line. The ledger keeps the reason."""
    line = _line_of(line_id)
    act.refuse_program()
    reason = act.read(RevealBody).reason
    record_reveal(act.tenant, act.actor, "inbox.reveal", str(line_id), reason, code=line.code)
    return entry_document(line, with_payloads=True)


def _line_of(pk: UUID) -> RejectedEvent:
    line = inbox_line(pk)
    if line is None:
        raise ProblemError("not_found", "Rejected event not found.")
    return line


def _entry(act: Act, pk: UUID) -> dict[str, Any]:
    return entry_document(_line_of(pk), with_payloads=act.identity.sees_payloads)


def _dealt_with() -> ProblemError:
    return ProblemError("conflict", "This event was already sent again or discarded.")
