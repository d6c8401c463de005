"""Members and invitations over the API, for keys with the scope `admin`."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from ninja import Path, Query, Router
from pydantic import Field

from config.http.problems import ProblemError
from tenants.admin_acts import (
    end_membership,
    give_role,
    invite_member,
    withdraw_invitation,
)
from tenants.api_acts import Act, Body, Stripped, acts, invalid
from tenants.api_auth import tenant_of
from tenants.api_reads import Answer, ListParams, Page, paged, reads, seal, unseal, utc
from tenants.invitations import open_invitations
from tenants.mail.outgoing import is_on, may_mail
from tenants.members import LastAdminError, people_of
from tenants.models import Invitation, Membership, Role, Scope
from tenants.passwords.forms import address_field

router = Router()

RoleName = Literal["viewer", "editor", "auditor", "admin"]


class Member(Answer):
    """A member of the tenant."""

    id: UUID
    user: str
    role: RoleName
    since: datetime


class MemberPage(Page[Member]):
    """Members by user name."""

    OLD_NAME = "members"


class RoleBody(Body):
    """A member's new role."""

    role: RoleName


class OpenInvitation(Answer):
    """An invitation without its link."""

    id: UUID
    label: str
    role: RoleName
    created_at: datetime
    created_by: str | None
    expires_at: datetime
    email: str
    """Where the link was mailed; empty: it was handed over."""


class NewInvitation(OpenInvitation):
    """An invitation that was just created, with its link."""

    url: str
    """The only answer with the link: only a hash is stored. It can be accepted once. Empty if it is
    mailed."""


class InvitationPage(Page[OpenInvitation]):
    """Invitations that can still be accepted, the newest first."""

    OLD_NAME = "invitations"


class InvitationBody(Body):
    """Who is invited, and for which role."""

    label: Stripped = Field(min_length=1, max_length=150)
    """A name or an address, for you and the audit log."""
    role: RoleName = "viewer"
    email: Stripped = Field("", max_length=254)
    """Where the server mails the link, if it sends mails. Empty: the answer has the link."""


@reads(router, "/members", MemberPage, scope=Scope.ADMIN, tag="administration")
def list_members(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the tenant's members with their roles, by user name."""
    after = unseal("members", params.cursor, lambda place: "\n".join(place).replace("\0", ""))
    members = people_of(tenant_of(request))
    members = members.filter(user__username__gt=after) if after else members
    page = list(members.order_by("user__username")[: params.limit + 1])
    shown = page[: params.limit]
    is_more = len(page) > params.limit
    return {
        "items": [_member(one) for one in shown],
        "next": seal("members", shown[-1].user.username) if is_more else None,
    }


@acts(
    router,
    "PUT",
    "/members/{uuid:member_id}/role",
    Member,
    scope=Scope.ADMIN,
    tag="administration",
    body=RoleBody,
    problems=("not_found", "conflict"),
)
def change_member_role(act: Act, member_id: Path[UUID]) -> dict[str, Any]:
    """Give a member another role. The last admin stays one."""
    member = _find_member(act, member_id)
    role = Role(act.read(RoleBody).role)
    if member.role != role:
        try:
            give_role(act.tenant, act.actor, member, role)
        except LastAdminError as error:
            raise _last_admin(member) from error
    return _member(member)


@acts(
    router,
    "POST",
    "/members/{uuid:member_id}/remove",
    Member,
    scope=Scope.ADMIN,
    tag="administration",
    problems=("not_found", "conflict"),
)
def remove_member(act: Act, member_id: Path[UUID]) -> dict[str, Any]:
    """Remove a member. The account stays, and so does the last admin."""
    member = _find_member(act, member_id)
    try:
        end_membership(act.tenant, act.actor, member)
    except LastAdminError as error:
        raise _last_admin(member) from error
    return _member(member)


@reads(
    router,
    "/invitations",
    InvitationPage,
    scope=Scope.ADMIN,
    tag="administration",
    problems=("cursor", "limit"),
)
def list_invitations(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the invitations that can still be accepted."""
    invitations = open_invitations(tenant_of(request), timezone.now())
    shown, after = paged(
        "invitations",
        invitations,
        params,
        lambda one: f"{utc(one.created_at).isoformat()} {one.pk}",
        is_descending=True,
    )
    return {"items": [_invitation(one) for one in shown], "next": after}


@acts(
    router,
    "POST",
    "/invitations",
    NewInvitation,
    scope=Scope.ADMIN,
    tag="administration",
    body=InvitationBody,
    status=201,
)
def create_invitation(act: Act) -> dict[str, Any]:
    """Invite a person. The answer has the link, by which one person joins with their account."""
    body = act.read(InvitationBody)
    _check_address(act, body.email)
    invitation, token = invite_member(
        act.tenant, act.actor, body.label, Role(body.role), email=body.email
    )
    if not token:
        return {**_invitation(invitation), "url": ""}
    address = reverse("invitation_accept", args=[token])
    return {**_invitation(invitation), "url": act.request.build_absolute_uri(address)}


def _check_address(act: Act, address: str) -> None:
    if not address:
        return
    if not is_on():
        raise invalid("email", "This server sends no mail.")
    try:
        address_field().clean(address)
    except ValidationError as error:
        raise invalid("email", " ".join(error.messages)) from error
    if not may_mail(act.request, address):
        raise invalid("email", "Too many mails were sent. Try again in an hour.")


@acts(
    router,
    "POST",
    "/invitations/{uuid:invitation_id}/revoke",
    OpenInvitation,
    scope=Scope.ADMIN,
    tag="administration",
    problems=("not_found", "conflict"),
)
def revoke_invitation(act: Act, invitation_id: Path[UUID]) -> dict[str, Any]:
    """Revoke an invitation that was not accepted."""
    invitations = Invitation.objects.filter(tenant=act.tenant).select_related("created_by")
    invitation = invitations.filter(pk=invitation_id).first()
    if invitation is None:
        raise ProblemError("not_found", "Invitation not found.")
    if not withdraw_invitation(act.tenant, act.actor, invitation):
        raise ProblemError("conflict", "The invitation is no longer open.")
    return _invitation(invitation)


def _find_member(act: Act, pk: UUID) -> Membership:
    member = people_of(act.tenant).filter(pk=pk).first()
    if member is None:
        raise ProblemError("not_found", "Member not found.")
    return member


def _last_admin(member: Membership) -> ProblemError:
    return ProblemError(
        "conflict", f"{member.user.username} is the last admin, or the one named for SSO only."
    )


def _member(one: Membership) -> dict[str, Any]:
    return {
        "id": one.pk,
        "user": one.user.username,
        "role": one.role,
        "since": utc(one.created_at),
    }


def _invitation(one: Invitation) -> dict[str, Any]:
    return {
        "id": one.pk,
        "label": one.label,
        "role": one.role,
        "created_at": utc(one.created_at),
        "created_by": one.created_by and one.created_by.get_username(),
        "expires_at": utc(one.expires_at),
        "email": one.email,
    }
