"""Legal holds and erasures over the API, as on their pages.

An erasure needs a preview and a confirmation. Over the API the confirmation repeats number and
digest of the previewed calls, so a program cannot confirm what it has not read.
"""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field

from audit.models import Erasure, ErasureState, LegalHold
from audit.pages.settings.hold_forms import REASON_MAX, HoldForm
from audit.pages.show.api_query import parsed_terms
from audit.pages.show.router import router
from audit.retention import erasure, holds
from audit.retention.erasure_targets import CallsAlteredError, previewed_calls
from audit.retention.floor import FloorError
from audit.tasks.requested import erase_calls
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, Stripped, acts, checked
from tenants.api_reads import Answer, ListParams, Page, newest_first, reads, utc
from tenants.models import Scope
from tenants.scope import current_tenant_id


class Hold(Answer):
    """A legal hold: calls that match every member that is not null cannot be erased."""

    id: UUID
    name: str
    reason: str
    trace_id: str | None
    case_id: str | None
    tool_name: str | None
    since: datetime | None
    """First start of a call."""
    until: datetime | None
    """Exclusive."""
    set_at: datetime
    set_by: str
    released_at: datetime | None
    """Null while the hold is in force."""
    released_by: str | None
    release_reason: str | None


class HoldPage(Page[Hold]):
    """Holds, the newest first."""

    OLD_NAME = "holds"


class HoldBody(Body):
    """A hold to set. At least one member must select calls."""

    name: Stripped = Field(min_length=1, max_length=100)
    reason: Stripped = Field(min_length=1, max_length=REASON_MAX)
    """Name and reason become an entry of the ledger, which is never removed."""
    trace_id: str = ""
    case_id: str = ""
    tool_name: str = ""
    since: datetime | None = None
    until: datetime | None = None


class ReasonBody(Body):
    """The reason for an act."""

    reason: Stripped = Field(min_length=1, max_length=REASON_MAX)


class Preview(Answer):
    """The calls that an erasure's dry run found."""

    calls: int
    digest: str
    """SHA-256 of the calls' starts and ids; the confirmation repeats it."""


class ErasureDetail(Answer):
    """An erasure or its dry run."""

    id: UUID
    query: str
    state: Literal[
        "waiting", "counting", "counted", "confirmed", "erasing", "done", "cancelled", "failed"
    ]
    created_at: datetime
    created_by: str
    calls: int
    """Calls found so far that no hold covers."""
    held_calls: int
    """Calls that match and are kept, because a hold covers them."""
    events: int
    bytes: int
    preview: Preview | None
    """What a confirmation must repeat; null unless the erasure waits for one."""
    reason: str | None
    confirmed_at: datetime | None
    confirmed_by: str | None
    erased_calls: int
    erased_events: int
    erased_bytes: int
    finished_at: datetime | None
    problem: str
    """Why it failed; else empty."""


class ErasurePage(Page[ErasureDetail]):
    """Erasures, the newest first."""

    OLD_NAME = "erasures"


class ErasureBody(Body):
    """Which calls to count."""

    q: str = Field(examples=["case:42"])
    """A query as in the list of calls. It must not be empty."""


class ConfirmationBody(ReasonBody):
    """The confirmation of an erasure: what its preview said, and the reason."""

    calls: int = Field(ge=1)
    """`preview.calls` of the erasure."""
    digest: str
    """`preview.digest` of the erasure."""


