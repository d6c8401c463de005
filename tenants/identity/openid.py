"""OpenID Connect with django-allauth, stricter: nonce, signature and every address are checked.

django-allauth sends people to the provider with state and PKCE and exchanges the code. Taken over
a direct connection, its id_token would need no signature (OpenID Connect Core 1.0, 3.1.3.7); here
it does, by the keys that the provider publishes at that moment, so a rotation needs nothing.
"""

import secrets
from typing import Any
from urllib.parse import urlencode, urlsplit

import jwt
from allauth.socialaccount.models import SocialApp, SocialLogin, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare

from tenants.identity.providers import path_of, secret_of
from tenants.identity.published import (
    ALGORITHMS,
    LEEWAY_S,
    UNREADABLE,
    discovery_of,
    fetch,
    key_among,
    keys_at,
)
from tenants.identity.wanted import SUBJECT_MAX, ProviderError, check_server_url, subject_claim
from tenants.models import AnyProvider, provider_key


class OIDCAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]  # django-allauth has no types
    """The requests to a provider, and the check of what it answers. Raises OAuth2Error."""

    def __init__(self, request: HttpRequest, provider: "OIDCProvider") -> None:
        super().__init__(request, provider.app.provider_id)
        self.provider = provider

    def get_provider(self) -> "OIDCProvider":
        """The provider; django-allauth would look it up again."""
        return self.provider

    @property
    def openid_config(self) -> dict[str, Any]:
        """The discovery document, once a request. Its issuer must be the one that was entered."""
        if not hasattr(self, "_openid_config"):
            self._openid_config = discovery_of(self.provider.row.settings["issuer"])
        config: dict[str, Any] = self._openid_config
        return config

    def get_callback_url(self, request: HttpRequest, app: SocialApp) -> str:
        """Where the provider sends people back to."""
        return callback_url(request, self.provider.row)

    def get_access_token_data(
        self, request: HttpRequest, app: SocialApp, client: Any, pkce_code_verifier: str | None
    ) -> dict[str, Any]:
        """The tokens that the code is exchanged for."""
        try:
            data = super().get_access_token_data(request, app, client, pkce_code_verifier)
        except UNREADABLE as error:
            raise OAuth2Error("The token endpoint's answer cannot be read.") from error
        if not isinstance(data, dict):
            raise OAuth2Error("The token endpoint's answer cannot be read.")
        return data

    def parse_token(self, data: dict[str, Any]) -> SocialToken:
        """The access token. It is used once, and not kept."""
        return SocialToken(token=str(data["access_token"]))

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any
    ) -> SocialLogin:
        """The identity that the id_token proves, with its claims."""
        claims = self._verified(kwargs["response"].get("id_token"))
        if self.provider.row.settings["groups_claim"] not in claims:
            claims = self._userinfo(token.token, claims["sub"]) | claims
        login = self.provider.sociallogin_from_response(request, claims)
        login.claims = claims
        login.authenticated_at = claims.get("auth_time")
        login.leave_at = self._leave_at()
        return login

    def _leave_at(self) -> str:
        """Where the provider signs people out (OpenID Connect RP-Initiated Logout 1.0), or "".

        Without a token of the person it asks whether they want it.
        """
        url = self.openid_config.get("end_session_endpoint")
        try:
            check_server_url("end_session_endpoint", url or "", may_have_query=True)
        except (ProviderError, *UNREADABLE):
            return ""
        query = urlencode({"client_id": self.provider.row.settings["client_id"]})
        return f"{url}{'&' if urlsplit(url).query else '?'}{query}"

    def _verified(self, id_token: Any) -> dict[str, Any]:
        settings = self.provider.row.settings
        try:
            key = self._key_of(id_token)
            claims: dict[str, Any] = jwt.decode(
                id_token,
                key,
                algorithms=ALGORITHMS,
                issuer=settings["issuer"],
                audience=settings["client_id"],
                leeway=LEEWAY_S,
                options={"require": ["iss", "sub", "aud", "exp", "iat"]},
            )
        except jwt.PyJWTError as error:
            raise OAuth2Error(f"The id_token is invalid: {error}") from error
        except UNREADABLE as error:
            raise OAuth2Error("The id_token cannot be read.") from error
        # Of a token for several clients, this one must have asked for it.
        is_for_several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if (
            claims.get("azp", None if is_for_several else settings["client_id"])
            != (settings["client_id"])
        ):
            raise OAuth2Error("The id_token is for another client.")
        name = subject_claim(self.provider.row)
        subject = claims.get(name)
        if not isinstance(subject, str):
            raise OAuth2Error(f"The id_token has no text as {name}, which names the person.")
        if not 0 < len(subject) <= SUBJECT_MAX or "\0" in subject:
            raise OAuth2Error("The id_token's subject cannot be stored.")
        return claims

    def _key_of(self, id_token: str) -> jwt.PyJWK:
        wanted = jwt.get_unverified_header(id_token).get("kid")
        key = key_among(keys_at(self.openid_config["jwks_uri"]), wanted)
        if key is None:
            raise OAuth2Error("The provider publishes no such key.")
        return key

    def _userinfo(self, access_token: str, subject: str) -> dict[str, Any]:
        """Further claims; they count only if they are of the same person."""
        url = self.openid_config.get("userinfo_endpoint")
        if url is None:
            return {}
        info = fetch(url, "userinfo", {"Authorization": f"Bearer {access_token}"})
        if info.get("sub") != subject:
            raise OAuth2Error("The userinfo is about another person.")
        return info


