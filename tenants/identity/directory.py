"""The directory of a provider: the people and groups that it sends (SCIM), and what they mean here.

Where a provider has one, it decides who is a member, and by its groups with which role; groups in
claims count no more. A person is the identity (provider, external id). All need the tenant's scope.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.urls import reverse

from tenants.actions import Actor, record_action
from tenants.identity.admission import settle
from tenants.identity.providers import role_of_groups
from tenants.identity.wanted import SUBJECT_MAX
from tenants.models import DirectoryGroup, DirectoryUser, IdentityProvider

USERS_MAX = 20_000
GROUPS_MAX = 2_000
NAME_MAX = 200
_NAMED_MAX = 50  # people that the entry of a group's change names


class DirectoryError(ValueError):
    """A person or group cannot be stored. The message is for people; `field` is as in SCIM."""

    def __init__(self, field: str, text: str, *, is_taken: bool = False) -> None:
        super().__init__(text)
        self.field = field
        self.is_taken = is_taken


@dataclass(frozen=True, slots=True)
class WantedUser:
    """What a directory says about a person."""

    user_name: str
    external_id: str | None = None
    display_name: str = ""
    is_active: bool | None = None
    """False: out. None: the directory does not say it, and the person may get in."""


@dataclass(frozen=True, slots=True)
class WantedGroup:
    """What a directory says about a group."""

    display_name: str
    external_id: str | None = None
    members: Sequence[UUID] = ()


def scim_url(request: HttpRequest, provider: IdentityProvider) -> str:
    """Where the directory sends people and groups."""
    address = reverse("scim_root", args=[provider.pk])
    return request.build_absolute_uri(address.rstrip("/"))


def counts(provider: IdentityProvider) -> dict[str, int]:
    """How many people and groups the directory has sent."""
    return {"users": users_of(provider).count(), "groups": groups_of(provider).count()}


def users_of(provider: IdentityProvider) -> Any:
    """The people of the directory, the oldest first."""
    rows = DirectoryUser.objects.filter(tenant_id=provider.tenant_id)
    return rows.filter(identity_provider_id=provider.pk).order_by("created_at", "id")


def groups_of(provider: IdentityProvider) -> Any:
    """The groups of the directory, the oldest first."""
    rows = DirectoryGroup.objects.filter(tenant_id=provider.tenant_id)
    return rows.filter(identity_provider_id=provider.pk).order_by("created_at", "id")


def lock(provider: IdentityProvider) -> None:
    """Let other requests and sign-ins of this provider wait until the transaction ends."""
    rows = IdentityProvider.objects.select_for_update(of=("self",))
    rows.get(tenant_id=provider.tenant_id, pk=provider.pk)


def add_user(provider: IdentityProvider, actor: Actor, wanted: WantedUser) -> DirectoryUser:
    """Add a person; a role makes them a member at once. Raises DirectoryError."""
    _check_user(provider, wanted, None)
    if users_of(provider).count() >= USERS_MAX:
        raise DirectoryError("userName", f"A directory has at most {USERS_MAX:,} people.")
    user = DirectoryUser.objects.create(
        tenant=provider.tenant,
        identity_provider_id=provider.pk,
        external_id=wanted.external_id,
        user_name=wanted.user_name,
        display_name=wanted.display_name,
        is_active=wanted.is_active,
    )
    _record(provider, actor, "directory-user.create", user, after=_shown_user(wanted))
    settle(provider, actor, user)
    return user


def change_user(
    provider: IdentityProvider, actor: Actor, user: DirectoryUser, wanted: WantedUser
) -> bool:
    """Change a person, and the membership with it; False if nothing differs.

    Raises DirectoryError.
    """
    before = WantedUser(user.user_name, user.external_id, user.display_name, user.is_active)
    if before == wanted:
        return False
    _check_user(provider, wanted, user.pk)
    if before.external_id != wanted.external_id:
        settle(provider, actor, user, is_gone=True)  # the identity is another one
    for name in ("user_name", "external_id", "display_name", "is_active"):
        setattr(user, name, getattr(wanted, name))
    _store(user, "user_name", "external_id", "display_name", "is_active", "changed_at")
    shown = _shown_user(before), _shown_user(wanted)
    _record(provider, actor, "directory-user.change", user, **_difference(*shown))
    settle(provider, actor, user)
    return True


def remove_user(provider: IdentityProvider, actor: Actor, user: DirectoryUser) -> None:
    """Remove a person: the membership and the provider's sessions end at once."""
    settle(provider, actor, user, is_gone=True)
    for group in groups_of(provider).filter(members__contains=[user.pk]):
        group.members.remove(user.pk)
        _store(group, "members", "changed_at")
        _record(provider, actor, "directory-group.change", group, left=[user.user_name])
    gone = DirectoryUser(id=user.pk, tenant_id=user.tenant_id, user_name=user.user_name)
    DirectoryUser.objects.filter(tenant_id=user.tenant_id, pk=user.pk).delete()
    _record(provider, actor, "directory-user.delete", gone)


