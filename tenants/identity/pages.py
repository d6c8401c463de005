"""The pages and operations by which admins manage identity providers."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST
from ninja import Path, Query, Router
from pydantic import Field

from config.boxes import BoxError
from config.http.problems import ProblemError
from tenants.access import TenantRequest, tenant_page
from tenants.accounts.settings import RoleName
from tenants.api_acts import Act, Body, Stripped, acts, invalid
from tenants.api_auth import tenant_of
from tenants.api_reads import Answer, ListParams, Page, paged, reads, utc
from tenants.identity.directory import counts, scim_url
from tenants.identity.forms import FORMS, ProviderForm, initial_of
from tenants.identity.openid import callback_url
from tenants.identity.providers import (
    add_provider,
    all_providers,
    change_provider,
    find_provider,
    has_directory,
    switch_provider,
)
from tenants.identity.resource import resource_url, scopes_asked_for
from tenants.identity.saml import MISSING, is_installed
from tenants.identity.saml.certificates import CERTIFICATES_MAX, described
from tenants.identity.saml.provider import acs_url, entity_id
from tenants.identity.wanted import (
    GROUPS_MAX,
    MCP_DETAILS,
    METADATA_MAX,
    NAME_MAX,
    TEXT_MAX,
    McpAccess,
    ProviderError,
    Wanted,
    subject_claim,
)
from tenants.models import IdentityProvider, ProviderKind, Role, Scope, Tenant

router = Router()
_form_methods = require_http_methods(["GET", "HEAD", "POST"])
_Text = Annotated[Stripped, Field(min_length=1, max_length=TEXT_MAX)]
_MaybeText = Annotated[Stripped, Field(max_length=TEXT_MAX)]


class OneProvider(Answer):
    """An identity provider, without its secret."""

    id: UUID
    name: str
    kind: Literal["oidc", "saml"]
    issuer: str
    """Its URL; of a SAML provider its entity ID."""
    client_id: str
    """Empty with SAML."""
    has_secret: bool
    groups_claim: str
    """The claim, or attribute of SAML, that lists a person's groups."""
    role_by_group: dict[str, RoleName]
    default_role: RoleName | None
    """Of people in none of these groups; null: they do not get in."""
    asks_second_factor: bool
    """Whether a sign-in with it counts as one with a second factor."""
    subject_claim: str
    """The member of the id_token by which a person is known, and the externalId of SCIM. With SAML
    the name of an attribute, or `NameID`."""
    scim: bool
    """Whether its directory decides who is a member."""
    scim_url: str
    """Where the directory sends people and groups."""
    mcp: McpAccess
    """What MCP clients may read with the provider's access tokens."""
    mcp_url: str
    """Their address: the resource for which the provider issues these tokens."""
    mcp_audience: str
    """Of these tokens; empty: `mcp_url`."""
    mcp_person_claim: str
    """The claim of these tokens that names a person; empty: `subject_claim`."""
    mcp_scope_prefix: str
    """What the provider puts before the scopes `read` and `payloads`."""
    redirect_uri: str
    """What the provider must know as this client's; with SAML the address of its responses."""
    entity_id: str
    """What a SAML provider must know as this server's: the address of its metadata; else empty."""
    metadata_url: str
    """Where a SAML provider's metadata is fetched from at each sign-in."""
    sso_url: str
    """Where people sign in with SAML; empty if the metadata says it."""
    certificates: list[str]
    """Of the keys by which a SAML provider signs, as PEM; empty if the metadata has them."""
    created_at: datetime
    disabled_at: datetime | None


class ProviderList(Page[OneProvider]):
    """The tenant's identity providers, by name."""

    OLD_NAME = "identity_providers"


