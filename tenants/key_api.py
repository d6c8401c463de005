"""API keys over the API, for keys with the scope `admin`."""

from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from django.utils import timezone
from ninja import Path, Query, Router
from pydantic import Field

from config.http.problems import ProblemError
from tenants.admin_acts import (
    WantedKey,
    end_key,
    make_key,
    replace_key,
)
from tenants.api_acts import Act, Body, Stripped, acts, invalid
from tenants.api_auth import tenant_of
from tenants.api_reads import Answer, ListParams, Page, reads, seal, unseal, utc
from tenants.keys import idle_keys
from tenants.members import members_of
from tenants.models import ApiKey, Scope, User

router = Router()

ScopeName = Literal[
    "ingest",
    "read",
    "payloads",
    "reveal",
    "registry",
    "operate",
    "holds",
    "samples",
    "erase",
    "admin",
    "scim",
]
_OVERLAP_MAX = int(timedelta(days=30).total_seconds())


class ApiKeyDetail(Answer):
    """An API key without its secret."""

    id: UUID
    key_id: str
    """The part of the key that is shown: `tt_…_<key_id>_…`."""
    name: str
    purpose: str
    owner: str | None
    """User name of the member who answers for it."""
    scopes: list[ScopeName]
    allowed_addresses: list[str]
    """Networks from which it is accepted; empty: from everywhere."""
    created_at: datetime
    created_by: str | None
    """Null: a program or an operator."""
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    """Exact to a minute."""
    replaced_by: UUID | None


class NewApiKey(ApiKeyDetail):
    """A key that was just created, with its text."""

    key: str
    """The only answer with the text: only a hash is stored."""


class ApiKeyPage(Page[ApiKeyDetail]):
    """Keys, the newest first."""

    OLD_NAME = "keys"


class KeyListParams(ListParams):
    """Which keys."""

    state: Literal["", "idle"] = ""
    """`idle`: only keys that work and that nobody used for 90 days, the longest idle first."""


class KeyBody(Body):
    """A key to create."""

    name: Stripped = Field(min_length=1, max_length=100)
    scopes: list[ScopeName] = Field(min_length=1)
    """At most those of the key that sends the request."""
    purpose: Stripped = Field("", max_length=300)
    owner: str = ""
    """User name of a member or service account that answers for it. Default: the owner of the key
    that sends this."""
    expires_at: datetime | None = None
    allowed_addresses: list[str] = Field([], examples=[["10.0.0.0/8"]])
    """Addresses or networks from which it is accepted. Default: from everywhere."""


class RotationBody(Body):
    """How a key is replaced."""

    overlap_seconds: int = Field(0, ge=0, le=_OVERLAP_MAX)
    """How long the old key still works."""
    expires_at: datetime | None = None
    """When the new key expires."""


@reads(router, "/keys", ApiKeyPage, scope=Scope.ADMIN, tag="administration", problems=("cursor",))
def list_keys(request: HttpRequest, params: Query[KeyListParams]) -> dict[str, Any]:
    """List API keys, without their secrets. With `state=idle`: those to clean up."""
    tenant = tenant_of(request)
    after = unseal(f"keys {params.state}", params.cursor, lambda place: UUID(place[0]))
    if params.state == "idle":
        idle = idle_keys(tenant, timezone.now())
        ids = [key.pk for key in idle]
        keys = idle[ids.index(after) + 1 if after in ids else 0 :]
    else:
        stored = ApiKey.objects.filter(tenant=tenant).select_related("created_by", "owner")
        stored = stored.filter(pk__lt=after) if after else stored
        keys = list(stored.order_by("-pk")[: params.limit + 1])
    shown = keys[: params.limit]
    return {
        "items": [_key(key) for key in shown],
        "next": seal(f"keys {params.state}", shown[-1].pk) if len(keys) > params.limit else None,
    }