def add_group(provider: IdentityProvider, actor: Actor, wanted: WantedGroup) -> DirectoryGroup:
    """Add a group; its name may give its people a role. Raises DirectoryError."""
    members = _check_group(provider, wanted)
    if groups_of(provider).count() >= GROUPS_MAX:
        raise DirectoryError("displayName", f"A directory has at most {GROUPS_MAX:,} groups.")
    group = DirectoryGroup.objects.create(
        tenant=provider.tenant,
        identity_provider_id=provider.pk,
        external_id=wanted.external_id,
        display_name=wanted.display_name,
        members=list(members),
    )
    after = {"display_name": group.display_name, "external_id": group.external_id}
    joined = _named(members.values())
    _record(provider, actor, "directory-group.create", group, after=after, **joined)
    _settle_all(provider, actor, members.values(), {group.display_name})
    return group


def change_group(
    provider: IdentityProvider, actor: Actor, group: DirectoryGroup, wanted: WantedGroup
) -> bool:
    """Change a group, and the roles of its people with it; False if nothing differs.

    Raises DirectoryError.
    """
    members = _check_group(provider, wanted)
    old = {user.pk: user for user in users_of(provider).filter(pk__in=group.members)}
    before = {"display_name": group.display_name, "external_id": group.external_id}
    after = {"display_name": wanted.display_name, "external_id": wanted.external_id}
    if before == after and old.keys() == members.keys():
        return False
    group.display_name, group.external_id = wanted.display_name, wanted.external_id
    group.members = list(members)
    _store(group, "display_name", "external_id", "members", "changed_at")
    joined = _named(user for pk, user in members.items() if pk not in old)
    left = _named((user for pk, user in old.items() if pk not in members), "left")
    details = {**_difference(before, after), **joined, **left}
    _record(provider, actor, "directory-group.change", group, **details)
    is_renamed = before["display_name"] != after["display_name"]
    touched = {
        pk: user
        for pk, user in {**old, **members}.items()
        if is_renamed or pk not in old or pk not in members
    }
    names = {group.display_name, str(before["display_name"])}
    _settle_all(provider, actor, touched.values(), names)
    return True


def remove_group(provider: IdentityProvider, actor: Actor, group: DirectoryGroup) -> None:
    """Remove a group; its people lose the role that only it gave."""
    users = list(users_of(provider).filter(pk__in=group.members))
    gone = DirectoryGroup(id=group.pk, tenant_id=group.tenant_id, display_name=group.display_name)
    DirectoryGroup.objects.filter(tenant_id=group.tenant_id, pk=group.pk).delete()
    _record(provider, actor, "directory-group.delete", gone, **_named(users, "left"))
    _settle_all(provider, actor, users, {group.display_name})


def _settle_all(
    provider: IdentityProvider, actor: Actor, users: Iterable[DirectoryUser], names: set[str]
) -> None:
    """Bring memberships up to date, if one of these names of groups gives a role at all."""
    if role_of_groups(provider, names, default=None) is None:
        return
    for user in users:
        settle(provider, actor, user)


def _check_user(provider: IdentityProvider, wanted: WantedUser, pk: UUID | None) -> None:
    _check_text("userName", wanted.user_name, NAME_MAX)
    _check_text("displayName", wanted.display_name, NAME_MAX, is_needed=False)
    if wanted.external_id is not None:
        _check_text("externalId", wanted.external_id, SUBJECT_MAX)
    others = users_of(provider).exclude(pk=pk)
    if others.filter(user_name__iexact=wanted.user_name).exists():
        raise DirectoryError("userName", "Another person has this userName.", is_taken=True)
    if wanted.external_id and others.filter(external_id=wanted.external_id).exists():
        raise DirectoryError("externalId", "Another person has this externalId.", is_taken=True)


def _check_group(provider: IdentityProvider, wanted: WantedGroup) -> dict[UUID, DirectoryUser]:
    """The members by id, in the order of the wanted ones."""
    _check_text("displayName", wanted.display_name, NAME_MAX)
    if wanted.external_id is not None:
        _check_text("externalId", wanted.external_id, SUBJECT_MAX)
    known = {user.pk: user for user in users_of(provider).filter(pk__in=wanted.members)}
    for member in wanted.members:
        if member not in known:
            raise DirectoryError("members", f"The directory has no person {member}.")
    return {member: known[member] for member in wanted.members}


def _check_text(field: str, text: str, longest: int, *, is_needed: bool = True) -> None:
    if (is_needed and not text.strip()) or len(text) > longest or not text.isprintable():
        raise DirectoryError(field, f"{field} is one line of at most {longest} characters.")


def _store(row: DirectoryUser | DirectoryGroup, *columns: str) -> None:
    row.save(update_fields=columns)


def _shown_user(wanted: WantedUser) -> dict[str, Any]:
    return {
        "user_name": wanted.user_name,
        "external_id": wanted.external_id,
        "display_name": wanted.display_name,
        "is_active": wanted.is_active,
    }


def _difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    names = [name for name in before if before[name] != after[name]]
    if not names:
        return {}
    return {
        "before": {name: before[name] for name in names},
        "after": {name: after[name] for name in names},
    }


def _named(users: Iterable[DirectoryUser], what: str = "joined") -> dict[str, Any]:
    names = [user.user_name for user in users]
    if not names:
        return {}
    more = {f"{what}_more": len(names) - _NAMED_MAX} if len(names) > _NAMED_MAX else {}
    return {what: names[:_NAMED_MAX], **more}


def _record(
    provider: IdentityProvider,
    actor: Actor,
    verb: str,
    row: DirectoryUser | DirectoryGroup,
    **details: Any,
) -> None:
    record_action(
        provider.tenant, actor, verb, str(row), provider=provider.name, rows=[row], **details
    )