class ProviderBody(Body):
    """All that a provider needs. A secret that is left out stays as it is."""

    name: Annotated[Stripped, Field(min_length=1, max_length=NAME_MAX)]
    """On the button of the sign-in page."""
    kind: Literal["oidc", "saml"] = "oidc"
    """The protocol. It cannot change later."""
    issuer: _MaybeText = ""
    """Its URL, as in its discovery document; of a SAML provider its entity ID, which its metadata
    may say instead. It cannot change later."""
    client_id: _MaybeText = ""
    """Needed with OpenID Connect."""
    secret: Annotated[str, Field(max_length=TEXT_MAX)] = ""
    """The client's."""
    groups_claim: _Text = "groups"
    """The member of the id_token, or of userinfo, that lists a person's groups; with SAML the name
    of an attribute."""
    role_by_group: dict[str, RoleName] = Field(
        default_factory=dict[str, RoleName], max_length=GROUPS_MAX
    )
    default_role: RoleName | None = None
    """Of people in none of these groups; null: they do not get in."""
    asks_second_factor: bool = False
    subject_claim: _MaybeText = ""
    """The member of the id_token by which a person is known, and the externalId of SCIM; with SAML
    the name of an attribute. Empty: `sub`, or `NameID` with SAML. It cannot change later."""
    scim: bool = False
    """Whether the provider's directory decides who is a member."""
    mcp: McpAccess = "off"
    """What MCP clients may read with the provider's access tokens: nothing, all but payloads, or
    payloads, too, if the person's role sees them. Only with OpenID Connect."""
    mcp_audience: _MaybeText = ""
    """Of these tokens; empty: the address for MCP clients."""
    mcp_person_claim: _MaybeText = ""
    """The claim of these tokens that names a person; empty: `subject_claim`."""
    mcp_scope_prefix: _MaybeText = ""
    """What the provider puts before the scopes `read` and `payloads`."""
    metadata_url: _MaybeText = ""
    """With SAML: where the provider's metadata is fetched from at each sign-in."""
    metadata: Annotated[str, Field(max_length=METADATA_MAX)] = ""
    """With SAML, instead of an address: the provider's metadata (XML)."""
    sso_url: _MaybeText = ""
    """With SAML, instead of metadata: where people sign in (HTTP-Redirect binding)."""
    certificates: list[str] = Field(default_factory=list[str], max_length=CERTIFICATES_MAX)
    """With SAML, instead of metadata: of the keys by which the provider signs, as PEM."""

    @property
    def wanted(self) -> Wanted:
        """The body as the acts take it."""
        given = self.model_dump(exclude={"role_by_group", "default_role", "certificates"})
        roles = {group: Role(role) for group, role in self.role_by_group.items()}
        default = None if self.default_role is None else Role(self.default_role)
        certificates = tuple(self.certificates)
        return Wanted(**given, role_by_group=roles, default_role=default, certificates=certificates)


@_form_methods
@tenant_page(role=Role.ADMIN)
def provider_new(request: TenantRequest) -> HttpResponseBase:
    """Add a provider. `kind` in the address chooses the protocol."""
    kind = request.GET.get("kind", ProviderKind.OIDC)
    if kind not in FORMS:
        raise Http404("no such protocol")
    form = FORMS[kind](request.POST or None)
    if form.is_valid():
        try:
            provider = add_provider(request.tenant, request.user, form.wanted)
        except (ProviderError, BoxError) as error:
            _show_error(form, error)
        else:
            messages.success(request, "Added. Give the provider the addresses below.")
            return redirect("provider_detail", provider.pk)
    missing = MISSING if kind == ProviderKind.SAML and not is_installed() else ""
    context = {"form": form, "kind": ProviderKind(kind).label, "missing": missing}
    return render(request, "identity/provider.html", context)


