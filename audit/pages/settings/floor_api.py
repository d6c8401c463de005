"""The retention floor over the API, as on its page."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field

from audit.models import FloorRequest
from audit.pages.settings.acts import setting_of
from audit.pages.settings.hold_forms import REASON_MAX
from audit.pages.settings.retention_api import ReasonBody
from audit.pages.show.router import router
from audit.retention import floor
from audit.retention.floor import FLOOR_DAYS_MAX, FLOOR_DAYS_MIN, FloorError
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, Stripped, acts
from tenants.api_auth import tenant_of
from tenants.api_reads import Answer, ListParams, Page, reads, seal, unseal, utc
from tenants.models import Role, Scope, Tenant


class RetentionFloor(Answer):
    """The number of days below which no single admin can set retention."""

    floor_days: int | None
    """Null: there is no floor."""


class FloorLowering(Answer):
    """A request to lower the retention floor, or to remove it."""

    id: UUID
    state: Literal["waiting", "approved", "refused", "expired"]
    from_days: int
    """The floor when it was requested."""
    to_days: int | None
    """The lower one; null: none."""
    reason: str
    requested_at: datetime
    requested_by: str
    expires_at: datetime
    """From then on nobody can approve it."""
    decided_at: datetime | None
    """Null while it waits."""
    decided_by: str | None
    decision_reason: str | None


class FloorLoweringPage(Page[FloorLowering]):
    """Requests to lower the floor, the newest first."""


class RaiseBody(Body):
    """A floor, or a higher one."""

    floor_days: int = Field(ge=FLOOR_DAYS_MIN, le=FLOOR_DAYS_MAX)
    reason: Stripped = Field(min_length=1, max_length=REASON_MAX)
    """It becomes an entry of the ledger, which is never removed."""


class LowerBody(Body):
    """A lower floor, or none."""

    to_days: int | None = Field(ge=FLOOR_DAYS_MIN, le=FLOOR_DAYS_MAX)
    """Null: no floor."""
    reason: Stripped = Field(min_length=1, max_length=REASON_MAX)
    """It becomes an entry of the ledger, which is never removed."""


@reads(router, "/floor", RetentionFloor, tag="retention")
def read_floor(request: HttpRequest) -> dict[str, Any]:
    """Get the retention floor."""
    return _floor(tenant_of(request))


@acts(
    router,
    "POST",
    "/floor",
    RetentionFloor,
    scope=Scope.ADMIN,
    tag="retention",
    body=RaiseBody,
    problems=("conflict",),
)
def raise_floor(act: Act) -> dict[str, Any]:
    """Set the retention floor, or a higher one. Retention must be as long already."""
    body = act.read(RaiseBody)
    with _conflicts():
        floor.raise_floor(act.tenant, act.actor, body.floor_days, body.reason)
    return _floor(act.tenant)


@reads(router, "/floor/requests", FloorLoweringPage, tag="retention", problems=("cursor",))
def list_floor_requests(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the requests to lower the floor, the newest first."""
    stored = floor.all_requests()
    if (before := unseal("floor_requests", params.cursor, lambda at: UUID(at[0]))) is not None:
        stored = stored.filter(id__lt=before)
    page = list(stored[: params.limit + 1])
    shown = page[: params.limit]
    return {
        "items": [_request(one) for one in shown],
        "next": seal("floor_requests", shown[-1].id) if len(page) > params.limit else None,
    }


@acts(
    router,
    "POST",
    "/floor/requests",
    FloorLowering,
    scope=Scope.ADMIN,
    tag="retention",
    body=LowerBody,
    status=201,
    problems=("conflict", "no_owner", "needs_person"),
)
def request_lower_floor(act: Act) -> dict[str, Any]:
    """Request a lower floor, or none, in the name of the key's owner, who made the key."""
    person = act.person(Role.ADMIN)
    body = act.read(LowerBody)
    with _conflicts():
        made = floor.request_lower(act.tenant, person, body.to_days, body.reason, timezone.now())
    return _request(made)


@acts(
    router,
    "POST",
    "/floor/requests/{uuid:request_id}/approve",
    FloorLowering,
    scope=Scope.ADMIN,
    tag="retention",
    body=ReasonBody,
    problems=("not_found", "conflict", "no_owner", "needs_person"),
)
def approve_floor_request(act: Act, request_id: Path[UUID]) -> dict[str, Any]:
    """Approve a request of another person, in the name of the key's owner, who made the key."""
    _known(request_id)
    person, reason = act.person(Role.ADMIN), act.read(ReasonBody).reason
    with _conflicts():
        return _request(floor.approve(act.tenant, person, request_id, reason, timezone.now()))


@acts(
    router,
    "POST",
    "/floor/requests/{uuid:request_id}/refuse",
    FloorLowering,
    scope=Scope.ADMIN,
    tag="retention",
    body=ReasonBody,
    problems=("not_found", "conflict", "no_owner", "needs_person"),
)
def refuse_floor_request(act: Act, request_id: Path[UUID]) -> dict[str, Any]:
    """Refuse a request, or withdraw one's own."""
    _known(request_id)
    person, reason = act.person(Role.ADMIN), act.read(ReasonBody).reason
    with _conflicts():
        return _request(floor.refuse(act.tenant, person, request_id, reason, timezone.now()))


@contextmanager
def _conflicts() -> Iterator[None]:
    try:
        yield
    except FloorError as error:
        raise ProblemError("conflict", str(error)) from error


def _known(pk: UUID) -> None:
    if floor.find_request(pk) is None:
        raise ProblemError("not_found", "Request not found.")


def _floor(tenant: Tenant) -> dict[str, Any]:
    return {"floor_days": setting_of(tenant).floor_days}


def _request(one: FloorRequest) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": one.state,
        "from_days": one.from_days,
        "to_days": one.to_days,
        "reason": one.reason,
        "requested_at": utc(one.requested_at),
        "requested_by": one.requested_by,
        "expires_at": utc(one.expires_at),
        "decided_at": one.decided_at and utc(one.decided_at),
        "decided_by": one.decided_by,
        "decision_reason": one.decision_reason,
    }
