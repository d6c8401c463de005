"""Service accounts over the API, as an admin has them on their page."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from ninja import Path, Query
from pydantic import Field

from config.http.problems import ProblemError
from tenants.api_acts import Act, Body, Stripped, acts, invalid
from tenants.api_auth import tenant_of
from tenants.api_reads import Answer, ListParams, Page, paged, reads, utc
from tenants.member_api import router
from tenants.models import Membership, Scope
from tenants.service_accounts import (
    NAME_MAX,
    NameTakenError,
    create_account,
    delete_account,
    disable_account,
    enable_account,
    service_accounts,
    working_keys,
)


class ServiceAccount(Answer):
    """A member that is a program: it owns keys, and has no password."""

    id: UUID
    user: str
    """Its user name: the `owner` of its keys."""
    created_at: datetime
    disabled_at: datetime | None
    """Since when its keys are refused; null if they are not."""
    working_keys: int
    """Keys that are neither revoked nor expired; 0 while it is disabled."""


class ServiceAccountPage(Page[ServiceAccount]):
    """Service accounts by user name."""


class ServiceAccountBody(Body):
    """A service account to create."""

    name: Stripped = Field(min_length=1, max_length=NAME_MAX, examples=["deploy"])
    """Lower-case letters, digits, and `.`, `_`, `-` between them."""


@reads(
    router,
    "/service-accounts",
    ServiceAccountPage,
    scope=Scope.ADMIN,
    tag="administration",
    problems=("cursor", "limit"),
)
def list_service_accounts(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the tenant's service accounts. They are not in the list of members."""
    tenant = tenant_of(request)
    accounts = service_accounts(tenant)
    shown, after = paged("service-accounts", accounts, params, lambda one: one.user.username)
    keys = working_keys(tenant)
    return {"items": [_account(one, keys) for one in shown], "next": after}


@acts(
    router,
    "POST",
    "/service-accounts",
    ServiceAccount,
    scope=Scope.ADMIN,
    tag="administration",
    body=ServiceAccountBody,
    status=201,
    problems=("conflict",),
)
def create_service_account(act: Act) -> dict[str, Any]:
    """Create a service account. `POST keys` with its user name as `owner` gives it a key."""
    body = act.read(ServiceAccountBody)
    try:
        account = create_account(act.tenant, act.actor, body.name)
    except NameTakenError as error:
        raise ProblemError("conflict", "There is a service account of this name.") from error
    except ValueError as error:
        raise invalid("name", str(error)) from error
    return _account(account, {})


@acts(
    router,
    "POST",
    "/service-accounts/{uuid:account_id}/disable",
    ServiceAccount,
    scope=Scope.ADMIN,
    tag="administration",
    problems=("not_found",),
)
def disable_service_account(act: Act, account_id: Path[UUID]) -> dict[str, Any]:
    """Refuse the keys of a service account until it is enabled."""
    account = _service_of(act, account_id)
    disable_account(act.tenant, act.actor, account)
    return _account(account, working_keys(act.tenant))


@acts(
    router,
    "POST",
    "/service-accounts/{uuid:account_id}/enable",
    ServiceAccount,
    scope=Scope.ADMIN,
    tag="administration",
    problems=("not_found",),
)
def enable_service_account(act: Act, account_id: Path[UUID]) -> dict[str, Any]:
    """Accept the keys of a disabled service account again."""
    account = _service_of(act, account_id)
    enable_account(act.tenant, act.actor, account)
    return _account(account, working_keys(act.tenant))


@acts(
    router,
    "DELETE",
    "/service-accounts/{uuid:account_id}",
    ServiceAccount,
    scope=Scope.ADMIN,
    tag="administration",
    problems=("not_found",),
)
def delete_service_account(act: Act, account_id: Path[UUID]) -> dict[str, Any]:
    """Delete a service account and revoke its keys permanently. Returns the account."""
    account = _service_of(act, account_id)
    delete_account(act.tenant, act.actor, account)
    return _account(account, {})


def _service_of(act: Act, pk: UUID) -> Membership:
    account = service_accounts(act.tenant).filter(pk=pk).first()
    if account is None:
        raise ProblemError("not_found", "Service account not found.")
    return account


def _account(one: Membership, keys: Mapping[int, int]) -> dict[str, Any]:
    return {
        "id": one.pk,
        "user": one.user.username,
        "created_at": utc(one.created_at),
        "disabled_at": one.disabled_at and utc(one.disabled_at),
        "working_keys": keys.get(one.user_id, 0),
    }
