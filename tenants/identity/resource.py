"""`/mcp` of a tenant as a protected resource of OAuth: whom an access token lets in.

Its metadata (RFC 9728) names the tenant's providers that let MCP clients in. A token is accepted
if one of them signed it for this very resource, and if its person is a member whom a session of
this provider would let in. So roles, ended members, disabled providers and second factors count as
they do at a sign-in. The requests of `/mcp` without a tenant are of API keys (`tenants.api_auth`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from allauth.socialaccount.models import SocialAccount
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from config.http.problems import problem
from tenants.accounts.policy import (
    PROVIDER,
    PROVIDER_ASKED_FACTOR,
    SEEN_AT,
    SIGNED_IN_AT,
    opens,
    why_refused,
)
from tenants.actions import record_view
from tenants.identity.access_tokens import AccessToken, TokenError, read_unverified, verified
from tenants.identity.admission import Identity
from tenants.identity.providers import providers_at
from tenants.identity.published import KEPT_KEYS, KeysUnavailableError
from tenants.models import IdentityProvider, Membership, Scope, Tenant, User, provider_key
from tenants.scope import tenant_scope

PERSON: Final = "user "
"""What `PersonIdentity.caller` begins with; no id of a key does."""
_SCOPES: Final[Mapping[str, tuple[str, ...]]] = {
    "read": (Scope.READ.value,),
    "payloads": (Scope.READ.value, Scope.PAYLOADS.value),
}
_AGAIN_S: Final = "5"


class TokenRefused(Exception):  # noqa: N818  # the term of the response
    """A request is refused; `code` is that of the problem, `headers` are of the response."""

    def __init__(self, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.headers = headers or {}


@dataclass(frozen=True, slots=True)
class PersonIdentity:
    """The caller of `/mcp` with an access token. Read operations take it as that of a key."""

    tenant_id: UUID
    user: User
    sees_payloads: bool = False

    @property
    def caller(self) -> str:
        """The person's name among the callers: ids of keys, and this."""
        return f"{PERSON}{self.user.pk}"


@dataclass(frozen=True, slots=True)
class Resource:
    """`/mcp` of a tenant, with the providers whose access tokens it takes."""

    tenant: Tenant
    url: str
    metadata_url: str
    providers: tuple[IdentityProvider, ...]

    def scopes(self) -> list[str]:
        """The scopes that a client asks for, as the providers name them."""
        named = [name for one in self.providers for name in scopes_asked_for(one)]
        return list(dict.fromkeys(named))

    def refuse(self, code: str, message: str = "", *, error: str = "") -> TokenRefused:
        """The refusal of a request, with what a client needs to get a token (RFC 6750, 3)."""
        challenge = {"realm": "tooltrail"}
        if error:
            challenge |= {"error": error, "error_description": _quotable(message)}
        challenge |= {"scope": " ".join(self.scopes()), "resource_metadata": self.metadata_url}
        text = ", ".join(f'{name}="{value}"' for name, value in challenge.items())
        return TokenRefused(code, message, {"WWW-Authenticate": f"Bearer {text}"})


def resource_url(request: HttpRequest, slug: str) -> str:
    """The address of `/mcp` for a tenant, which is the resource's name (RFC 8707)."""
    return request.build_absolute_uri(reverse("mcp_of_tenant", args=[slug]))


def scopes_asked_for(provider: IdentityProvider) -> list[str]:
    """The scopes that a client asks a provider for; none if it lets no client in."""
    prefix = provider.settings.get("mcp_scope_prefix", "")
    return [f"{prefix}{name}" for name in _SCOPES.get(provider.settings.get("mcp", ""), ())]


def find_resource(request: HttpRequest, slug: str) -> Resource | None:
    """The resource of a tenant; None if no provider of it lets MCP clients in.

    Opens the tenant's scope. The audience of tokens is an address, which a server that answers to
    any host would take from the request: such a server has no resources.
    """
    if "*" in settings.ALLOWED_HOSTS:
        return None
    providers = tuple(one for one in providers_at(slug) if one.settings.get("mcp"))
    if not providers:
        return None
    metadata = request.build_absolute_uri(reverse("protected_resource", args=[slug]))
    return Resource(providers[0].tenant, resource_url(request, slug), metadata, providers)


@require_safe
def protected_resource(request: HttpRequest, slug: str) -> HttpResponse:
    """The metadata of a tenant's resource (RFC 9728)."""
    resource = find_resource(request, slug)
    if resource is None:
        return problem("not_found", "No MCP client gets in here with an access token.")
    document = {
        "resource": resource.url,
        "resource_name": "Tooltrail",
        "authorization_servers": [one.settings["issuer"] for one in resource.providers],
        "scopes_supported": resource.scopes(),
        "bearer_methods_supported": ["header"],
        "resource_documentation": request.build_absolute_uri(
            reverse("documentation", args=["mcp/"])
        ),
    }
    return JsonResponse(document, headers={"Cache-Control": "no-cache"})


