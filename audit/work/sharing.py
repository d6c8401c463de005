"""Make, revoke and open share links. Each act is an entry of the ledger.

The link's token is the ids of tenant and link with a signature by the server's secret key. The
token is not stored, and a row without a valid token opens nothing. Openings are on record, at most
one entry a link, reader and minute, with how often the link had been opened before: readers must
not make the ledger grow. Readers without a sign-in are one reader.
"""

import base64
import binascii
from datetime import datetime, timedelta
from uuid import UUID

from django.core import signing
from django.db.models import F

from audit.models import ShareLink
from tenants.actions import Actor, name_of, record_action, record_view
from tenants.models import Tenant, new_id
from tenants.scope import current_tenant_id

LINKS_MAX = 1000
"""Maximum links of a tenant that are neither revoked nor expired."""
DAYS_MAX = 90
ANYBODY = "anybody with the link"
"""The name in the audit log of readers without a sign-in."""

_signer = signing.Signer(salt="tooltrail.share-link", sep=".")


class TooManyLinksError(Exception):
    """The tenant has the maximum of links that open."""


def token_of(link: ShareLink) -> str:
    """The part of the link's address that opens it."""
    ids = base64.urlsafe_b64encode(link.tenant_id.bytes + link.id.bytes)
    return _signer.sign(ids.decode().rstrip("="))


def read_token(token: str) -> tuple[UUID, UUID] | None:
    """The ids of tenant and link; None if this server did not sign it."""
    try:
        ids = base64.urlsafe_b64decode(_signer.unsign(token) + "=")
    except (signing.BadSignature, binascii.Error, ValueError):
        return None
    return (UUID(bytes=ids[:16]), UUID(bytes=ids[16:])) if len(ids) == 32 else None


def make_link(
    tenant: Tenant,
    actor: Actor,
    kind: str,
    address: str,
    *,
    lasts: timedelta,
    is_anonymous: bool,
    now: datetime,
) -> ShareLink:
    """Make a link to a page. Raises TooManyLinksError. Needs the scope."""
    links = ShareLink.objects.for_tenant(tenant.id)
    if links.filter(revoked_at=None, expires_at__gt=now).count() >= LINKS_MAX:
        raise TooManyLinksError(f"A tenant can have at most {LINKS_MAX:,} links that open.")
    link = ShareLink.objects.create(
        tenant_id=tenant.id,
        id=new_id(),
        kind=kind,
        address=address,
        is_anonymous=is_anonymous,
        created_at=now,
        created_by=name_of(actor),
        expires_at=now + lasts,
        opened_count=0,
    )
    record_action(
        tenant,
        actor,
        "share.create",
        str(link.id),
        rows=[link],
        kind=kind,
        page=_page_of(link),
        expires_at=link.expires_at.isoformat(),
        is_anonymous=is_anonymous,
    )
    return link


def find_link(pk: UUID) -> ShareLink | None:
    """The tenant's link with this id, locked until the scope ends; None without one."""
    links = ShareLink.objects.for_tenant(current_tenant_id()).select_for_update()
    return links.filter(id=pk).first()


def is_open(link: ShareLink, now: datetime) -> bool:
    """Whether the link is neither revoked nor expired."""
    return link.revoked_at is None and now < link.expires_at


def revoke_link(tenant: Tenant, actor: Actor, link: ShareLink, now: datetime) -> bool:
    """Close a link for good. Returns False if it is revoked already. Needs the scope."""
    if link.revoked_at is not None:
        return False
    link.revoked_at, link.revoked_by = now, name_of(actor)
    link.save(update_fields=["revoked_at", "revoked_by"])
    record_action(tenant, actor, "share.revoke", str(link.id), rows=[link], kind=link.kind)
    return True


def allow_payloads(tenant: Tenant, actor: Actor, link: ShareLink, reason: str) -> bool:
    """Let a link show payloads. Returns False if it does already. Needs the scope."""
    if link.payloads_by is not None:
        return False
    link.payloads_by, link.payloads_reason = name_of(actor), reason
    link.save(update_fields=["payloads_by", "payloads_reason"])
    record_action(
        tenant,
        actor,
        "share.payloads",
        str(link.id),
        rows=[link],
        kind=link.kind,
        page=_page_of(link),
        reason=reason,
    )
    return True


def note_opening(link: ShareLink, reader: Actor, now: datetime) -> None:
    """Count an opening, and record it at most once a reader and minute. Needs the scope."""
    links = ShareLink.objects.for_tenant(link.tenant_id).filter(id=link.id)
    links.update(opened_count=F("opened_count") + 1, opened_at=now)
    record_view(
        link.tenant_id,
        reader,
        "share.open",
        str(link.id),
        kind=link.kind,
        page=_page_of(link),
        opened_before=link.opened_count,
    )


def _page_of(link: ShareLink) -> str:
    """The address without parameters: a query may name a person, and the ledger never forgets."""
    return link.address.partition("?")[0]
