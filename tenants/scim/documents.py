"""People and groups as SCIM documents, and what the server says about itself.

Of a person only what is used here is kept; other attributes are accepted and ignored.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field
from scim2_models import (
    URN,
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    ETag,
    Filter,
    GroupMembership,
    Meta,
    Mutability,
    Pagination,
    Patch,
    Reference,
    Required,
    Resource,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
)

from tenants.actions import storable_text
from tenants.identity.directory import DirectoryError, WantedGroup, WantedUser
from tenants.models import DirectoryGroup, DirectoryUser

PAGE_MAX = 200
"""Rows of one answer."""
BODY_MAX_BYTES = 1_000_000
POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)
"""As Entra ID and Okta need it: they send attributes that are not kept here."""


class User(Resource[Any]):
    """A person of the directory."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Uniqueness.server, Required.true] = None
    """A name for people. It signs nobody in: externalId says who somebody is."""

    display_name: str | None = None
    """The name to show."""

    active: bool | None = None
    """Whether this person may get in."""

    groups: Annotated[list[GroupMembership] | None, Mutability.read_only] = None
    """The groups that have this person."""


class Member(ComplexAttribute):
    """A person in a group."""

    value: Annotated[str | None, Mutability.immutable, CaseExact.true] = None
    """The person's id."""

    ref: Annotated[Reference[User] | None, Mutability.immutable] = Field(
        None, serialization_alias="$ref", validation_alias="$ref"
    )
    """The person's address."""

    type: Annotated[str | None, Mutability.immutable] = Field(None, examples=["User"])
    """Always User: a group in a group is not supported."""


class Group(Resource[Any]):
    """A group of the directory. Its name may give its people a role."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:Group")

    display_name: Annotated[str | None, Required.true] = None
    """The name, by which a provider's settings give a role."""

    members: list[Member] | None = None
    """The people in it."""


SERVICE = ScimProvider(
    models=[User, Group],
    config=ServiceProviderConfig(
        patch=Patch(supported=True),
        bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
        filter=Filter(supported=True, max_results=PAGE_MAX),
        change_password=ChangePassword(supported=False),
        sort=Sort(supported=True),
        etag=ETag(supported=True),
        pagination=Pagination(
            cursor=False, index=True, default_page_size=PAGE_MAX, max_page_size=PAGE_MAX
        ),
        authentication_schemes=[
            AuthenticationScheme(
                type=AuthenticationScheme.Type.oauthbearertoken,
                name="API key",
                description="Authorization: Bearer tt_…, a key with the scope scim",
                primary=True,
            )
        ],
    ),
    policy=POLICY,
)
"""What the server offers."""


def user_document(base: str, user: DirectoryUser, groups: Iterable[tuple[UUID, str]]) -> User:
    """A person, with id and name of their groups; `base` is the address of the service."""
    memberships = [
        GroupMembership(value=str(pk), display=name, ref=f"{base}/Groups/{pk}", type="direct")
        for pk, name in groups
    ]
    document = User(
        id=str(user.pk),
        external_id=user.external_id,
        user_name=user.user_name,
        display_name=user.display_name or None,
        active=user.is_active,
        groups=memberships or None,
    )
    return _with_meta(document, user, f"{base}/Users/{user.pk}")


def group_document(base: str, group: DirectoryGroup) -> Group:
    """A group; `base` is the address of the service."""
    members = [Member(value=str(pk), ref=f"{base}/Users/{pk}", type="User") for pk in group.members]
    document = Group(
        id=str(group.pk),
        external_id=group.external_id,
        display_name=group.display_name,
        members=members or None,
    )
    return _with_meta(document, group, f"{base}/Groups/{group.pk}")


def wanted_user(document: User) -> WantedUser:
    """What a document says about a person."""
    return WantedUser(
        user_name=storable_text(document.user_name or ""),
        external_id=_text(document.external_id),
        display_name=storable_text(document.display_name or ""),
        is_active=document.active,
    )


def wanted_group(document: Group) -> WantedGroup:
    """What a document says about a group. Raises DirectoryError for a member that is no id."""
    members: dict[UUID, None] = {}
    for member in document.members or ():
        try:
            members[UUID(member.value or "")] = None
        except ValueError:
            raise DirectoryError(
                "members", "Each member is the id of a person of this directory."
            ) from None
    return WantedGroup(
        display_name=storable_text(document.display_name or ""),
        external_id=_text(document.external_id),
        members=list(members),
    )


def _with_meta[R: Resource[Any]](
    document: R, row: DirectoryUser | DirectoryGroup, location: str
) -> R:
    content = json.dumps(document.model_dump(), sort_keys=True, default=str)
    document.meta = Meta(
        resource_type=type(document).__name__,
        created=row.created_at,
        last_modified=row.changed_at,
        location=location,
        version=f'W/"{hashlib.sha256(content.encode()).hexdigest()[:32]}"',
    )
    return document


def _text(value: str | None) -> str | None:
    return storable_text(value) if value else None
