"""The page of service accounts."""

from collections.abc import Callable, Mapping
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, tenant_page
from tenants.actions import Actor
from tenants.forms import ServiceAccountForm
from tenants.models import Membership, Role, Tenant
from tenants.service_accounts import (
    NameTakenError,
    create_account,
    delete_account,
    disable_account,
    enable_account,
    service_accounts,
    working_keys,
)

_COLUMNS: Mapping[str, Key[tuple[Membership, int]]] = {
    "account": lambda row: row[0].user.get_username().casefold(),
    "keys": lambda row: row[1],
    "created": lambda row: row[0].created_at,
    "state": lambda row: "enabled" if row[0].disabled_at is None else "disabled",
}
"""The columns by which accounts are sorted."""


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(role=Role.ADMIN)
def service_list(request: TenantRequest) -> HttpResponseBase:
    """The service accounts of the tenant, and the form for a new one."""
    form = ServiceAccountForm(request.POST or None)
    if form.is_valid():
        name = form.cleaned_data["name"]
        try:
            account = create_account(request.tenant, request.user, name)
        except NameTakenError:
            form.add_error("name", "There is a service account of this name.")
        except ValueError as error:
            form.add_error("name", str(error))
        else:
            messages.success(request, f"{account.user.username} created. Now give it a key.")
            return redirect("service_list")
    keys = working_keys(request.tenant)
    accounts = [
        (account, keys.get(account.user_id, 0))
        for account in service_accounts(request.tenant).order_by("user__username")
    ]
    context = {"form": form, "accounts": sorted_table(request, accounts, _COLUMNS, "account")}
    return render(request, "tenants/service_list.html", context)


@require_POST
@tenant_page(role=Role.ADMIN)
def service_disable(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Refuse the keys of a service account."""
    return _act(request, pk, disable_account, "disabled")


@require_POST
@tenant_page(role=Role.ADMIN)
def service_enable(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Accept the keys of a service account again."""
    return _act(request, pk, enable_account, "enabled")


@require_POST
@tenant_page(role=Role.ADMIN)
def service_delete(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Delete a service account and revoke its keys."""
    return _act(request, pk, delete_account, "deleted")


def _act(
    request: TenantRequest, pk: UUID, act: Callable[[Tenant, Actor, Membership], None], done: str
) -> HttpResponseBase:
    account = get_object_or_404(service_accounts(request.tenant), pk=pk)
    act(request.tenant, request.user, account)
    messages.success(request, f"{account.user.username} {done}.")
    return redirect("service_list")
