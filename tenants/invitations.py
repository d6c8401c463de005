"""Invitations: how a person becomes a member of a tenant.

An admin makes a link that can be accepted once, with an existing account or a new one whose
password only that person knows. So nobody becomes a member without consent. An admin cannot add
an account by its name alone, because an account of that name may be another person's.

The link's last part is a token `<tenant id>_<invitation id>_<secret>`. It contains the tenant's
id, because the tenant's scope must be open before the invitation is looked up. Only the SHA-256
of the secret is stored: the secret has 256 random bits, so a slow hash would add no protection.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from tenants.actions import THE_SERVER, record_action
from tenants.members import add_member
from tenants.models import Invitation, Membership, Role, Tenant, User

VALID_FOR = timedelta(days=7)
KEPT_FOR = timedelta(days=30)
"""How long an expired invitation is kept, so that its page can say why the link does not work."""

_BY_AN_ADMIN = Q(created_by=None) | Exists(
    Membership.objects.filter(
        tenant_id=OuterRef("tenant_id"), user_id=OuterRef("created_by_id"), role=Role.ADMIN
    )
)
_SECRET_BYTES = 32
_TOKEN = re.compile(r"([0-9a-f]{32})_([0-9a-f]{32})_([0-9A-Za-z_-]{43})")


class InvitationOverError(Exception):
    """The invitation cannot be accepted any more; the message says why."""


@dataclass(frozen=True, slots=True)
class Token:
    """The parsed token of a link."""

    tenant_id: UUID
    invitation_id: UUID
    secret: str

    def find(self, *, for_update: bool = False) -> Invitation | None:
        """The token's invitation, open or not; None if there is none. Needs the tenant's scope."""
        invitations = Invitation.objects.select_related("tenant", "created_by")
        if for_update:  # of two requests with the same link, the second waits and gets "accepted"
            invitations = invitations.select_for_update(of=("self",))
        invitation = invitations.filter(tenant_id=self.tenant_id, pk=self.invitation_id).first()
        if invitation is None or not hmac.compare_digest(
            _sha256(self.secret), invitation.token_sha256
        ):
            return None
        return invitation


def read_token(text: str) -> Token | None:
    """Parse a token; None if the text is not a token."""
    match = _TOKEN.fullmatch(text)
    return Token(UUID(match[1]), UUID(match[2]), match[3]) if match else None


def invite(
    tenant: Tenant, label: str, role: Role, *, created_by: User | None = None, email: str = ""
) -> tuple[Invitation, str]:
    """Store a new invitation and return it with its token, which cannot be shown again.

    `label` is the admin's description of the invited person, `email` where the link is mailed.
    Needs the tenant's scope. Deletes invitations that expired more than `KEPT_FOR` ago.
    """
    now = timezone.now()
    _delete_old(tenant, now)
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    invitation = Invitation.objects.create(
        tenant=tenant,
        label=label,
        role=role,
        email=email,
        token_sha256=_sha256(secret),
        created_by=created_by,
        expires_at=now + VALID_FOR,
    )
    return invitation, f"{tenant.pk.hex}_{invitation.pk.hex}_{secret}"


def check_open(invitation: Invitation, now: datetime) -> None:
    """Raise InvitationOverError unless it can still be accepted. Needs the tenant's scope.

    Invitations of a former admin are closed: otherwise that person could return by a kept link.
    """
    if invitation.accepted_at is not None:
        raise InvitationOverError("It was already accepted. A link works once.")
    if invitation.revoked_at is not None:
        raise InvitationOverError("An admin revoked it.")
    if invitation.expires_at <= now:
        raise InvitationOverError(f"It has expired. A link is valid for {VALID_FOR.days} days.")
    if not _of(invitation).filter(_BY_AN_ADMIN).exists():
        raise InvitationOverError("The admin who created it is no longer an admin.")


def accept(invitation: Invitation, user: User) -> Membership:
    """Make `user` a member. Needs the tenant's scope and the invitation locked (`for_update`).

    Raises InvitationOverError, and AlreadyMemberError, which leaves the invitation open.
    """
    now = timezone.now()
    check_open(invitation, now)
    membership = add_member(invitation.tenant, user, Role(invitation.role))
    _of(invitation).update(accepted_at=now)
    user.last_tenant_id = invitation.tenant_id
    user.save(update_fields=["last_tenant_id"])
    return membership


def revoke(invitation: Invitation) -> bool:
    """Revoke an invitation; False if it was accepted or revoked before."""
    is_open = _of(invitation).filter(accepted_at=None, revoked_at=None)
    return is_open.update(revoked_at=timezone.now()) == 1


def open_invitations(tenant: Tenant, now: datetime) -> list[Invitation]:
    """Invitations that can still be accepted, newest first. Needs the tenant's scope."""
    invitations = Invitation.objects.filter(
        _BY_AN_ADMIN, tenant=tenant, accepted_at=None, revoked_at=None, expires_at__gt=now
    )
    return list(invitations.select_related("created_by").order_by("-created_at"))


def _delete_old(tenant: Tenant, now: datetime) -> None:
    old = Invitation.objects.filter(tenant=tenant, expires_at__lt=now - KEPT_FOR)
    ids = list(old.values_list("pk", flat=True))
    if ids:
        Invitation.objects.filter(tenant=tenant, pk__in=ids).delete()
        rows = [Invitation(pk=pk) for pk in ids]
        subject = f"{len(ids)} expired invitations"
        record_action(tenant, THE_SERVER, "member.forget-invitations", subject, rows=rows)


def _of(invitation: Invitation) -> QuerySet[Invitation]:
    return Invitation.objects.filter(tenant_id=invitation.tenant_id, pk=invitation.pk)


def _sha256(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
