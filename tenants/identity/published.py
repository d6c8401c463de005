"""What an OpenID provider publishes: its discovery document, and the keys by which it signs."""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jwt
import requests
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.conf import settings

from config.http.outbound import guarded_session
from tenants.identity.wanted import ProviderError, check_server_url

LEEWAY_S: Final = 60
"""How far the provider's clock may be off."""
# Signatures with a public key. With HS256, who knows the client's secret could sign.
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
UNREADABLE: Final = (KeyError, TypeError, ValueError, AttributeError)
"""What reading an answer of another shape raises."""
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")

_FRESH_S: Final = 600.0
"""For so long keys are used without a look at what the provider publishes now."""
_STALE_S: Final = 3_600.0
"""For so long they are used while the provider does not answer."""
_AGAIN_S: Final = 3.0
"""At most so often a provider is asked, whatever tokens arrive."""

_log = logging.getLogger(__name__)


class KeysUnavailableError(OAuth2Error):  # type: ignore[misc]  # django-allauth has no types
    """A provider's keys cannot be fetched at the moment, so nothing is known about a signature."""


def fetch(url: str, what: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A JSON object of a provider. `what` names it for people. Raises OAuth2Error."""
    try:
        with guarded_session(settings.IDENTITY_ALLOW) as session:
            response = session.get(url, headers=dict(headers or {}))
        document = response.json() if response.status_code == requests.codes.ok else None
    except (requests.RequestException, ValueError) as error:
        raise OAuth2Error(f"The provider's {what} cannot be fetched: {error}") from error
    if not isinstance(document, dict):
        raise OAuth2Error(f"The provider's {what} cannot be read.")
    return document


def discovery_of(issuer: str) -> dict[str, Any]:
    """The discovery document of an issuer, which must name just this one. Raises OAuth2Error."""
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    document = fetch(url, "discovery document")
    if document.get("issuer") != issuer:
        raise OAuth2Error("The discovery document names another issuer.")
    for name in (*_ENDPOINTS, "userinfo_endpoint"):
        if name in _ENDPOINTS or name in document:
            _check_endpoint(name, document.get(name))
    return document


def keys_at(url: str) -> list[jwt.PyJWK]:
    """The published keys that sign with `ALGORITHMS`.

    Raises OAuth2Error, jwt.PyJWTError, and what `UNREADABLE` names.
    """
    published = jwt.PyJWKSet.from_dict(fetch(url, "keys"))
    return [
        key
        for key in published.keys
        if key.algorithm_name in ALGORITHMS and key.public_key_use in (None, "sig")
    ]


def key_among(keys: Sequence[jwt.PyJWK], key_id: str | None) -> jwt.PyJWK | None:
    """The only key with an id, or of a token without one the only key; else None."""
    some = [key for key in keys if key_id in (None, key.key_id)]
    return some[0] if len(some) == 1 else None


class KeptKeys:
    """The keys of providers, kept in this process, as access tokens come with each request.

    A key that is not among them is asked for, so a rotation needs nothing; at most once in
    `_AGAIN_S`, so that nobody can make this server send requests.
    """

    def __init__(self) -> None:
        self._by_issuer: dict[str, _Kept] = {}

    def key(self, issuer: str, key_id: str | None) -> jwt.PyJWK:
        """A key of a provider. No transaction may be open, as it may be fetched.

        Raises KeysUnavailableError, and OAuth2Error if the provider publishes no such key.
        """
        kept = self._by_issuer.setdefault(issuer, _Kept())
        key = key_among(kept.keys, key_id)
        if key is None or kept.age_s > _FRESH_S:
            # Who has keys does not wait for the thread that asks for newer ones.
            if kept.lock.acquire(blocking=not kept.keys):
                try:
                    kept.renew(issuer)
                finally:
                    kept.lock.release()
            key = key_among(kept.keys, key_id)
        if kept.age_s > _STALE_S:
            raise KeysUnavailableError("The provider's keys cannot be fetched.")
        if key is None:
            raise OAuth2Error("The provider publishes no such key.")
        return key

    def forget(self) -> None:
        """Fetch all keys again."""
        self._by_issuer.clear()


class _Kept:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.keys: list[jwt.PyJWK] = []
        self._fetched_at = self._asked_at = float("-inf")

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._fetched_at

    def renew(self, issuer: str) -> None:
        now = time.monotonic()
        if now - self._asked_at < _AGAIN_S:
            return
        self._asked_at = now
        try:
            self.keys = keys_at(discovery_of(issuer)["jwks_uri"])
        except (OAuth2Error, jwt.PyJWTError, *UNREADABLE):
            _log.warning("the keys of %s cannot be fetched", issuer, exc_info=True)
        else:
            self._fetched_at = now


KEPT_KEYS: Final = KeptKeys()


def _check_endpoint(name: str, url: Any) -> None:
    try:
        check_server_url(name, url if isinstance(url, str) else "")
    except ProviderError as error:
        raise OAuth2Error(f"The discovery document has no usable {name}.") from error
