"""Applies members, service accounts, API keys and saved views."""

import getpass
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.urls import reverse

from audit.declared.document import Key, Member, ServiceAccount, View
from audit.declared.work import Work, differences
from audit.models import SavedView
from audit.queries.call_query import Reader, parse
from audit.queries.saved_views import (
    CALLS,
    MAX_VIEWS,
    TooManyViewsError,
    ViewNameTakenError,
    change_view,
    delete_view,
    save_view,
    saved_views,
)
from config.http.origin import own_url
from tenants.admin_acts import (
    WantedKey,
    end_key,
    end_membership,
    give_role,
    invite_member,
    make_key,
    withdraw_invitation,
)
from tenants.invitations import open_invitations
from tenants.keys import key_id_in, new_key_text, read_networks, working_keys
from tenants.members import LastAdminError
from tenants.models import ApiKey, Membership, Role, User
from tenants.provision import ensure_member
from tenants.service_accounts import (
    NameTakenError,
    create_account,
    delete_account,
    disable_account,
    enable_account,
    name_in,
    service_accounts,
)


def apply_members(work: Work, wanted: list[Member]) -> None:
    """Make accounts, invite people who have one, and give roles."""
    members = {name: one for name, one in _memberships(work).items() if not one.is_service}
    invited = {one.label: one for one in open_invitations(work.tenant, work.now)}
    # Admins first: another admin can then lose the role.
    for index, one in sorted(enumerate(wanted), key=lambda pair: pair[1].role != Role.ADMIN):
        path, member = f"members[{index}]", members.get(one.user)
        invitation = invited.pop(one.user, None)
        if member is not None and member.made_by:
            work.note(f"{one.user} is a member by an identity provider, which decides the role")
        elif member is not None:
            _give_role(work, path, member, one.role)
        elif invitation is not None and invitation.role == one.role:
            work.note(f"{one.user} has not accepted the invitation yet")
        elif User.objects.filter(username=one.user).exists():
            if invitation is not None:
                withdraw_invitation(work.tenant, work.actor, invitation)
            _invite(work, one)
        else:
            _make_account(work, path, one)
    if work.options.prunes:
        named = {one.user for one in wanted}
        for name, member in members.items():
            if name not in named and not member.made_by:
                _remove_member(work, name, member)
        for label, invitation in invited.items():
            withdraw_invitation(work.tenant, work.actor, invitation)
            work.did("remove", "invitation", label)


def apply_service_accounts(work: Work, wanted: list[ServiceAccount]) -> None:
    """Make service accounts, and disable or enable them."""
    stored = {name_in(one): one for one in service_accounts(work.tenant)}
    for index, one in enumerate(wanted):
        account = stored.pop(one.name, None)
        if account is None:
            try:
                account = create_account(work.tenant, work.actor, one.name)
            except (ValueError, NameTakenError) as error:
                work.refuse(f"service_accounts[{index}].name", str(error) or "is taken")
                continue
            work.did("create", "service account", one.name)
        if one.is_disabled != (account.disabled_at is not None):
            change = disable_account if one.is_disabled else enable_account
            change(work.tenant, work.actor, account)
            changed = {"is_disabled": one.is_disabled}
            detail = differences({"is_disabled": not one.is_disabled}, changed)
            work.did("change", "service account", one.name, detail)
    if work.options.prunes:
        for name, account in stored.items():
            delete_account(work.tenant, work.actor, account)
            work.did("remove", "service account", name, "its keys are revoked")


def apply_keys(work: Work, wanted: list[Key]) -> None:
    """Make keys. A stored key of a name stays, unless the file names another secret."""
    stored: dict[str, list[ApiKey]] = {}
    for key in working_keys(work.tenant, work.now):
        stored.setdefault(key.name, []).append(key)
    for index, one in enumerate(wanted):
        _apply_key(work, f"keys[{index}]", one, stored.pop(one.name, []))
    if work.options.prunes:
        for key in (key for keys in stored.values() for key in keys):
            end_key(work.tenant, work.actor, key)
            work.did("remove", "key", str(key))


def apply_views(work: Work, wanted: list[View], declared: list[Member]) -> None:
    """Save queries of calls for their owners."""
    members = _memberships(work)
    kept: dict[str, set[str]] = {}
    for index, one in enumerate(wanted):
        path, owner = f"saved_views[{index}]", members.get(one.owner)
        kept.setdefault(one.owner, set()).add(one.name)
        if owner is not None:
            _apply_view(work, path, one, owner)
        elif any(each.user == one.owner for each in declared):
            work.note(f"the view {one.name!r} waits until {one.owner} is a member")
        else:
            work.refuse(f"{path}.owner", f"{one.owner!r} is not a member")
    if work.options.prunes:  # only of people whom the section names: views are personal
        for name, names in kept.items():
            for view in saved_views(members[name].user) if name in members else ():
                if view.name not in names:
                    delete_view(members[name].user, view.id)
                    work.did("remove", "view", view.name, f"of {name}")


def _memberships(work: Work) -> dict[str, Membership]:
    members = Membership.objects.filter(tenant=work.tenant).select_related("user")
    return {one.user.get_username(): one for one in members.order_by("user__username")}


def _give_role(work: Work, path: str, member: Membership, role: Role) -> None:
    name, before = member.user.get_username(), member.role
    if before == role:
        return
    try:
        give_role(work.tenant, work.actor, member, role)
    except LastAdminError:
        work.refuse(f"{path}.role", f"{name} is the last admin")
    else:
        work.did("change", "member", name, differences({"role": before}, {"role": role.value}))


