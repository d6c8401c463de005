"""Access to pages: sign-in, the session's tenant, the role, and the tenant scope around a view.

Every page of a tenant is wrapped in `tenant_page`. API keys of executors: `tenants.keys`.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, cast
from urllib.parse import urlencode, urlsplit

from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.template.response import SimpleTemplateResponse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from tenants.accounts.policy import (
    LEAVE_AT,
    LED_TO,
    PROVIDER,
    PROVIDER_ASKED_FACTOR,
    SEEN_AT,
    SIGNED_IN_AT,
    Refusal,
    breaks_glass,
    why_refused,
)
from tenants.actions import record_action
from tenants.models import AnyProvider, Membership, Role, Tenant, User, provider_key
from tenants.scope import tenant_scope
from tenants.sessions import choose, memberships_of, opened_by, record_session
from tenants.zones import zone_of

SESSION_TENANT = "tenant_id"
"""The session's key for the tenant chosen in the switcher, as text."""

BROKEN_GLASS = "broken_glass"
"""The session's key for the tenant in which a break of the glass was recorded."""

WITHIN = "within_tenant"
"""The attribute of a page's function that has the view inside `tenant_page`: share links run it."""

_SEEN_EVERY_S = 60

# Roles are not one ladder: an auditor reads more than an editor, but changes nothing.
_INCLUDES: dict[Role, frozenset[str]] = {
    Role.VIEWER: frozenset(Role.values),
    Role.EDITOR: frozenset({Role.EDITOR.value, Role.ADMIN.value}),
    Role.AUDITOR: frozenset({Role.AUDITOR.value, Role.ADMIN.value}),
    Role.ADMIN: frozenset({Role.ADMIN.value}),
}


class TenantRequest(HttpRequest):
    """The request that `tenant_page` passes to a view."""

    user: User
    htmx: HtmxDetails
    tenant: Tenant
    membership: Membership
    memberships: list[Membership]
    """The memberships that the session may open, in tenants that are not suspended, by tenant name
    (the switcher)."""


def has_role(membership: Membership, role: Role) -> bool:
    """Whether this member may do everything that `role` may do."""
    return membership.role in _INCLUDES[role]


