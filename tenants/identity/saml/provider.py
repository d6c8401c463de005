"""A SAML provider, for django-allauth: the way to it, and who comes back."""

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from allauth.socialaccount.models import SocialApp, SocialLogin
from allauth.socialaccount.providers.base import Provider, ProviderAccount
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseRedirect
from django.utils import timezone

from tenants.identity.providers import path_of
from tenants.identity.saml import MISSING, SamlError, is_installed
from tenants.identity.wanted import (
    NAME_ID,
    SUBJECT_MAX,
    ProviderError,
    check_server_url,
    subject_claim,
)
from tenants.models import AnyProvider, provider_key

if TYPE_CHECKING:
    from tenants.identity.saml.metadata import ProviderMetadata
    from tenants.identity.saml.response import Assertion, Party

# Attributes that name a person for people, in this order: of Shibboleth, Entra ID, Okta and others.
_SHOWN = (
    *("urn:oid:0.9.2342.19200300.100.1.1", "uid", "username"),
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name",
    *("urn:oid:0.9.2342.19200300.100.1.3", "mail", "email"),
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
)


class SAMLProvider(Provider):  # type: ignore[misc]  # django-allauth has no types
    """One provider during one request. What it does raises SamlError."""

    id = "saml"
    supports_redirect = True
    account_class = ProviderAccount

    def __init__(self, request: HttpRequest, row: AnyProvider) -> None:
        self.row = row
        self.name = row.name
        key = provider_key(row.tenant_id, row.pk)
        super().__init__(request, app=SocialApp(provider=self.id, provider_id=key, name=row.name))

    def redirect(
        self,
        request: HttpRequest,
        process: str,
        next_url: str | None = None,
        *,
        asks_again: bool = False,
        **kwargs: Any,
    ) -> HttpResponseRedirect:
        """Send the person to the provider, with a request that the response must name.

        With `asks_again` an open session there is not enough (SAML V2.0 Core, 3.4.1).
        """
        _needs_extra()
        from tenants.identity.saml.response import request_address

        address, request_id = request_address(
            _party(request, self.row), current_metadata(self.row), asks_again=asks_again
        )
        self.stash_redirect_state(request, process, next_url, state_id=request_id, **kwargs)
        return HttpResponseRedirect(address)

    def pending(self, request: HttpRequest, request_id: str) -> dict[str, Any] | None:
        """What this browser left for the provider with; None if it did not. It counts once."""
        try:
            state: dict[str, Any] = self.unstash_redirect_state(request, request_id)
        except PermissionDenied:
            return None
        return state

    def login_of(self, request: HttpRequest, sent: str, request_id: str) -> SocialLogin:
        """The identity that a response proves, with its claims."""
        _needs_extra()
        from tenants.identity.saml.response import verified

        party, metadata, now = _party(request, self.row), current_metadata(self.row), timezone.now()
        assertion = verified(sent, party, metadata, request_id, now)
        self._use_once(assertion, int(now.timestamp()))
        login = self.sociallogin_from_response(request, assertion)
        login.claims = _claims(assertion)
        login.authenticated_at = assertion.authenticated_at
        return login

    def _use_once(self, assertion: "Assertion", now: int) -> None:
        of = f"{self.sub_id} {assertion.id}"
        key = f"saml:{sha256(of.encode()).hexdigest()}"
        if not cache.add(key, True, timeout=assertion.usable_until - now + 1):
            raise SamlError("The assertion was used before.")

    def extract_uid(self, data: "Assertion") -> str:
        """The subject."""
        name = subject_claim(self.row)
        if name == NAME_ID:
            if data.is_transient:
                raise SamlError("The provider gives people a new name at each sign-in (transient).")
            subject = data.name_id
        else:
            values = data.attributes.get(name, [])
            if len(values) != 1:
                raise SamlError(f"The assertion has no single {name}, which names the person.")
            subject = values[0]
        if not 0 < len(subject) <= SUBJECT_MAX:
            raise SamlError("The assertion's subject cannot be stored.")
        return subject

    def extract_extra_data(self, data: "Assertion") -> dict[str, Any]:
        """Nothing of the person is kept."""
        return {}

    def extract_common_fields(self, data: "Assertion") -> dict[str, Any]:
        """Nothing: `tenants.identity.admission` names the account."""
        return {}

    def extract_email_addresses(self, data: "Assertion") -> list[Any]:
        """None: an address proves nothing here."""
        return []

    def serialize(self) -> dict[str, Any]:
        """How a pending sign-in, which waits for a second factor, finds the provider again."""
        return {"id": self.app.provider_id}


def acs_url(request: HttpRequest, provider: AnyProvider) -> str:
    """Where the provider sends its responses to."""
    return request.build_absolute_uri(path_of(provider, "provider_acs"))


def entity_id(request: HttpRequest, provider: AnyProvider) -> str:
    """This server's name for the provider: the address of its metadata."""
    return request.build_absolute_uri(path_of(provider, "provider_metadata"))


def own_metadata(request: HttpRequest, provider: AnyProvider) -> bytes:
    """This server's metadata for the provider. Raises SamlError."""
    _needs_extra()
    from tenants.identity.saml import response

    return response.own_metadata(_party(request, provider))


def current_metadata(provider: AnyProvider) -> "ProviderMetadata":
    """What was entered about the provider, or what it says at this moment. Raises SamlError."""
    from tenants.identity.saml.metadata import ProviderMetadata, fetch_metadata

    known = provider.settings
    if not known["metadata_url"]:
        return ProviderMetadata(known["issuer"], known["sso_url"], known["certificates"])
    fetched = fetch_metadata(known["metadata_url"])
    if fetched.entity_id != known["issuer"]:
        raise SamlError("The provider's metadata names another entity ID.")
    try:
        check_server_url("sso_url", fetched.sso_url, may_have_query=True)
    except ProviderError as error:
        raise SamlError("The provider's metadata has no usable sign-in address.") from error
    return fetched


def _party(request: HttpRequest, provider: AnyProvider) -> "Party":
    from tenants.identity.saml.response import Party

    return Party(entity_id(request, provider), acs_url(request, provider))


def _needs_extra() -> None:
    if not is_installed():
        raise SamlError(MISSING)


def _claims(assertion: "Assertion") -> dict[str, Any]:
    named = [assertion.attributes[name] for name in _SHOWN if assertion.attributes.get(name)]
    shown = named[0][0] if named else assertion.name_id
    return {**assertion.attributes, "preferred_username": shown}
