"""What admins do with keys, members, invitations: each change with its entry in the audit log.

Pages, API and commands use these functions, so an act is recorded alike wherever it is done. All
need the tenant's scope.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from config.http.origin import own_url
from tenants.actions import Actor, name_of, record_action
from tenants.invitations import invite, revoke
from tenants.keys import create_key, revoke_key, rotate_key
from tenants.mail.outgoing import send_later
from tenants.mail.texts import Letter, harmless
from tenants.members import change_role, remove_member
from tenants.models import ApiKey, Invitation, Membership, Role, Scope, Tenant, User


@dataclass(frozen=True, slots=True)
class WantedKey:
    """A key to create."""

    name: str
    scopes: Sequence[Scope]
    purpose: str = ""
    owner: User | None = None
    expires_at: datetime | None = None
    allowed_addresses: Sequence[str] = ()
    text: str = ""
    """The key itself, if it exists already (`tenants.keys.new_key_text`)."""


def make_key(tenant: Tenant, actor: Actor, wanted: WantedKey) -> tuple[ApiKey, str]:
    """Create a key; returns it with its text, which cannot be shown again. Raises ValueError."""
    key, text = create_key(
        tenant,
        wanted.name,
        wanted.scopes,
        created_by=_user(actor),
        expires_at=wanted.expires_at,
        owner=wanted.owner,
        purpose=wanted.purpose,
        allowed_addresses=wanted.allowed_addresses,
        text=wanted.text,
    )
    more: dict[str, Any] = {
        "purpose": key.purpose,
        "owner": key.owner.get_username() if key.owner else None,
        "allowed_addresses": key.allowed_addresses,
    }
    given = {name: value for name, value in more.items() if value}
    record_action(tenant, actor, "key.create", str(key), scopes=key.scopes, rows=[key], **given)
    return key, text


def replace_key(
    tenant: Tenant,
    actor: Actor,
    old: ApiKey,
    *,
    overlap: timedelta,
    expires_at: datetime | None,
) -> tuple[ApiKey, str]:
    """Create a key that replaces another, which works for `overlap` more. Raises ValueError."""
    new, text = rotate_key(old, overlap=overlap, created_by=_user(actor), expires_at=expires_at)
    old.refresh_from_db()
    record_action(
        tenant,
        actor,
        "key.rotate",
        str(old),
        replaced_by=str(new),
        works_until=old.expires_at.isoformat() if old.expires_at else None,
        rows=[old, new],
    )
    return new, text


def end_key(tenant: Tenant, actor: Actor, key: ApiKey) -> None:
    """Revoke a key permanently."""
    revoke_key(key)
    record_action(tenant, actor, "key.revoke", str(key), rows=[key])


def invite_member(
    tenant: Tenant, actor: Actor, label: str, role: Role, *, email: str = ""
) -> tuple[Invitation, str]:
    """Invite a person; returns the invitation with the token of its link.

    With an address the link is mailed there and the token is empty: so who comes by the link has
    this address. Raises BoxError.
    """
    invitation, token = invite(tenant, label, role, created_by=_user(actor), email=email)
    mailed: dict[str, Any] = {"is_mailed": True} if email else {}
    record_action(
        tenant,
        actor,
        "member.invite",
        invitation.label,
        role=invitation.role,
        expires_at=invitation.expires_at.isoformat(),
        rows=[invitation],
        **mailed,
    )
    if not email:
        return invitation, token
    inviter, place, as_role = harmless(name_of(actor)), harmless(tenant.name), Role(role).label
    until = f"{invitation.expires_at:%Y-%m-%d %H:%M} UTC"
    letter = Letter(
        f"Invitation to {place} in Tooltrail",
        [f"{inviter} invites you to {place} in Tooltrail, as {as_role.lower()}."],
        own_url() + reverse("invitation_accept", args=[token]),
        "Open the invitation",
        [f"The link works once, until {until}. If you do not expect it, do nothing."],
    )
    send_later(email, letter, invitation.expires_at, tenant=tenant, about=invitation.label)
    return invitation, ""


def withdraw_invitation(tenant: Tenant, actor: Actor, invitation: Invitation) -> bool:
    """Revoke an invitation; False if it was accepted or revoked before."""
    if not revoke(invitation):
        return False
    record_action(
        tenant,
        actor,
        "member.uninvite",
        invitation.label,
        role=invitation.role,
        rows=[invitation],
    )
    return True


def give_role(tenant: Tenant, actor: Actor, member: Membership, role: Role) -> None:
    """Change a member's role. Raises LastAdminError."""
    before = member.role
    change_role(member, role)
    record_action(
        tenant,
        actor,
        "member.role",
        member.user.username,
        before=before,
        after=role.value,
        rows=[member],
    )


def end_membership(tenant: Tenant, actor: Actor, member: Membership) -> None:
    """Remove a member; the account and its other memberships stay. Raises LastAdminError."""
    remove_member(member)
    record_action(
        tenant, actor, "member.remove", member.user.username, role=member.role, rows=[member]
    )


def _user(actor: Actor) -> User | None:
    return actor if isinstance(actor, User) else None
