"""What an admin asks of the sign-in to a tenant: the page and the operations of the API."""

from collections.abc import Mapping
from typing import Any, Literal

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods
from ninja import Router
from pydantic import Field

from config.http.ordering import Key, sorted_table
from tenants.access import TenantRequest, tenant_page
from tenants.actions import Actor, record_action
from tenants.api_acts import Act, Body, acts
from tenants.api_auth import tenant_of
from tenants.api_reads import Answer, reads
from tenants.identity.providers import all_providers
from tenants.identity.sso_only import SsoOnlyForm
from tenants.models import IdentityProvider, Role, Scope, Tenant

router = Router()

IDLE_MINUTES = (5, 7 * 24 * 60)
MAX_HOURS = (1, 14 * 24)  # Django ends a session after two weeks
_FIELDS = (
    *("second_factor_roles", "step_up", "session_idle_minutes", "session_max_hours"),
    "anonymous_links",
)

_PROVIDERS: Mapping[str, Key[IdentityProvider]] = {
    "provider": lambda one: one.name.casefold(),
    "protocol": lambda one: one.get_kind_display(),
    "issuer": lambda one: one.settings.get("issuer") or None,
    "state": lambda one: "enabled" if one.disabled_at is None else "disabled",
}
"""The columns by which identity providers are sorted."""

RoleName = Literal["viewer", "editor", "auditor", "admin"]


class SignInSettingsForm(forms.Form):
    """Who needs a second factor, and how long sessions last."""

    second_factor_roles = forms.MultipleChoiceField(
        label="These roles need a second factor",
        choices=Role.choices,
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text="Members with such a role get in once they have set one up.",
    )
    step_up = forms.BooleanField(
        label="Confirm again before a reveal, an erasure or the release of a hold",
        required=False,
        help_text="With the second factor, or without one with the password; it counts for five"
        " minutes. In a session of a provider, with another sign-in there. API keys can no longer"
        " do these; with a key, an erasure can still be requested.",
    )
    session_idle_minutes = forms.IntegerField(
        label="Idle sessions end after (minutes)",
        min_value=IDLE_MINUTES[0],
        max_value=IDLE_MINUTES[1],
        required=False,
        help_text="Empty: idle sessions do not end.",
    )
    session_max_hours = forms.IntegerField(
        label="Sessions end after the sign-in (hours)",
        min_value=MAX_HOURS[0],
        max_value=MAX_HOURS[1],
        required=False,
        help_text="Empty: after two weeks.",
    )
    anonymous_links = forms.BooleanField(
        label="Share links may open without a sign-in",
        required=False,
        help_text="Off: all such links, also those that exist, ask for a sign-in.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("session_idle_minutes", "session_max_hours"):
            self.fields[name].widget.attrs["class"] = "form-control"


class SignInSettings(Answer):
    """What the tenant asks of a sign-in."""

    second_factor_roles: list[RoleName]
    """Roles whose members need a second factor."""
    step_up: bool
    """Whether a reveal, an erasure and the release of a hold need a fresh second factor."""
    session_idle_minutes: int | None
    """A session ends after so many minutes without a page; null: it does not."""
    session_max_hours: int | None
    """A session ends so many hours after the sign-in; null: after two weeks."""
    anonymous_links: bool
    """Whether share links may open without a sign-in."""


class SignInSettingsBody(Body):
    """All of the tenant's settings of the sign-in."""

    second_factor_roles: list[RoleName]
    step_up: bool
    session_idle_minutes: int | None = Field(ge=IDLE_MINUTES[0], le=IDLE_MINUTES[1])
    session_max_hours: int | None = Field(ge=MAX_HOURS[0], le=MAX_HOURS[1])
    anonymous_links: bool = False


def current(tenant: Tenant) -> dict[str, Any]:
    """The tenant's settings of the sign-in, by field."""
    return {name: getattr(tenant, name) for name in _FIELDS}


def save(tenant: Tenant, actor: Actor, wanted: dict[str, Any]) -> bool:
    """Store the settings and record what changed; False if nothing did. Needs the scope."""
    before = current(tenant)
    after = wanted | {"second_factor_roles": sorted(set(wanted["second_factor_roles"]))}
    changed = [name for name in _FIELDS if before[name] != after[name]]
    if not changed:
        return False
    for name in changed:
        setattr(tenant, name, after[name])
    Tenant.objects.filter(pk=tenant.pk).update(**{name: after[name] for name in changed})
    record_action(
        tenant,
        actor,
        "tenant.sign-in",
        tenant.name,
        before={name: before[name] for name in changed},
        after={name: after[name] for name in changed},
        rows=[tenant],
    )
    return True


@require_http_methods(["GET", "HEAD", "POST"])
@tenant_page(role=Role.ADMIN)
def sign_in_settings(request: TenantRequest) -> HttpResponseBase:
    """Show and save what the tenant asks of a sign-in."""
    form = SignInSettingsForm(request.POST or None, initial=current(request.tenant))
    if form.is_valid():
        is_new = save(request.tenant, request.user, form.cleaned_data)
        messages.success(request, "Saved." if is_new else "Nothing was changed.")
        return redirect("sign_in_settings")
    context = {
        "form": form,
        "providers": sorted_table(request, all_providers(request.tenant), _PROVIDERS, "provider"),
        "sso_form": SsoOnlyForm(tenant=request.tenant),
    }
    return render(request, "tenants/sign_in_settings.html", context)


@reads(router, "/settings/sign-in", SignInSettings, scope=Scope.ADMIN, tag="administration")
def get_sign_in_settings(request: HttpRequest) -> dict[str, Any]:
    """Return what the tenant asks of a sign-in."""
    return current(tenant_of(request))


@acts(
    router,
    "PUT",
    "/settings/sign-in",
    SignInSettings,
    scope=Scope.ADMIN,
    tag="administration",
    body=SignInSettingsBody,
)
def change_sign_in_settings(act: Act) -> dict[str, Any]:
    """Replace what the tenant asks of a sign-in."""
    save(act.tenant, act.actor, act.read(SignInSettingsBody).model_dump())
    return current(act.tenant)