@reads(router, "/holds", HoldPage, tag="retention", problems=("cursor",))
def list_holds(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the legal holds, the newest first, with those that were released."""
    stored = LegalHold.objects.for_tenant(current_tenant_id())
    return newest_first("holds", stored, params, _hold)


@acts(
    router,
    "POST",
    "/holds",
    Hold,
    scope=Scope.HOLDS,
    tag="retention",
    body=HoldBody,
    status=201,
)
def set_hold(act: Act) -> dict[str, Any]:
    """Protect calls from erasure and retention until the hold is released."""
    form = checked(HoldForm(act.read(HoldBody).model_dump()))
    hold = holds.set_hold(
        tenant=act.tenant,
        actor=act.actor,
        name=form.cleaned_data["name"],
        reason=form.cleaned_data["reason"],
        covered=form.covered,
        now=timezone.now(),
    )
    return _hold(hold)


@acts(
    router,
    "POST",
    "/holds/{uuid:hold_id}/release",
    Hold,
    scope=Scope.HOLDS,
    tag="retention",
    body=ReasonBody,
    problems=("not_found", "conflict", "needs_person"),
)
def release_hold(act: Act, hold_id: Path[UUID]) -> dict[str, Any]:
    """Release a hold. Retention erases expired data within an hour."""
    if not LegalHold.objects.for_tenant(act.tenant.pk).filter(id=hold_id).exists():
        raise ProblemError("not_found", "Hold not found.")
    act.refuse_program()
    reason = act.read(ReasonBody).reason
    hold = holds.release_hold(act.tenant, act.actor, hold_id, reason, timezone.now())
    if hold is None:
        raise ProblemError("conflict", "The hold was already released.")
    return _hold(hold)


@reads(router, "/erasures", ErasurePage, tag="retention", problems=("cursor",))
def list_erasures(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List erasures and their dry runs, the newest first."""
    stored = Erasure.objects.for_tenant(current_tenant_id())
    return newest_first("erasures", stored, params, lambda one: _erasure(one, preview=None))


@reads(
    router,
    "/erasures/{uuid:erasure_id}",
    ErasureDetail,
    tag="retention",
    problems=("not_found", "altered"),
)
def read_erasure(request: HttpRequest, erasure_id: Path[UUID]) -> dict[str, Any]:
    """Get an erasure with its progress, and the preview that a confirmation must repeat."""
    return _detail(_erasure_of(erasure_id))


@acts(
    router,
    "POST",
    "/erasures",
    ErasureDetail,
    scope=Scope.ERASE,
    tag="retention",
    body=ErasureBody,
    status=201,
    problems=("query",),
)
def start_erasure(act: Act) -> dict[str, Any]:
    """Count the calls that match a query. Nothing is erased before the confirmation."""
    query = parsed_terms(act.request, act.read(ErasureBody).q)
    started = erasure.start_erasure(act.tenant, act.actor, query, timezone.now())
    erase_calls.defer(tenant_id=str(act.tenant.pk), erasure_id=str(started.id))
    return _erasure(started, preview=None)


@acts(
    router,
    "POST",
    "/erasures/{uuid:erasure_id}/confirm",
    ErasureDetail,
    scope=Scope.ERASE,
    tag="retention",
    body=ConfirmationBody,
    problems=("not_found", "conflict", "altered", "needs_person"),
)
def confirm_erasure(act: Act, erasure_id: Path[UUID]) -> dict[str, Any]:
    """Erase the calls that the dry run counted, and no others. This cannot be undone.

    The body repeats number and digest of the preview. If they differ, nothing is erased.
    """
    stored = _erasure_of(erasure_id)
    act.refuse_program()
    body = act.read(ConfirmationBody)
    preview = _detail(stored)["preview"]
    if preview is None:
        raise ProblemError("conflict", "This erasure does not wait for a confirmation.")
    if preview != {"calls": body.calls, "digest": body.digest}:
        raise ProblemError("conflict", "This is not what the preview says. Nothing was erased.")
    try:
        is_confirmed = erasure.confirm_erasure(
            act.tenant, act.actor, erasure_id, body.reason, timezone.now()
        )
    except FloorError as error:
        raise ProblemError("needs_person", str(error)) from error
    if not is_confirmed:
        raise ProblemError("conflict", "This erasure does not wait for a confirmation.")
    erase_calls.defer(tenant_id=str(act.tenant.pk), erasure_id=str(erasure_id))
    return _detail(_erasure_of(erasure_id))


@acts(
    router,
    "POST",
    "/erasures/{uuid:erasure_id}/cancel",
    ErasureDetail,
    scope=Scope.ERASE,
    tag="retention",
    problems=("not_found",),
)
def cancel_erasure(act: Act, erasure_id: Path[UUID]) -> dict[str, Any]:
    """Stop an erasure or its dry run. What is already erased cannot be restored."""
    _erasure_of(erasure_id)
    erasure.cancel_erasure(act.tenant, act.actor, erasure_id, timezone.now())
    return _detail(_erasure_of(erasure_id))


def _erasure_of(pk: UUID) -> Erasure:
    stored = erasure.find_erasure(pk)
    if stored is None:
        raise ProblemError("not_found", "Erasure not found.")
    return stored


def _detail(stored: Erasure) -> dict[str, Any]:
    """An erasure with its preview. Raises ProblemError if the previewed calls were altered."""
    preview = None
    if stored.state == ErasureState.COUNTED and stored.call_count:
        try:
            preview = previewed_calls(stored)._asdict()
        except CallsAlteredError as error:
            raise ProblemError("altered", str(error)) from error
    return _erasure(stored, preview=preview)


def _erasure(one: Erasure, *, preview: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "id": one.id,
        "query": one.query,
        "state": one.state,
        "created_at": utc(one.created_at),
        "created_by": one.created_by,
        "calls": one.call_count,
        "held_calls": one.held_count,
        "events": one.event_count,
        "bytes": one.byte_count,
        "preview": preview,
        "reason": one.reason,
        "confirmed_at": one.confirmed_at and utc(one.confirmed_at),
        "confirmed_by": one.confirmed_by,
        "erased_calls": one.erased_calls,
        "erased_events": one.erased_events,
        "erased_bytes": one.erased_bytes,
        "finished_at": one.finished_at and utc(one.finished_at),
        "problem": one.problem,
    }


def _hold(one: LegalHold) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": one.name,
        "reason": one.reason,
        "trace_id": one.trace_id,
        "case_id": one.case_id,
        "tool_name": one.tool_name,
        "since": one.since and utc(one.since),
        "until": one.until and utc(one.until),
        "set_at": utc(one.set_at),
        "set_by": one.set_by,
        "released_at": one.released_at and utc(one.released_at),
        "released_by": one.released_by,
        "release_reason": one.release_reason,
    }