def tenant_page[**P](
    *, role: Role = Role.VIEWER, needs_payloads: bool = False
) -> Callable[
    [Callable[Concatenate[TenantRequest, P], HttpResponseBase]],
    Callable[Concatenate[HttpRequest, P], HttpResponseBase],
]:
    """Wrap a view: it runs for a signed-in member with `role`, inside the tenant's scope.

    An anonymous user is redirected to sign-in. A member without the role gets 403. A user without
    a tenant, or with suspended tenants only, gets a page that says so (403). Set `needs_payloads`
    for a page that shows only payloads: a member who may never see one
    (`Membership.reaches_payloads`) gets 403. The view and its rendering run in one transaction,
    so a view that raises has changed nothing. Costs two short transactions and one query.

    A lookup by id sees only the tenant's own rows; without a row the view answers 404.
    A streamed body is sent after the scope has closed, so it opens its own scope for each chunk.
    """

    def wrap(
        view: Callable[Concatenate[TenantRequest, P], HttpResponseBase],
    ) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
        @wraps(view)
        def page(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _ask_to_sign_in(request)
            entered = enter_tenant(request)
            if entered is None:
                shut = opened_by(request.session, memberships_of(request.user.pk))
                context = {"suspended": [one.tenant.name for one in shut]}
                return render(request, "tenants/no_tenant.html", context, status=403)
            if refusal := why_refused(request.session, entered.membership, timezone.now()):
                return turn_away(entered, refusal)
            _note_activity(request)
            if breaks_glass(request.session, entered.membership):
                _record_broken_glass(entered)
            if not has_role(entered.membership, role):
                raise PermissionDenied(f"This page requires the role {role.label.lower()}.")
            if needs_payloads and not entered.membership.reaches_payloads:
                raise PermissionDenied("Your role can't view payloads.")
            # Active until the response is made: `tenants.timezone` restores the previous zone.
            timezone.activate(zone_of(entered.user, request.COOKIES, entered.tenant))
            with tenant_scope(entered.tenant.id):
                response = view(entered, *args, **kwargs)
                if isinstance(response, SimpleTemplateResponse):
                    response.render()
            if not response.has_header("Cache-Control"):
                add_never_cache_headers(response)
            return response

        vars(page)[WITHIN] = view
        return page

    return wrap


def enter_tenant(request: HttpRequest) -> TenantRequest | None:
    """Set a signed-in request's tenant: the session's, the last chosen one, or the oldest.

    Returns None when the session may open no tenant that is not suspended. The session's tenant
    is checked against the memberships: a tenant that the user was removed from is ignored.
    """
    request = cast(TenantRequest, request)
    everywhere = opened_by(request.session, memberships_of(request.user.pk))
    request.memberships = [one for one in everywhere if one.tenant.suspended_at is None]
    chosen = request.session.get(SESSION_TENANT)
    membership = choose(request.memberships, chosen, request.user.last_tenant_id)
    if membership is None:
        return None
    membership.user = request.user
    request.membership = membership
    request.tenant = membership.tenant
    return request


def open_session(
    request: HttpRequest,
    user: User,
    provider: AnyProvider | None,
    *,
    led_to: Sequence[str] = (),
    leave_at: str = "",
) -> None:
    """Choose the tenant of a new session after sign-in and record the sign-in there.

    `led_to` are ids of tenants to which the groups of a provider of the installation lead, and
    `leave_at` is where the provider ends its own session.
    """
    request.session[SIGNED_IN_AT] = request.session[SEEN_AT] = int(timezone.now().timestamp())
    details = {}
    if provider is not None:
        request.session[PROVIDER] = provider_key(provider.tenant_id, provider.pk)
        request.session[LED_TO] = list(led_to)
        request.session[LEAVE_AT] = leave_at
        request.session[PROVIDER_ASKED_FACTOR] = provider.settings["asks_second_factor"]
        details = {"provider": provider.name}
    membership = record_session(user, "session.start", session=request.session, **details)
    if membership is not None:
        # Stored, so that switching the tenant in another session does not affect this one.
        request.session[SESSION_TENANT] = str(membership.tenant_id)


def _note_activity(request: HttpRequest) -> None:
    """Store at most once a minute that the session is in use."""
    now = int(timezone.now().timestamp())
    if now - request.session.get(SEEN_AT, now) >= _SEEN_EVERY_S:
        request.session[SEEN_AT] = now


def _record_broken_glass(request: TenantRequest) -> None:
    """Record once a session in which the named account is without a provider."""
    tenant_id = str(request.tenant.pk)
    if request.session.get(BROKEN_GLASS) != tenant_id:
        with tenant_scope(request.tenant.pk):
            name = request.user.get_username()
            record_action(request.tenant, request.user, "session.break-glass", name)
        request.session[BROKEN_GLASS] = tenant_id


def turn_away(request: TenantRequest, refusal: Refusal) -> HttpResponseBase:
    """End a session that is over, or lead to the page where one shows what is missing."""
    if refusal.is_over:
        record_session(
            request.user, "session.expire", chosen=request.tenant.pk, session=request.session
        )
        logout(request)
        messages.info(request, f"{refusal.reason} Sign in again.")
        return _ask_to_sign_in(request)
    messages.warning(request, refusal.reason)
    to = ("tenant_sign_in", request.tenant.slug) if refusal.needs_provider else ("mfa_index",)
    if request.htmx:
        return HttpResponseClientRedirect(resolve_url(*to))
    return redirect(*to)


def _ask_to_sign_in(request: HttpRequest) -> HttpResponseBase:
    htmx: HtmxDetails | None = getattr(request, "htmx", None)
    if not htmx:
        return redirect_to_login(request.get_full_path())
    # htmx would follow a redirect and put the sign-in form inside the page: load a new page.
    shown = urlsplit(htmx.current_url or "")
    back = urlencode({"next": shown.path + (f"?{shown.query}" if shown.query else "")})
    return HttpResponseClientRedirect(f"{resolve_url('account_login')}?{back}")