@_form_methods
@tenant_page(role=Role.ADMIN)
def provider_detail(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Show and change a provider."""
    provider = _provider_or_404(request, pk)
    form = FORMS[provider.kind](
        request.POST or None, initial=initial_of(provider), provider=provider
    )
    if form.is_valid():
        try:
            is_new = change_provider(request.tenant, request.user, provider, form.wanted)
        except (ProviderError, BoxError) as error:
            _show_error(form, error)
        else:
            messages.success(request, "Saved." if is_new else "Nothing was changed.")
            return redirect("provider_detail", provider.pk)
    context = {
        "form": form,
        "provider": provider,
        "kind": provider.get_kind_display(),
        **_addresses(request, provider),
        "certificates": [described(pem) for pem in provider.settings.get("certificates", ())],
        "scim_url": scim_url(request, provider) if has_directory(provider) else None,
        "mcp_url": resource_url(request, request.tenant.slug),
        "mcp_scopes": scopes_asked_for(provider),
        "listed": counts(provider),
    }
    return render(request, "identity/provider.html", context)


@require_POST
@tenant_page(role=Role.ADMIN)
def provider_disable(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Disable a provider and end its sessions."""
    provider = _provider_or_404(request, pk)
    switch_provider(request.tenant, request.user, provider, is_on=False)
    messages.success(request, f"{provider.name} is disabled, and its sessions are ended.")
    return redirect("sign_in_settings")


@require_POST
@tenant_page(role=Role.ADMIN)
def provider_enable(request: TenantRequest, pk: UUID) -> HttpResponseBase:
    """Enable a provider again."""
    provider = _provider_or_404(request, pk)
    switch_provider(request.tenant, request.user, provider, is_on=True)
    messages.success(request, f"{provider.name} is enabled.")
    return redirect("sign_in_settings")


@reads(
    router,
    "/identity-providers",
    ProviderList,
    scope=Scope.ADMIN,
    tag="administration",
    problems=("cursor", "limit"),
)
def list_identity_providers(request: HttpRequest, params: Query[ListParams]) -> dict[str, Any]:
    """List the tenant's identity providers."""
    stored = all_providers(tenant_of(request))
    shown, after = paged("identity-providers", stored, params, lambda one: one.name)
    return {"items": [_answer(request, one) for one in shown], "next": after}


@reads(
    router,
    "/identity-providers/{uuid:provider_id}",
    OneProvider,
    scope=Scope.ADMIN,
    tag="administration",
    problems=("not_found",),
)
def read_identity_provider(request: HttpRequest, provider_id: Path[UUID]) -> dict[str, Any]:
    """Get an identity provider."""
    return _answer(request, _provider(tenant_of(request), provider_id))


@acts(
    router,
    "POST",
    "/identity-providers",
    OneProvider,
    scope=Scope.ADMIN,
    tag="administration",
    body=ProviderBody,
    status=201,
    problems=("conflict",),
)
def add_identity_provider(act: Act) -> dict[str, Any]:
    """Add an identity provider (OpenID Connect or SAML 2.0)."""
    try:
        provider = add_provider(act.tenant, act.actor, act.read(ProviderBody).wanted)
    except ProviderError as error:
        raise invalid(error.field, str(error)) from error
    except BoxError as error:
        raise ProblemError("conflict", str(error)) from error
    return _answer(act.request, provider)


@acts(
    router,
    "PUT",
    "/identity-providers/{uuid:provider_id}",
    OneProvider,
    scope=Scope.ADMIN,
    tag="administration",
    body=ProviderBody,
    problems=("not_found", "conflict"),
)
def change_identity_provider(act: Act, provider_id: Path[UUID]) -> dict[str, Any]:
    """Replace a provider's settings. Sending them again changes nothing."""
    provider = _provider(act.tenant, provider_id)
    try:
        change_provider(act.tenant, act.actor, provider, act.read(ProviderBody).wanted)
    except ProviderError as error:
        raise invalid(error.field, str(error)) from error
    except BoxError as error:
        raise ProblemError("conflict", str(error)) from error
    return _answer(act.request, provider)


@acts(
    router,
    "POST",
    "/identity-providers/{uuid:provider_id}/disable",
    OneProvider,
    scope=Scope.ADMIN,
    tag="administration",
    problems=("not_found",),
)
def disable_identity_provider(act: Act, provider_id: Path[UUID]) -> dict[str, Any]:
    """Disable a provider and end the sessions that it opened. Sending it again changes nothing."""
    provider = _provider(act.tenant, provider_id)
    switch_provider(act.tenant, act.actor, provider, is_on=False)
    return _answer(act.request, provider)


@acts(
    router,
    "POST",
    "/identity-providers/{uuid:provider_id}/enable",
    OneProvider,
    scope=Scope.ADMIN,
    tag="administration",
    problems=("not_found",),
)
def enable_identity_provider(act: Act, provider_id: Path[UUID]) -> dict[str, Any]:
    """Enable a provider again. Sending it again changes nothing."""
    provider = _provider(act.tenant, provider_id)
    switch_provider(act.tenant, act.actor, provider, is_on=True)
    return _answer(act.request, provider)


def _answer(request: HttpRequest, provider: IdentityProvider) -> dict[str, Any]:
    return {
        "id": provider.pk,
        "name": provider.name,
        "kind": str(provider.kind),
        "client_id": "",
        "metadata_url": "",
        "sso_url": "",
        "certificates": [],
        "subject_claim": subject_claim(provider),
        "scim": has_directory(provider),
        "scim_url": scim_url(request, provider),
        "mcp": "off",
        "mcp_url": resource_url(request, provider.tenant.slug),
        **dict.fromkeys(MCP_DETAILS, ""),
        **provider.settings,
        "has_secret": provider.secret_box is not None,
        "role_by_group": provider.role_by_group,
        "default_role": provider.default_role,
        **_addresses(request, provider),
        "created_at": utc(provider.created_at),
        "disabled_at": provider.disabled_at and utc(provider.disabled_at),
    }


def _addresses(request: HttpRequest, provider: IdentityProvider) -> dict[str, str]:
    """What the provider must know of this server."""
    if provider.kind == ProviderKind.SAML:
        return {
            "redirect_uri": acs_url(request, provider),
            "entity_id": entity_id(request, provider),
        }
    return {"redirect_uri": callback_url(request, provider), "entity_id": ""}


def _provider(tenant: Tenant, pk: UUID) -> IdentityProvider:
    provider = find_provider(tenant.pk, pk)
    if provider is None:
        raise ProblemError("not_found", "Identity provider not found.")
    return provider


def _provider_or_404(request: TenantRequest, pk: UUID) -> IdentityProvider:
    provider = find_provider(request.tenant.pk, pk)
    if provider is None:
        raise Http404("no such provider")
    return provider


def _show_error(form: ProviderForm, error: ProviderError | BoxError) -> None:
    name = error.field if isinstance(error, ProviderError) else ""
    name = "roles" if name == "role_by_group" else name
    form.add_error(name if name in form.fields else None, str(error))
