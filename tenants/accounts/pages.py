"""The page *Sign-in and sessions* of an account, and the frame of django-allauth's pages."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple

from allauth.account.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.forms import BaseForm, CheckboxInput
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.response import SimpleTemplateResponse, TemplateResponse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.views.decorators.http import require_http_methods

from config.http.ordering import Key, sorted_table
from tenants.access import enter_tenant, turn_away
from tenants.accounts.browsers import in_words
from tenants.accounts.policy import (
    NOT_YOURS,
    PROVIDER,
    has_second_factor,
    is_tenants,
    why_refused,
)
from tenants.accounts.records import record_account
from tenants.identity.installation import enabled_providers
from tenants.identity.providers import all_providers
from tenants.mail.outgoing import is_on
from tenants.models import AnyProvider, User, provider_key
from tenants.scope import tenant_scope
from tenants.zones import zone_of


class ListedSession(NamedTuple):
    """A session with its browser in words; whether it is the one that asks."""

    session: UserSession
    browser: str
    is_current: bool


_SESSIONS: Mapping[str, Key[ListedSession]] = {
    "signed-in": lambda one: one.session.created_at,
    "address": lambda one: one.session.ip,
    "browser": lambda one: one.browser.casefold(),
}
"""The columns by which sessions are sorted; at first by when they were last used."""
_PROVIDERS: Mapping[str, Key[tuple[AnyProvider, bool]]] = {
    "provider": lambda one: one[0].name.casefold(),
    "state": lambda one: "signs you in" if one[1] else "not connected",
}
"""The columns by which identity providers are sorted."""


def account_page(
    view: Callable[..., HttpResponseBase],
) -> Callable[..., HttpResponseBase]:
    """Wrap a page about the user's own account: it has the menu of the session's tenant.

    The view runs outside every scope, because it records what it does; only the template is
    rendered in the tenant's. A user without a tenant, or without the second factor that it asks
    for, gets the page without a menu. A session that is over ends here as on every page. In the
    session of a tenant's identity provider it is 403: the account may also be another tenant's.
    """

    @require_http_methods(["GET", "HEAD", "POST"])
    @login_required
    @wraps(view)
    def page(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if is_tenants(request.session):
            raise PermissionDenied(NOT_YOURS)
        entered = enter_tenant(request)
        if entered is not None:
            refusal = why_refused(request.session, entered.membership, timezone.now())
            if refusal is not None and refusal.is_over:
                return turn_away(entered, refusal)
            if refusal is not None:
                # A factor is missing. This page is the way to it, and shows nothing of the tenant.
                del entered.tenant
                entered = None
        if entered is not None:
            timezone.activate(zone_of(entered.user, request.COOKIES, entered.tenant))
        response = _styled(view(request, *args, **kwargs))
        if isinstance(response, SimpleTemplateResponse) and not response.is_rendered:
            if entered is None:
                response.render()
            else:
                with tenant_scope(entered.tenant.pk):
                    response.render()
        add_never_cache_headers(response)
        return response

    return page


def entrance_page(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Wrap a page of django-allauth that belongs to signing in: it has no menu."""

    @require_http_methods(["GET", "HEAD", "POST"])
    @wraps(view)
    def page(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return _styled(view(request, *args, **kwargs))

    return page


def _styled(response: HttpResponseBase) -> HttpResponseBase:
    """Give the fields of a form the class of ours: those of django-allauth have none."""
    if isinstance(response, SimpleTemplateResponse) and response.context_data:
        form = response.context_data.get("form")
        for field in form.fields.values() if isinstance(form, BaseForm) else ():
            if not isinstance(field.widget, CheckboxInput):
                field.widget.attrs.setdefault("class", "form-control")
    return response


def _confirm_url(user: User) -> str:
    """Where the user shows a factor again; '' without any, and without a password."""
    methods = get_adapter().get_reauthentication_methods(user)
    return methods[0]["url"] if methods else ""


@account_page
def security(request: HttpRequest) -> HttpResponseBase:
    """Second factors and sessions of the user; POST ends one other session, or all others."""
    user = request.user
    assert isinstance(user, User)
    sessions = sorted(
        UserSession.objects.purge_and_list(user), key=lambda one: one.last_seen_at, reverse=True
    )
    if request.method == "POST":
        return _end_sessions(request, user, sessions)
    factors: dict[str, list[Authenticator]] = {}
    for factor in Authenticator.objects.filter(user_id=user.pk).order_by("created_at"):
        factors.setdefault(factor.type, []).append(factor)
    codes = factors.get("recovery_codes")
    context = {
        "app": next(iter(factors.get("totp", ())), None),
        "passkeys": factors.get("webauthn", []),
        "codes_left": len(codes[0].wrap().get_unused_codes()) if codes else None,
        "has_factor": bool(factors),
        "has_shown_factor": has_second_factor(request.session),
        "identities": sorted_table(
            request, _identities(request, user), _PROVIDERS, "", "sort-providers"
        ),
        "may_connect": PROVIDER not in request.session,
        "sends_mail": is_on(),
        "confirm_url": _confirm_url(user),
        "sessions": sorted_table(
            request,
            [
                ListedSession(
                    one, in_words(one.user_agent), one.session_key == request.session.session_key
                )
                for one in sessions
            ],
            _SESSIONS,
            "",
        ),
    }
    return TemplateResponse(request, "mfa/index.html", context)


def _identities(request: HttpRequest, user: User) -> list[tuple[AnyProvider, bool]]:
    """The enabled providers of the session's tenant and of the installation, and whether the user
    has connected each."""
    tenant = getattr(request, "tenant", None)
    if tenant is None:
        return []
    with tenant_scope(tenant.pk):
        own = [one for one in all_providers(tenant) if one.disabled_at is None]
    providers: list[AnyProvider] = [*own, *enabled_providers()]
    mine = set(SocialAccount.objects.filter(user_id=user.pk).values_list("provider", flat=True))
    return [(one, provider_key(one.tenant_id, one.pk) in mine) for one in providers]


def _end_sessions(request: HttpRequest, user: User, sessions: list[UserSession]) -> HttpResponse:
    others = [one for one in sessions if one.session_key != request.session.session_key]
    wanted = request.POST.get("session", "")
    ending = [one for one in others if wanted in {"others", str(one.pk)}]
    for one in ending:
        one.end()
    if ending:
        record_account(request, user, "session.revoke", count=len(ending))
        messages.success(request, f"{len(ending)} session{'s' * (len(ending) != 1)} ended.")
    else:
        messages.info(request, "That session has already ended.")
    return redirect("mfa_index")