class OIDCProvider(OpenIDConnectProvider):  # type: ignore[misc]  # django-allauth has no types
    """A provider, for django-allauth."""

    oauth2_adapter_class = OIDCAdapter

    def __init__(self, request: HttpRequest, row: AnyProvider) -> None:
        self.row = row
        super().__init__(request, app=_app(row))

    def get_oauth2_adapter(self, request: HttpRequest) -> OIDCAdapter:
        """The requests to this provider."""
        return OIDCAdapter(request, self)

    def get_callback_url(self) -> str:
        """Where the provider sends people back to."""
        return callback_url(self.request, self.row)

    def get_pkce_params(self) -> dict[str, str]:
        """A challenge always: PKCE protects the code of clients with a secret, too."""
        self.app.settings["oauth_pkce_enabled"] = True
        params: dict[str, str] = super().get_pkce_params()
        return params

    def redirect(
        self,
        request: HttpRequest,
        process: str,
        next_url: str | None = None,
        *,
        asks_again: bool = False,
        **kwargs: Any,
    ) -> HttpResponse:
        """Send the person to the provider, with a nonce that the id_token must repeat.

        With `asks_again` an open session there is not enough (OpenID Connect Core 1.0, 3.1.2.1).
        """
        nonce = secrets.token_urlsafe(24)
        params = {"nonce": nonce} | ({"max_age": "0", "prompt": "login"} if asks_again else {})
        response: HttpResponse = super().redirect(
            request, process, next_url, auth_params=params, nonce=nonce, **kwargs
        )
        return response

    def extract_uid(self, data: dict[str, Any]) -> str:
        """The subject."""
        return str(data[subject_claim(self.row)])

    def extract_extra_data(self, data: dict[str, Any]) -> dict[str, Any]:
        """Nothing of the person is kept."""
        return {}

    def extract_common_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        """Nothing: `tenants.identity.admission` names the account."""
        return {}

    def extract_email_addresses(self, data: dict[str, Any]) -> list[Any]:
        """None: an address proves nothing here."""
        return []

    def serialize(self) -> dict[str, Any]:
        """How a pending sign-in, which waits for a second factor, finds the provider again."""
        return {"id": self.app.provider_id}


def check_nonce(login: SocialLogin) -> None:
    """Raise OAuth2Error unless the id_token was made for this very sign-in."""
    if not constant_time_compare(str(login.claims.get("nonce")), login.state["nonce"]):
        raise OAuth2Error("The id_token was made for another sign-in.")


def callback_url(request: HttpRequest, provider: AnyProvider) -> str:
    """The redirect URI, as the provider must know it."""
    return request.build_absolute_uri(path_of(provider, "provider_callback"))


def _app(row: AnyProvider) -> SocialApp:
    """The unsaved row that django-allauth reads a provider from. Raises BoxError."""
    return SocialApp(
        provider="openid_connect",
        provider_id=provider_key(row.tenant_id, row.pk),
        name=row.name,
        client_id=row.settings["client_id"],
        secret=secret_of(row),
    )
