"""What django-allauth asks us: where people go, which messages they see, how secrets are stored."""

from base64 import b64decode, b64encode
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.contrib import messages
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone

from config.boxes import close, open_box
from config.http.proxies import client_address
from tenants.access import open_session
from tenants.accounts.policy import PROVIDER, is_confirmed_by_provider, opens_by_password
from tenants.models import User
from tenants.sessions import record_session
from tenants.theme import remember_theme

_PLACE = b"second factor"

_WORDS = {
    "socialaccount/messages/account_connected.txt": "Connected. The provider signs you in now.",
    "socialaccount/messages/account_connected_updated.txt": "The provider already signs you in.",
}
"""What django-allauth calls a third-party account is an identity provider here."""


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # django-allauth has no types
    """Sign-in with the accounts of this installation. Nobody signs up by oneself."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """False: people join by invitation."""
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        """The client's address, by `TOOLTRAIL_PROXIES`."""
        return client_address(request)

    def add_message(
        self,
        request: HttpRequest,
        level: int,
        message_template: str | None = None,
        message_context: dict[str, Any] | None = None,
        extra_tags: str = "",
        message: str | None = None,
    ) -> None:
        """Show a message, some in our words; none that only says that one is signed in or out."""
        if message_template not in _UNNEEDED:
            message = message or _WORDS.get(message_template or "")
            super().add_message(
                request, level, message_template, message_context, extra_tags, message
            )

    def pre_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse | None:
        """Lead back whom a password or passkey would sign in although only providers may."""
        is_by_provider = "sociallogin" in (kwargs.get("signal_kwargs") or {})
        if not is_by_provider and not opens_by_password(user):
            record_session(user, "session.refuse", reason="only providers sign in here")
            messages.error(request, "Sign in with an identity provider.")
            return redirect("account_login")
        answer: HttpResponse | None = super().pre_login(request, user, **kwargs)
        return answer

    def post_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse:
        """Open the session in a tenant, record it, and continue with the user's theme."""
        login = (kwargs.get("signal_kwargs") or {}).get("sociallogin")
        if login is None:
            open_session(request, user, None)
        else:
            noted = {name: login.state[name] for name in _NOTED if name in login.state}
            open_session(request, user, login.provider.row, **noted)
        response: HttpResponse = super().post_login(request, user, **kwargs)
        if user.theme:
            remember_theme(response, user.theme)
        return response

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        """Lead back to the form: a passkey is right, and the account is closed."""
        messages.error(request, "This account is closed.")
        return redirect("account_login")

    def get_reauthentication_methods(
        self, user: AbstractBaseUser | AnonymousUser
    ) -> list[dict[str, Any]]:
        """Passkey first, then codes; the password only for people without a second factor.

        In the session of a provider it is the provider that asks.
        """
        if PROVIDER in self.request.session:
            return [{"id": "provider", "url": reverse("provider_confirm")}]
        methods = super().get_reauthentication_methods(user)
        factors = [each for each in methods if each["id"].startswith("mfa_")]
        return factors[::-1] or methods

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        """False while the confirmation by the session's provider is fresh."""
        if is_confirmed_by_provider(self.request.session, timezone.now()):
            return False
        is_required: bool = super().is_reauthentication_required(app=app, **kwargs)
        return is_required


_NOTED = ("led_to", "leave_at")
"""What `tenants.identity.adapter` notes in the state of a sign-in."""
_UNNEEDED = {"account/messages/logged_in.txt", "account/messages/logged_out.txt"}


class FactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # django-allauth has no types
    """Second factors: their secrets are encrypted in the database."""

    def encrypt(self, text: str) -> str:
        """The text as a box in base64. Raises BoxError."""
        return b64encode(close(_PLACE, text.encode())).decode()

    def decrypt(self, encrypted_text: str) -> str:
        """The text of a box. Raises BoxError."""
        return open_box(_PLACE, b64decode(encrypted_text)).decode()

    def get_totp_issuer(self) -> str:
        """The name that authenticator apps show beside the account."""
        return "Tooltrail"

    def generate_authenticator_name(self, user: User, type: Authenticator.Type) -> str:
        """A name for a new passkey, until its owner chooses one."""
        count = Authenticator.objects.filter(user_id=user.pk, type=type).count()
        return "Passkey" if not count else f"Passkey {count + 1}"

    def _get_site_name(self) -> str:
        return "Tooltrail"