@acts(
    router,
    "POST",
    "/keys",
    NewApiKey,
    scope=Scope.ADMIN,
    tag="administration",
    body=KeyBody,
    status=201,
)
def create_key(act: Act) -> dict[str, Any]:
    """Create an API key. The answer has its text, which cannot be shown again.

    A key can only give scopes that it has itself.
    """
    body = act.read(KeyBody)
    scopes = [Scope(scope) for scope in body.scopes]
    _give(act, scopes)
    wanted = WantedKey(
        body.name,
        scopes,
        purpose=body.purpose,
        owner=_owner(act, body.owner),
        expires_at=_later("expires_at", body.expires_at),
        allowed_addresses=body.allowed_addresses,
    )
    try:
        key, text = make_key(act.tenant, act.actor, wanted)
    except ValueError as error:
        raise invalid("allowed_addresses", f"{error}.") from error
    return {**_key(key), "key": text}


@acts(
    router,
    "POST",
    "/keys/{uuid:key_pk}/rotate",
    NewApiKey,
    scope=Scope.ADMIN,
    tag="administration",
    body=RotationBody,
    status=201,
    problems=("not_found", "conflict"),
)
def rotate_key(act: Act, key_pk: Path[UUID]) -> dict[str, Any]:
    """Create a key that replaces another and is like it. The old one works for the overlap."""
    old = _find_key(act, key_pk)
    _give(act, [Scope(scope) for scope in old.scopes])
    body = act.read(RotationBody)
    try:
        new, text = replace_key(
            act.tenant,
            act.actor,
            old,
            overlap=timedelta(seconds=body.overlap_seconds),
            expires_at=_later("expires_at", body.expires_at),
        )
    except ValueError as error:
        raise ProblemError("conflict", f"Not rotated: {error}.") from error
    return {**_key(new), "key": text}


@acts(
    router,
    "POST",
    "/keys/{uuid:key_pk}/revoke",
    ApiKeyDetail,
    scope=Scope.ADMIN,
    tag="administration",
    problems=("not_found",),
)
def revoke_key(act: Act, key_pk: Path[UUID]) -> dict[str, Any]:
    """Revoke a key permanently. A key that is revoked already stays as it is."""
    key = _find_key(act, key_pk)
    if key.revoked_at is None:
        end_key(act.tenant, act.actor, key)
    return _key(_find_key(act, key_pk))


def _give(act: Act, scopes: list[Scope]) -> None:
    """Raise ProblemError unless the request's key has all these scopes itself."""
    lacking = sorted(set(scopes) - set(map(Scope, act.key.scopes)))
    if lacking:
        raise ProblemError(
            "missing_scope", f"A key cannot give a scope that it lacks: {', '.join(lacking)}."
        )


def _owner(act: Act, name: str) -> User | None:
    if not name:
        return act.key.owner
    owner = members_of(act.tenant).filter(username=name).first()
    if owner is None:
        raise invalid("owner", "is not a member.")
    return owner


def _later(name: str, at: datetime | None) -> datetime | None:
    if at is not None and (at.tzinfo is None or at <= timezone.now()):
        raise invalid(name, "must be an instant in the future with an offset, such as Z.")
    return at


def _find_key(act: Act, pk: UUID) -> ApiKey:
    keys = ApiKey.objects.filter(tenant=act.tenant).select_related("created_by", "owner", "tenant")
    key = keys.filter(pk=pk).first()
    if key is None:
        raise ProblemError("not_found", "Key not found.")
    return key


def _key(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.pk,
        "key_id": key.key_id,
        "name": key.name,
        "purpose": key.purpose,
        "owner": key.owner and key.owner.get_username(),
        "scopes": key.scopes,
        "allowed_addresses": key.allowed_addresses,
        "created_at": utc(key.created_at),
        "created_by": key.created_by and key.created_by.get_username(),
        "expires_at": key.expires_at and utc(key.expires_at),
        "revoked_at": key.revoked_at and utc(key.revoked_at),
        "last_used_at": key.last_used_at and utc(key.last_used_at),
        "replaced_by": key.replaced_by_id,
    }
