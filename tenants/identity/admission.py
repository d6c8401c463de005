"""Whom a provider lets in: members are made, changed and ended as their groups say at a sign-in.

A membership that a provider made is its own: its role is read again at every sign-in. Others are
never changed here: people who had an account are invited, and may connect it (`tenants.identity`).
Opens the tenant's scope, so no scope may be open.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.db import IntegrityError, transaction

from tenants.actions import Actor, record_action, record_view
from tenants.admin_acts import end_membership, give_role
from tenants.identity.providers import end_sessions, has_directory, role_of_groups
from tenants.members import LastAdminError, add_member
from tenants.models import (
    AnyProvider,
    DirectoryGroup,
    DirectoryUser,
    IdentityProvider,
    Membership,
    Role,
    User,
    provider_key,
)
from tenants.scope import tenant_scope

_UNFIT = re.compile(r"[^\w.+-]+")
_NAME_MAX = 60
_GROUPS_SEEN = 1_000


class RefusedError(Exception):
    """Somebody does not get in. The message is for this person, and is recorded."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who somebody is for a provider."""

    key: str
    """The provider, with its tenant (`providers.provider_key`)."""
    subject: str
    claims: Mapping[str, Any]

    @property
    def shown(self) -> str:
        """A name for people; nothing is found by it."""
        for claim in ("preferred_username", "email", "name"):
            value = self.claims.get(claim)
            if isinstance(value, str) and value.strip():
                return value.strip()[:_NAME_MAX]
        return self.subject[:_NAME_MAX]


def role_for(provider: IdentityProvider, claims: Mapping[str, Any]) -> Role | None:
    """The strongest role of somebody's groups, else the default one; None: no membership."""
    return role_of_groups(provider, groups_in(provider, claims), provider.default_role)


def groups_in(provider: AnyProvider, claims: Mapping[str, Any]) -> list[str]:
    """The names of somebody's groups."""
    groups = claims.get(provider.settings["groups_claim"])
    if isinstance(groups, str):
        groups = [groups]
    named = groups[:_GROUPS_SEEN] if isinstance(groups, list) else []
    return [group for group in named if isinstance(group, str)]


def admit(provider: IdentityProvider, identity: Identity, user: User | None) -> User:
    """Bring somebody's membership up to date before the session opens, and return the account.

    Without a `user` an account is made. Raises RefusedError, after recording why.
    """
    try:
        with tenant_scope(provider.tenant_id):
            return _admit(provider, identity, user)
    except RefusedError as error:
        with tenant_scope(provider.tenant_id):
            _end_lost_membership(provider, identity, user)
            name = identity.shown if user is None else user.get_username()
            record_view(
                provider.tenant_id,
                user or provider.name,
                "session.refuse",
                name,
                reason=str(error),
                provider=provider.name,
            )
        raise


def _admit(provider: IdentityProvider, identity: Identity, user: User | None) -> User:
    tenant = provider.tenant
    if tenant.suspended_at is not None:
        raise RefusedError(f"{tenant.name} is suspended.")
    role = _role(provider, identity)
    member = _membership(provider, user)
    if member is not None and member.identity_provider_id != provider.pk:
        return member.user
    if role is None:
        raise RefusedError(
            f"The directory of {provider.name} gives you no role in {tenant.name}."
            if has_directory(provider)
            else f"None of your groups gives you a role in {tenant.name}."
        )
    if member is not None:
        if member.role != role:
            try:
                give_role(tenant, provider.name, member, role)
            except LastAdminError:
                raise RefusedError(
                    f"Your groups no longer make you an admin of {tenant.name}, and there is no"
                    " other one."
                ) from None
        return member.user
    if user is not None and user.has_usable_password():
        # The account is this person's own. A tenant that once had it must not take it back.
        raise RefusedError(f"Your account is not a member of {tenant.name}. Ask for an invitation.")
    return _make_member(provider, provider.name, identity, user, role)


def _end_lost_membership(provider: IdentityProvider, identity: Identity, user: User | None) -> None:
    """End the membership and the sessions of somebody whose groups give no role any more."""
    member = _membership(provider, user)
    if (
        member is None
        or member.identity_provider_id != provider.pk
        or provider.tenant.suspended_at is not None
        or _role(provider, identity) is not None
    ):
        return
    _end(provider, provider.name, member)