def let_in(request: HttpRequest, resource: Resource) -> PersonIdentity:
    """The member whose access token a request has. Raises TokenRefused.

    Opens the tenant's scope, and may fetch the provider's keys before.
    """
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise resource.refuse("missing_token", "Send an access token: Authorization: Bearer …")
    provider, accepted = _accepted(token.strip(), resource)
    missing = Scope.READ.value
    if missing not in accepted.scopes:
        raise resource.refuse(
            "insufficient_scope",
            f"The access token lacks the scope {missing}.",
            error="insufficient_scope",
        )
    try:
        with tenant_scope(resource.tenant.pk):
            return _member(resource.tenant, provider, accepted, timezone.now())
    except _OutsideError as outside:
        with tenant_scope(resource.tenant.pk):
            _record(provider, accepted, outside)
        reason = str(outside)
        if outside.may_sign_in_again:
            raise resource.refuse("invalid_token", reason, error="invalid_token") from None
        raise TokenRefused("forbidden", reason) from None


class _OutsideError(Exception):
    """A session of the provider would not let this person in either."""

    def __init__(self, reason: str, user: User | None, *, may_sign_in_again: bool = False) -> None:
        super().__init__(reason)
        self.user = user
        self.may_sign_in_again = may_sign_in_again


def _accepted(token: str, resource: Resource) -> tuple[IdentityProvider, AccessToken]:
    """The token and the provider that issued it. Raises TokenRefused."""
    try:
        if token.startswith("tt_"):
            raise TokenError("This is an API key. Send it to /mcp.")
        claimed = read_unverified(token)
        named = [one for one in resource.providers if one.settings["issuer"] == claimed.issuer]
        if not named:
            raise TokenError("The access token is of another issuer.")
        provider = named[0]
        key = KEPT_KEYS.key(claimed.issuer, claimed.key_id)
        audience = provider.settings.get("mcp_audience") or resource.url
        return provider, verified(token, key, provider, audience)
    except KeysUnavailableError as error:
        raise TokenRefused("provider_away", str(error), {"Retry-After": _AGAIN_S}) from error
    except (TokenError, OAuth2Error) as error:
        raise resource.refuse("invalid_token", str(error), error="invalid_token") from error


def _member(
    tenant: Tenant, provider: IdentityProvider, token: AccessToken, now: datetime
) -> PersonIdentity:
    """The member whom the token names. Raises _OutsideError."""
    key = provider_key(tenant.pk, provider.pk)
    known = SocialAccount.objects.filter(provider=key, uid=token.subject).select_related("user")
    account = known.first()
    user = None if account is None else account.user
    member = _membership(tenant, user)
    session = {
        PROVIDER: key,
        PROVIDER_ASKED_FACTOR: provider.settings["asks_second_factor"],
        SIGNED_IN_AT: token.signed_in_at,
        SEEN_AT: int(now.timestamp()),
    }
    if user is None or member is None or not user.is_active or not opens(session, member):
        sign_in = reverse("tenant_sign_in", args=[tenant.slug])
        reason = f"You are not a member here with {provider.name}. Sign in once at {sign_in}."
        raise _OutsideError(reason, user)
    if refusal := why_refused(session, member, now):
        raise _OutsideError(refusal.reason, user, may_sign_in_again=refusal.is_over)
    sees_payloads = (
        provider.settings["mcp"] == "payloads"
        and Scope.PAYLOADS.value in token.scopes
        and member.sees_payloads
    )
    return PersonIdentity(tenant.pk, user, sees_payloads)


def _membership(tenant: Tenant, user: User | None) -> Membership | None:
    if user is None:
        return None
    members = Membership.objects.filter(tenant_id=tenant.pk, user=user, is_service=False)
    return members.select_related("tenant").first()


def _record(provider: IdentityProvider, token: AccessToken, outside: _OutsideError) -> None:
    """Record that a token of the provider did not let somebody in, at most once a minute."""
    user = outside.user
    name = Identity("", token.subject, token.claims).shown if user is None else user.get_username()
    record_view(
        provider.tenant_id,
        user or provider.name,
        "session.refuse",
        name,
        reason=str(outside),
        provider=provider.name,
    )


def _quotable(text: str) -> str:
    """A text as `error_description` may have it (RFC 6750, 3): ASCII without quotes."""
    shown = text.replace('"', "'").replace("\\", "/").encode("ascii", "replace").decode()
    return "".join(each for each in shown if each.isprintable())
