"""What django-allauth asks us about identity providers: which there are, and whom they let in."""

import logging
from typing import Any
from uuid import UUID

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from allauth.socialaccount.providers.base.constants import AuthError, AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from tenants.access import SESSION_TENANT
from tenants.accounts.policy import PROVIDER, PROVIDER_CONFIRMED_AT
from tenants.actions import record_view
from tenants.identity.admission import Identity, RefusedError, admit
from tenants.identity.arrival import arrive
from tenants.identity.installation import find_installation_provider
from tenants.identity.openid import OIDCProvider, check_nonce
from tenants.identity.providers import find_provider
from tenants.identity.published import LEEWAY_S
from tenants.identity.saml.provider import SAMLProvider
from tenants.models import (
    OF_INSTALLATION,
    AnyProvider,
    IdentityProvider,
    InstallationProvider,
    Membership,
    ProviderKind,
    User,
    provider_key,
)
from tenants.scope import tenant_scope
from tenants.sessions import record_session

_log = logging.getLogger(__name__)


class IdentityAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # django-allauth has no types
    """Providers are rows of ours. An identity is never found by an address."""

    def list_providers(self, request: HttpRequest) -> list[Any]:
        """None: our pages list a tenant's providers."""
        return []

    def get_provider(
        self, request: HttpRequest, provider: str, client_id: str | None = None
    ) -> OIDCProvider | SAMLProvider:
        """An enabled provider by its key. Raises ValueError: a pending sign-in is then dropped."""
        row = enabled_provider(provider)
        if row is None:
            raise ValueError("no such provider")
        return speaking_to(request, row)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """False: `admit` has made the account before django-allauth asks."""
        return False

    def get_connect_redirect_url(self, request: HttpRequest, socialaccount: Any) -> str:
        """The page of the account."""
        return reverse("mfa_index")

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Check the sign-in, and bring the membership up to date before the session opens."""
        sociallogin.token = None  # it was used, and is not kept
        row: AnyProvider = sociallogin.provider.row
        if row.kind == ProviderKind.OIDC:
            check_nonce(sociallogin)
        user = sociallogin.user if sociallogin.is_existing else None
        if sociallogin.state["process"] == AuthProcess.REDIRECT:
            raise ImmediateHttpResponse(_confirm(request, row, sociallogin))
        if sociallogin.state["process"] == AuthProcess.CONNECT:
            _check_connection(request, row)
            return
        # The state is kept while a second factor is asked for.
        sociallogin.state["leave_at"] = getattr(sociallogin, "leave_at", "")
        account = sociallogin.account
        identity = Identity(account.provider, account.uid, sociallogin.claims)
        try:
            if isinstance(row, InstallationProvider):
                target = sociallogin.state.get("next") or ""
                sociallogin.user, led_to = arrive(row, identity, user, target)
                sociallogin.state["led_to"] = [str(one) for one in led_to]
            else:
                sociallogin.user = admit(row, identity, user)
        except RefusedError as error:
            raise ImmediateHttpResponse(back_to_sign_in(request, row, str(error))) from None

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: OIDCProvider,
        error: str = AuthError.UNKNOWN,
        exception: Exception | None = None,
        extra_context: dict[str, Any] | None = None,
    ) -> None:
        """Record what went wrong at the provider, and lead back to the page of the sign-in."""
        reason = "The sign-in was cancelled." if error == AuthError.CANCELLED else _WENT_WRONG
        if isinstance(exception, OAuth2Error):
            reason = f"{_WENT_WRONG} {exception}"[:500]
        record_failure(provider.row, reason)
        shown = reason if error == AuthError.CANCELLED else _WENT_WRONG
        raise ImmediateHttpResponse(back_to_sign_in(request, provider.row, shown))


_WENT_WRONG = "The sign-in with the provider failed."


def speaking_to(request: HttpRequest, row: AnyProvider) -> OIDCProvider | SAMLProvider:
    """A provider for django-allauth, by its protocol."""
    if row.kind == ProviderKind.SAML:
        return SAMLProvider(request, row)
    return OIDCProvider(request, row)


def back_to_sign_in(request: HttpRequest, provider: AnyProvider, reason: str) -> HttpResponse:
    """Lead to the page of the sign-in, with a reason; of a tenant's provider to that tenant's."""
    messages.error(request, reason)
    if isinstance(provider, InstallationProvider):
        return redirect("account_login")
    return redirect("tenant_sign_in", provider.tenant.slug)


def record_failure(provider: AnyProvider, reason: str) -> None:
    """Record a sign-in that failed before anybody was known, in the provider's tenant.

    Without a tenant there is no record that it belongs to: the server's log has it.
    """
    if isinstance(provider, InstallationProvider):
        _log.warning("sign-in with %s failed: %s", provider.name, reason)
        return
    with tenant_scope(provider.tenant_id):
        record_view(
            provider.tenant_id, provider.name, "session.refuse", provider.name, reason=reason
        )


def _check_connection(request: HttpRequest, provider: AnyProvider) -> None:
    """Only a person in a session that no provider opened connects an identity; to a tenant's
    provider only its members."""
    user = request.user
    may_connect = PROVIDER not in request.session
    if not isinstance(user, User):
        may_connect = False
    elif isinstance(provider, IdentityProvider):
        with tenant_scope(provider.tenant_id):
            members = Membership.objects.filter(Membership.by_invitation, user=user)
            is_member = members.filter(tenant_id=provider.tenant_id).exists()
        may_connect = may_connect and is_member
    if not may_connect:
        reason = "Sign in with your account, then connect it."
        raise ImmediateHttpResponse(back_to_sign_in(request, provider, reason))


def _confirm(request: HttpRequest, provider: AnyProvider, login: SocialLogin) -> HttpResponse:
    """Take an answer of the session's provider, which was told to ask again who it is."""
    user, at = request.user, login.authenticated_at
    key = provider_key(provider.tenant_id, provider.pk)
    if request.session.get(PROVIDER) != key or not login.is_existing or login.user != user:
        reason = "The provider confirmed another person."
    elif not isinstance(at, int) or at < login.state["left_at"] - LEEWAY_S:
        reason = "The provider did not ask again who it is."
    else:
        request.session[PROVIDER_CONFIRMED_AT] = int(timezone.now().timestamp())
        record_session(
            login.user,
            "session.confirm",
            chosen=request.session.get(SESSION_TENANT),
            session=request.session,
            provider=provider.name,
        )
        return redirect(login.state["next"])
    record_failure(provider, reason)
    messages.error(request, reason)
    return redirect("home")


def enabled_provider(key: str) -> AnyProvider | None:
    """The enabled provider with a key (`provider_key`), or None."""
    owner, _, pk = key.partition("/")
    try:
        return find_enabled(None if owner == OF_INSTALLATION else UUID(owner), UUID(pk))
    except ValueError:
        return None


def find_enabled(tenant_id: UUID | None, pk: UUID) -> AnyProvider | None:
    """An enabled provider of a tenant, or without one of the installation; else None."""
    row: AnyProvider | None
    if tenant_id is None:
        row = find_installation_provider(pk)
    else:
        with tenant_scope(tenant_id):
            row = find_provider(tenant_id, pk)
    return row if row is not None and row.disabled_at is None else None