def _invite(work: Work, one: Member) -> None:
    invitation, token = invite_member(work.tenant, work.actor, one.user, one.role)
    work.did("create", "invitation", one.user, f"as {one.role.value}, as the account exists")
    if not work.options.is_dry:
        address = reverse("invitation_accept", args=[token])
        work.outcome.links[invitation.label] = own_url() + address


def _make_account(work: Work, path: str, one: Member) -> None:
    password = work.secret(f"{path}.password", one.password, is_needed=one.password is not None)
    user = User(username=one.user)
    try:
        User._meta.get_field("username").clean(one.user, user)
    except ValidationError as error:
        work.refuse(f"{path}.user", error.messages[0])
        return
    try:
        if password:
            validate_password(password, user)
    except ValidationError as error:
        work.refuse(f"{path}.password", error.messages[0])
        return
    is_staff = one.role in {Role.EDITOR, Role.ADMIN}
    account = ensure_member(work.tenant, one.user, password or None, one.role, is_staff=is_staff)
    if password:  # whoever wrote the file knows it
        account.has_initial_password = True
        account.save()
    work.did("create", "member", one.user, f"as {one.role.value}")
    if one.password is None:
        work.note(f"{one.user} has no password yet: set one with changepassword")


def _remove_member(work: Work, name: str, member: Membership) -> None:
    if name.partition("@")[0] == getpass.getuser():
        work.note(f"{name} stays a member: it is you")
        return
    try:
        end_membership(work.tenant, work.actor, member)
    except LastAdminError:
        work.note(f"{name} stays a member: it is the last admin")
    else:
        work.did("remove", "member", name)


def _apply_key(work: Work, path: str, one: Key, stored: list[ApiKey]) -> None:
    if len(stored) > 1:
        work.refuse(path, f"{len(stored)} keys of this name work; revoke all but one")
        return
    try:
        networks = read_networks(one.allowed_addresses)
    except ValueError as error:
        work.refuse(f"{path}.allowed_addresses", str(error))
        return
    present = stored[0] if stored else None
    text = work.secret(f"{path}.secret", one.secret, is_needed=False)
    try:
        key_id = key_id_in(text, work.tenant.pk) if text else None
    except ValueError as error:
        work.refuse(f"{path}.secret", str(error))
        return
    if present is not None and key_id in (None, present.key_id):
        if changed := _changed(one, present, networks):
            work.refuse(
                path,
                f"differs from the stored key ({changed}), and a stored key does not change;"
                " name another secret, and it replaces the key",
            )
        return
    owner = None
    if one.owner is not None:
        member = _memberships(work).get(one.owner)
        if member is None:
            work.refuse(f"{path}.owner", f"{one.owner!r} is not a member")
            return
        owner = member.user
    if not text:
        if one.secret is None or not one.secret.file:
            work.secret(f"{path}.secret", one.secret, is_needed=True)
            return
        text = new_key_text(work.tenant.pk)
        work.secrets.make(one.secret, text)
        work.note(f"the key {one.name!r} is written to {one.secret.file}")
    elif ApiKey.objects.filter(tenant=work.tenant, key_id=key_id).exists():
        work.refuse(f"{path}.secret", "this key was stored before: under another name, or revoked")
        return
    wanted = WantedKey(one.name, one.scopes, one.purpose, owner, one.expires_at, networks, text)
    try:
        key, _ = make_key(work.tenant, work.actor, wanted)
    except ValueError as error:
        work.refuse(path, str(error))
        return
    if present is not None:
        end_key(work.tenant, work.actor, present)
        work.did("remove", "key", str(present))
    work.did("create", "key", str(key), ", ".join(key.scopes))


def _changed(one: Key, stored: ApiKey, networks: list[str]) -> str:
    """How the key of the file differs from the stored one."""
    present: dict[str, Any] = {
        "scopes": sorted(stored.scopes),
        "purpose": stored.purpose,
        "owner": stored.owner and stored.owner.get_username(),
        "expires_at": stored.expires_at,
        "allowed_addresses": stored.allowed_addresses,
    }
    wanted: dict[str, Any] = {
        "scopes": sorted({scope.value for scope in one.scopes}),
        "purpose": one.purpose,
        "owner": one.owner,
        "expires_at": one.expires_at,
        "allowed_addresses": networks,
    }
    return differences(present, {name: wanted[name] for name in present if one.is_given(name)})


def _apply_view(work: Work, path: str, one: View, owner: Membership) -> None:
    kept = one.q
    if one.page == CALLS:
        query = parse(one.q, Reader(sees_payloads=owner.sees_payloads))
        if query.problems:
            work.refuse(f"{path}.q", query.problems[0].message)
            return
        kept = str(query)
    if not kept:
        work.refuse(f"{path}.q", "an empty query would select everything")
        return
    before: SavedView | None = next(
        (each for each in saved_views(owner.user) if each.name == one.name), None
    )
    if before is not None and (before.query, before.is_shared) == (kept, one.shared):
        return
    try:
        save_view(owner.user, one.name, kept, one.page)
    except ViewNameTakenError:
        work.refuse(f"{path}.page", f"{one.owner} has a view of this name of another page")
        return
    except TooManyViewsError:
        work.refuse(path, f"{one.owner} already has {MAX_VIEWS} views")
        return
    if one.shared != (before is not None and before.is_shared):
        stored = next(each for each in saved_views(owner.user) if each.name == one.name)
        change_view(stored, name=one.name, is_shared=one.shared)
    work.did("create" if before is None else "change", "view", one.name, f"of {one.owner}")
