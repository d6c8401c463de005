"""Signing in with a provider: the tenant's page, the way there and back, connecting an account."""

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from allauth.account.adapter import get_adapter
from allauth.account.decorators import reauthentication_required
from allauth.account.internal.flows.reauthentication import resume_request
from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from config.boxes import BoxError
from tenants.access import TenantRequest, tenant_page
from tenants.accounts.policy import PROVIDER, is_confirmed_by_provider
from tenants.actions import record_view
from tenants.identity.adapter import (
    back_to_sign_in,
    enabled_provider,
    find_enabled,
    record_failure,
    speaking_to,
)
from tenants.identity.installation import find_installation_provider
from tenants.identity.openid import OIDCAdapter, OIDCProvider
from tenants.identity.providers import end_sessions, find_provider
from tenants.identity.saml import SamlError
from tenants.models import AnyProvider, ProviderKind, provider_key


def with_provider(
    view: Callable[[HttpRequest, AnyProvider], HttpResponseBase],
) -> Callable[..., HttpResponseBase]:
    """Wrap a view of an enabled provider: any other is 404, and what goes wrong is explained.

    Without a tenant the provider is one of the installation.
    """

    @never_cache
    def page(request: HttpRequest, pk: UUID, tenant_id: UUID | None = None) -> HttpResponseBase:
        provider = find_enabled(tenant_id, pk)
        if provider is None:
            raise Http404("no such provider")
        return _explained(request, provider, view)

    return page


def _explained(
    request: HttpRequest,
    provider: AnyProvider,
    view: Callable[[HttpRequest, AnyProvider], HttpResponseBase],
) -> HttpResponseBase:
    """The view's answer; if the provider does not work, the page of the sign-in with a message."""
    try:
        return view(request, provider)
    except (OAuth2Error, BoxError) as error:
        record_failure(provider, str(error)[:500])
        return back_to_sign_in(request, provider, _NOT_READY)
    except SamlError as error:
        record_failure(provider, str(error)[:500])
        return back_to_sign_in(request, provider, _REFUSED)


_NOT_READY = "The provider's sign-in does not work at the moment. Ask an admin."
_REFUSED = "The sign-in with the provider failed. An admin sees the reason in the audit log."


@require_POST
@with_provider
def provider_start(request: HttpRequest, provider: AnyProvider) -> HttpResponseBase:
    """Send somebody to the provider to sign in."""
    wanted = request.POST.get("next", "")
    target = wanted if get_adapter().is_safe_url(wanted) else None
    return _leave(request, provider, AuthProcess.LOGIN, target)


@require_safe
@with_provider
def provider_callback(request: HttpRequest, provider: AnyProvider) -> HttpResponseBase:
    """Take somebody back from an OpenID provider."""
    if provider.kind != ProviderKind.OIDC:
        raise Http404("no OpenID provider")
    adapter = OIDCAdapter(request, OIDCProvider(request, provider))
    answer: HttpResponseBase = OAuth2CallbackView.adapter_view(adapter)(request)
    return answer


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def provider_confirm(request: HttpRequest) -> HttpResponseBase:
    """Let the session's provider ask again who it is, then repeat the request that led here.

    It is outside every scope, as the repeated request opens one.
    """
    provider = enabled_provider(request.session.get(PROVIDER, ""))
    if provider is None:
        raise Http404("no session of a provider")
    target = request.POST.get("next") or request.GET.get("next", "")
    if request.method == "GET" and is_confirmed_by_provider(request.session, timezone.now()):
        return resume_request(request) or redirect("home")
    if request.method == "POST":
        return _explained(request, provider, partial(_leave_to_confirm, target=target))
    context = {"provider": provider, "target": target}
    return render(request, "identity/confirm.html", context)


def _leave_to_confirm(request: HttpRequest, provider: AnyProvider, target: str) -> HttpResponseBase:
    query = urlencode({"next": target}) if get_adapter().is_safe_url(target) else ""
    back = f"{reverse('provider_confirm')}?{query}"
    left_at = int(timezone.now().timestamp())
    return _leave(request, provider, AuthProcess.REDIRECT, back, asks_again=True, left_at=left_at)


@require_POST
@tenant_page()
def provider_connect(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Send a member to the provider, to sign in with it from now on. Needs a confirmation."""
    provider = _own_provider(request, pk)
    if PROVIDER in request.session or provider.disabled_at is not None:
        raise Http404("no such provider")
    return _explained(request, provider, _connect)


@require_POST
@tenant_page()
def provider_disconnect(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Forget that the provider's account is the member's."""
    provider = _own_provider(request, pk)
    if PROVIDER in request.session:
        raise Http404("no such provider")
    key = provider_key(provider.tenant_id, provider.pk)
    gone, _ = SocialAccount.objects.filter(user_id=request.user.pk, provider=key).delete()
    if gone:
        end_sessions(provider, request.user.pk)
        record_view(
            request.tenant.pk,
            request.user,
            "identity.disconnect",
            request.user.get_username(),
            provider=provider.name,
        )
        messages.success(request, f"{provider.name} no longer signs you in.")
    return redirect("mfa_index")


@reauthentication_required  # type: ignore[untyped-decorator]  # django-allauth has no types
def _connect(request: HttpRequest, provider: AnyProvider) -> HttpResponseBase:
    return _leave(request, provider, AuthProcess.CONNECT, None)


def _own_provider(request: TenantRequest, pk: UUID) -> AnyProvider:
    provider = find_provider(request.tenant.pk, pk) or find_installation_provider(pk)
    if provider is None:
        raise Http404("no such provider")
    return provider


def _leave(
    request: HttpRequest,
    provider: AnyProvider,
    process: str,
    target: str | None,
    **options: Any,
) -> HttpResponse:
    """A page that goes on to the provider.

    A redirect after the form would be refused by browsers: `form-action` names only this server.
    """
    sent = speaking_to(request, provider).redirect(request, process, target, **options)
    context = {"provider": provider, "address": sent["Location"]}
    return render(request, "identity/leave.html", context)
