"""Tenants that only their providers open, and the one admin who gets in all the same.

The page, the operations of the API, and the act. That admin's use of it is an action,
`session.break-glass`.
"""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST
from ninja import Router

from tenants.access import TenantRequest, tenant_page
from tenants.actions import Actor, record_action
from tenants.api_acts import Act, Body, acts, invalid
from tenants.api_auth import tenant_of
from tenants.api_reads import Answer, reads
from tenants.identity.installation import providers_leading_to
from tenants.identity.providers import all_providers
from tenants.models import AnyProvider, Membership, Role, Scope, Tenant

router = Router()


class SsoOnlyError(ValueError):
    """The setting would shut everybody out. `field` names the value; the message is for people."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


class SsoOnlyForm(forms.Form):
    """Whether only providers open the tenant, and who gets in all the same."""

    sso_only = forms.BooleanField(
        label="Members get in only with an identity provider",
        required=False,
    )
    break_glass = forms.ChoiceField(
        label="Admin who may use a password",
        required=False,
        help_text="For the case that the provider fails. Each use is recorded.",
        widget=forms.Select(attrs={"class": "form-select"}),
    )

    def __init__(self, *args: Any, tenant: Tenant, **kwargs: Any) -> None:
        kwargs.setdefault("initial", current(tenant))
        super().__init__(*args, **kwargs)
        names = [one.user.get_username() for one in _candidates(tenant)]
        choices = [("", "Nobody"), *((name, name) for name in names)]
        self.fields["break_glass"].choices = choices  # type: ignore[attr-defined]  # a ChoiceField


class SsoOnly(Answer):
    """Whether only identity providers open the tenant."""

    sso_only: bool
    break_glass: str | None
    """User name of the admin who gets in all the same."""


class SsoOnlyBody(Body):
    """Whether only identity providers open the tenant, and who gets in all the same."""

    sso_only: bool
    break_glass: str | None = None
    """User name of an admin with a password; needed with `sso_only`."""


def current(tenant: Tenant) -> dict[str, Any]:
    """The setting as stored. Needs the scope."""
    named = _candidates(tenant).filter(breaks_glass=True).first()
    return {
        "sso_only": tenant.sso_only,
        "break_glass": None if named is None else named.user.get_username(),
    }


def save(tenant: Tenant, actor: Actor, *, sso_only: bool, break_glass: str | None) -> bool:
    """Store the setting; False if nothing changes. Raises SsoOnlyError. Needs the scope."""
    before, after = current(tenant), {"sso_only": sso_only, "break_glass": break_glass}
    if before == after:
        return False
    candidates = {one.user.get_username(): one for one in _candidates(tenant)}
    chosen = None if break_glass is None else candidates.get(break_glass)
    if break_glass is not None and chosen is None:
        raise SsoOnlyError("break_glass", "Name an admin who was invited and has a password.")
    if sso_only and chosen is None:
        raise SsoOnlyError("break_glass", "Name an admin who gets in if the provider fails.")
    providers: list[AnyProvider] = [*all_providers(tenant), *providers_leading_to(tenant.pk)]
    if sso_only and all(one.disabled_at is not None for one in providers):
        raise SsoOnlyError("sso_only", "Add a provider first.")
    touched = [one for one in candidates.values() if one.breaks_glass or one is chosen]
    members = Membership.objects.filter(tenant_id=tenant.pk)
    members.filter(breaks_glass=True).update(breaks_glass=False)
    if chosen is not None:
        members.filter(pk=chosen.pk).update(breaks_glass=True)
    tenant.sso_only = sso_only
    Tenant.objects.filter(pk=tenant.pk).update(sso_only=sso_only)
    record_action(
        tenant,
        actor,
        "tenant.sso-only",
        tenant.name,
        before=before,
        after=after,
        rows=[tenant, *touched],
    )
    return True


def _candidates(tenant: Tenant) -> Any:
    """Admins who have a password of their own."""
    admins = Membership.objects.filter(
        Membership.by_invitation, tenant_id=tenant.pk, role=Role.ADMIN, is_service=False
    )
    without = Q(user__password__startswith=UNUSABLE_PASSWORD_PREFIX)
    return admins.exclude(without).select_related("user").order_by("user_id")


@require_POST
@tenant_page(role=Role.ADMIN)
def sso_only_settings(request: TenantRequest) -> HttpResponseBase:
    """Save whether only providers open the tenant; the page is that of the sign-in."""
    form = SsoOnlyForm(request.POST, tenant=request.tenant)
    if form.is_valid():
        given = form.cleaned_data
        try:
            is_new = save(
                request.tenant,
                request.user,
                sso_only=given["sso_only"],
                break_glass=given["break_glass"] or None,
            )
        except SsoOnlyError as error:
            messages.error(request, str(error))
        else:
            messages.success(request, "Saved." if is_new else "Nothing was changed.")
    else:
        messages.error(request, "Choose an admin of the list.")
    return redirect("sign_in_settings")


@reads(router, "/settings/sso-only", SsoOnly, scope=Scope.ADMIN, tag="administration")
def get_sso_only(request: HttpRequest) -> dict[str, Any]:
    """Return whether only identity providers open the tenant."""
    return current(tenant_of(request))


@acts(
    router,
    "PUT",
    "/settings/sso-only",
    SsoOnly,
    scope=Scope.ADMIN,
    tag="administration",
    body=SsoOnlyBody,
)
def change_sso_only(act: Act) -> dict[str, Any]:
    """Say whether only identity providers open the tenant."""
    body = act.read(SsoOnlyBody)
    try:
        save(act.tenant, act.actor, sso_only=body.sso_only, break_glass=body.break_glass)
    except SsoOnlyError as error:
        raise invalid(error.field, str(error)) from error
    return current(act.tenant)
