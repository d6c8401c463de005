"""Share links over the API."""

from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query
from pydantic import Field

from audit.models import ShareLink
from audit.pages.sharing.targets import InvalidTargetError, UnknownTargetError, read_target
from audit.pages.sharing.views import url_of
from audit.pages.show.reveal import RevealBody
from audit.pages.show.router import router
from audit.work.sharing import (
    DAYS_MAX,
    TooManyLinksError,
    allow_payloads,
    find_link,
    is_open,
    make_link,
    revoke_link,
)
from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, acts, invalid
from tenants.api_reads import Answer, ListParams, Page, newest_first, reads, utc
from tenants.models import Scope
from tenants.scope import current_tenant_id


class OneLink(Answer):
    """A link to a page, without what opens it."""

    id: UUID
    kind: Literal["call", "trace", "chart", "report"]
    address: str
    """Path and parameters of the page. A range has instants."""
    is_anonymous: bool
    """Whether it opens without a sign-in, if the tenant allows that."""
    is_open: bool
    """Whether it is neither revoked nor expired."""
    created_at: datetime
    created_by: str
    expires_at: datetime
    payloads_by: str | None
    """Who allowed it to show payloads; null: it shows none."""
    payloads_reason: str | None
    revoked_at: datetime | None
    revoked_by: str | None
    opened_count: int
    opened_at: datetime | None
    """The last time."""


class NewLink(OneLink):
    """A new link. Who has `url` can open it."""

    url: str


class LinkPage(Page[OneLink]):
    """Share links, newest first."""


class LinkBody(Body):
    """What is shared, how long, and for whom."""

    address: str = Field(examples=["/latency/?range=24h&tool=search"])
    """Path and parameters of a page: a call, a trace, a report, or figures of a range. A range up
    to now becomes instants.
    """
    days: int = Field(7, ge=1, le=DAYS_MAX)
    """After how many days it expires."""
    is_anonymous: bool = False
    """Whether it opens without a sign-in. The tenant must allow that."""


@reads(router, "/share-links", LinkPage, tag="sharing", problems=("cursor", "limit"))
def list_share_links(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List share links, newest first, without what opens them."""
    links, now = ShareLink.objects.for_tenant(current_tenant_id()), timezone.now()
    return newest_first("share-links", links, params, lambda one: _link(one, now))


@acts(
    router,
    "POST",
    "/share-links",
    NewLink,
    scope=Scope.OPERATE,
    tag="sharing",
    body=LinkBody,
    status=201,
    problems=("not_found", "conflict"),
)
def create_share_link(act: Act) -> dict[str, Any]:
    """Make a link to a page. Its `url` is in this answer only."""
    body, now = act.read(LinkBody), timezone.now()
    try:
        target = read_target(body.address, now, UTC)
    except UnknownTargetError as error:
        raise ProblemError("not_found", "No page of this address can be shared.") from error
    except InvalidTargetError as error:
        raise invalid("address", str(error)) from error
    if body.is_anonymous and not act.tenant.anonymous_links:
        raise invalid("is_anonymous", "The tenant does not allow links without a sign-in.")
    try:
        link = make_link(
            act.tenant,
            act.actor,
            target.kind,
            target.address,
            lasts=timedelta(days=body.days),
            is_anonymous=body.is_anonymous,
            now=now,
        )
    except TooManyLinksError as error:
        raise ProblemError("conflict", str(error)) from error
    return {**_link(link, now), "url": url_of(link, act.request)}


@acts(
    router,
    "POST",
    "/share-links/{uuid:link_id}/revoke",
    OneLink,
    scope=Scope.OPERATE,
    tag="sharing",
    problems=("not_found",),
)
def revoke_share_link(act: Act, link_id: Path[UUID]) -> dict[str, Any]:
    """Close a link for good."""
    link, now = _find(link_id), timezone.now()
    revoke_link(act.tenant, act.actor, link, now)
    return _link(link, now)


@acts(
    router,
    "POST",
    "/share-links/{uuid:link_id}/payloads",
    OneLink,
    scope=Scope.REVEAL,
    tag="sharing",
    body=RevealBody,
    problems=("not_found", "needs_person"),
)
def allow_link_payloads(act: Act, link_id: Path[UUID]) -> dict[str, Any]:
    """Let a link show payloads. The ledger keeps the reason."""
    link = _find(link_id)
    act.refuse_program()
    allow_payloads(act.tenant, act.actor, link, act.read(RevealBody).reason)
    return _link(link, timezone.now())


def _find(link_id: UUID) -> ShareLink:
    link = find_link(link_id)
    if link is None:
        raise ProblemError("not_found", "Share link not found.")
    return link


def _link(link: ShareLink, now: datetime) -> dict[str, Any]:
    members = {name: getattr(link, name) for name in OneLink.model_fields if name != "is_open"}
    instants = ("created_at", "expires_at", "revoked_at", "opened_at")
    return {
        **members,
        **{name: utc(members[name]) for name in instants if members[name] is not None},
        "is_open": is_open(link, now),
    }