def settle(
    provider: IdentityProvider, actor: Actor, listed: DirectoryUser, *, is_gone: bool = False
) -> None:
    """Bring a membership to what the directory says of a person. Needs the scope.

    Whom it does not list as active is out, with the sessions of the provider. Who was invited keeps
    the role that an admin gave; an account that somebody had before becomes no member.
    """
    if listed.external_id is None:
        return
    key = provider_key(provider.tenant_id, provider.pk)
    known = SocialAccount.objects.filter(provider=key, uid=listed.external_id)
    user = next((one.user for one in known.select_related("user")), None)
    member = _membership(provider, user)
    is_active = listed.is_active is not False and not is_gone
    role = _listed_role(provider, listed) if is_active else None
    if member is not None and member.identity_provider_id != provider.pk:
        if not is_active:
            _end(provider, actor, member)
    elif role is None:
        if member is not None:
            _end(provider, actor, member)
    elif member is not None:
        if member.role != role:
            # The last admin stays one: the directory cannot take the tenant from everybody.
            with suppress(LastAdminError):
                give_role(provider.tenant, actor, member, role)
    elif user is None or not user.has_usable_password():
        claims = {"preferred_username": listed.user_name}
        _make_member(provider, actor, Identity(key, listed.external_id, claims), user, role)


def _role(provider: IdentityProvider, identity: Identity) -> Role | None:
    """The role that the directory gives somebody; without a directory, the groups of the claims."""
    if not has_directory(provider):
        return role_for(provider, identity.claims)
    # A request of the directory may be ending this person at this moment.
    providers = IdentityProvider.objects.select_for_update(of=("self",))
    providers.get(tenant_id=provider.tenant_id, pk=provider.pk)
    listed = DirectoryUser.objects.filter(
        tenant_id=provider.tenant_id,
        identity_provider_id=provider.pk,
        external_id=identity.subject,
    ).first()
    if listed is None or listed.is_active is False:
        return None
    return _listed_role(provider, listed)


def _listed_role(provider: IdentityProvider, listed: DirectoryUser) -> Role | None:
    groups = DirectoryGroup.objects.filter(
        tenant_id=provider.tenant_id,
        identity_provider_id=provider.pk,
        members__contains=[listed.pk],
    )
    names = groups.values_list("display_name", flat=True)
    return role_of_groups(provider, names, provider.default_role)


def _make_member(
    provider: IdentityProvider, actor: Actor, identity: Identity, user: User | None, role: Role
) -> User:
    account = user or make_account(identity, provider.tenant.slug)
    membership = add_member(provider.tenant, account, role, provider)
    record_action(
        provider.tenant,
        actor,
        "member.accept",
        account.get_username(),
        role=membership.role,
        provider=provider.name,
        is_new_account=user is None,
        rows=[membership],
    )
    return account


def _end(provider: IdentityProvider, actor: Actor, member: Membership) -> None:
    """End a membership and the provider's sessions of this person."""
    # Without an admin nobody could undo it. This person does not get in all the same.
    with suppress(LastAdminError):
        end_membership(provider.tenant, actor, member)
    end_sessions(provider, member.user_id)


def _membership(provider: IdentityProvider, user: User | None) -> Membership | None:
    if user is None:
        return None
    members = Membership.objects.filter(tenant_id=provider.tenant_id, user=user, is_service=False)
    return members.select_related("user").first()


def make_account(identity: Identity, place: str) -> User:
    """An account without a password, named after the person and a place, such as a tenant's slug.

    Needs a transaction. Raises RefusedError if another request makes it at the same time.
    """
    wish = _UNFIT.sub("-", identity.shown.partition("@")[0]).strip("-") or "member"
    number = 1
    while True:
        suffix = "" if number == 1 else f".{number}"
        user = User(username=f"{wish}{suffix}@{place}")
        user.set_unusable_password()
        if not User.objects.filter(username=user.username).exists():
            try:
                with transaction.atomic():
                    user.save()
            except IntegrityError:  # another request took the name at the same time
                pass
            else:
                break
        number += 1
    try:
        SocialAccount.objects.create(user=user, provider=identity.key, uid=identity.subject)
    except IntegrityError:  # another request made the account at the same time; this one rolls back
        raise RefusedError("You were signing in twice at the same time. Try again.") from None
    return user
