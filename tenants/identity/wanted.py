"""What somebody enters about an identity provider, and its check. No database."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

from config.http.given_urls import checked_url
from tenants.identity.saml import MISSING, SamlError, is_installed
from tenants.identity.saml.certificates import read_certificates
from tenants.models import AnyProvider, ProviderKind, Role

NAME_MAX = 40
TEXT_MAX = 500
METADATA_MAX = 200_000
CERTIFICATES_TEXT_MAX = 50_000
GROUPS_MAX = 200
SUBJECT = "sub"
"""The claim that names a person, unless a provider has another."""
NAME_ID = "NameID"
"""The same with SAML: the subject of the assertion. Another name is that of an attribute."""
SUBJECT_MAX = 191
"""Characters of a person's name at a provider: as django-allauth stores it."""

McpAccess = Literal["off", "read", "payloads"]
"""What MCP clients of a provider's people may read with its access tokens."""
MCP_DETAILS: Final = ("mcp_audience", "mcp_person_claim", "mcp_scope_prefix")
"""What a provider may do in another way than RFC 9068 and RFC 8707 say."""


class ProviderError(ValueError):
    """A value of a provider is invalid. `field` names it; the message is for people."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody entered about a provider."""

    name: str
    """On its button."""
    issuer: str = ""
    """Its URL, as in its discovery document; with SAML its entity ID. It cannot change later: a
    subject is only known with its issuer."""
    client_id: str = ""
    """With OpenID Connect."""
    secret: str = ""
    """The client's; empty: the one that is stored."""
    groups_claim: str = "groups"
    """The claim, or attribute of SAML, with a person's groups."""
    role_by_group: Mapping[str, Role] = field(default_factory=dict[str, Role])
    default_role: Role | None = None
    """Of who is in none of these groups; None: no membership."""
    asks_second_factor: bool = False
    """Whether a sign-in with it counts as one with a second factor."""
    subject_claim: str = ""
    """The claim or attribute that names a person; empty: `sub`, or `NameID` with SAML. It cannot
    change later."""
    scim: bool = False
    """Whether its directory decides who is a member (`tenants.identity.directory`)."""
    mcp: McpAccess = "off"
    """What MCP clients may read with the provider's access tokens (`tenants.identity.resource`)."""
    mcp_audience: str = ""
    """The audience of these tokens; empty: the address of `/mcp` for the tenant."""
    mcp_person_claim: str = ""
    """The claim of these tokens that names a person; empty: as at the sign-in."""
    mcp_scope_prefix: str = ""
    """What the provider puts before the names of scopes."""
    kind: str = ProviderKind.OIDC
    metadata: str = ""
    """With SAML: XML that says the entity ID, the address and the certificates."""
    metadata_url: str = ""
    """With SAML: where this XML is fetched from at each sign-in."""
    sso_url: str = ""
    """With SAML: where people sign in (HTTP-Redirect binding)."""
    certificates: tuple[str, ...] = ()
    """With SAML: of the keys by which it signs, as PEM."""

    @property
    def subject(self) -> str:
        """The claim or attribute that names a person."""
        return self.subject_claim or (NAME_ID if self.kind == ProviderKind.SAML else SUBJECT)


def subject_claim(provider: AnyProvider) -> str:
    """The claim or attribute that names a person."""
    default = NAME_ID if provider.kind == ProviderKind.SAML else SUBJECT
    return str(provider.settings.get("subject_claim", default))


def columns_of(wanted: Wanted) -> dict[str, Any]:
    """The columns of a provider that was checked."""
    settings: dict[str, Any] = {
        "issuer": wanted.issuer,
        "groups_claim": wanted.groups_claim,
        "asks_second_factor": wanted.asks_second_factor,
    }
    if wanted.kind == ProviderKind.SAML:
        settings["metadata_url"] = wanted.metadata_url
        settings["sso_url"] = wanted.sso_url
        settings["certificates"] = list(wanted.certificates)
    else:
        settings["client_id"] = wanted.client_id
    # Providers from before these settings do not have them.
    if wanted.subject != replace(wanted, subject_claim="").subject:
        settings["subject_claim"] = wanted.subject
    if wanted.scim:
        settings["scim"] = True
    if wanted.mcp != "off":
        settings["mcp"] = wanted.mcp
    settings |= {name: value for name in MCP_DETAILS if (value := getattr(wanted, name))}
    return {
        "name": wanted.name,
        "settings": settings,
        "role_by_group": {group: str(role) for group, role in wanted.role_by_group.items()},
        "default_role": None if wanted.default_role is None else str(wanted.default_role),
    }


def checked(wanted: Wanted, taken: set[str]) -> Wanted:
    """The same with what its metadata says. `taken` are other names. Raises ProviderError."""
    is_saml = wanted.kind == ProviderKind.SAML
    wanted = _checked_saml(wanted) if is_saml else wanted
    names = ("name", "issuer", "groups_claim", "subject")
    for name in names if is_saml else (*names, "client_id"):
        value = getattr(wanted, name)
        longest = NAME_MAX if name == "name" else TEXT_MAX
        if not value or len(value) > longest or not value.isprintable():
            shown = "subject_claim" if name == "subject" else name
            raise ProviderError(shown, f"Enter one line of at most {longest} characters.")
    if wanted.name in taken:
        raise ProviderError("name", "Another provider has this name.")
    if len(wanted.secret) > TEXT_MAX or not wanted.secret.isprintable():
        raise ProviderError("secret", "Enter one line of text.")
    if not is_saml:
        _check_openid(wanted)
    _check_mcp(wanted)
    if len(wanted.role_by_group) > GROUPS_MAX:
        raise ProviderError("role_by_group", f"Enter at most {GROUPS_MAX} groups.")
    for group in wanted.role_by_group:
        if not group or len(group) > TEXT_MAX or not group.isprintable():
            raise ProviderError("role_by_group", "A group has a name of one line.")
    return wanted


def checked_change(provider: AnyProvider, wanted: Wanted, taken: set[str]) -> Wanted:
    """As `checked`, of a provider that is stored: a part cannot change. Raises ProviderError."""
    if wanted.kind != provider.kind:
        raise ProviderError("kind", "The protocol cannot change. Add another provider.")
    wanted = checked(wanted, taken)
    if wanted.issuer != provider.settings["issuer"]:
        raise ProviderError("issuer", "The issuer cannot change. Add another provider.")
    if wanted.subject != subject_claim(provider):
        raise ProviderError("subject_claim", "This claim cannot change. Add another provider.")
    return wanted


def check_server_url(name: str, url: str, *, may_have_query: bool = False) -> None:
    """Raise ProviderError unless a text is the URL of a server, without fragment."""
    try:
        checked_url(url, may_have_query=may_have_query)
    except ValueError as error:
        raise ProviderError(name, str(error)) from None


def _check_openid(wanted: Wanted) -> None:
    check_server_url("issuer", wanted.issuer)
    for name in ("metadata", "metadata_url", "sso_url", "certificates"):
        if getattr(wanted, name):
            raise ProviderError(name, "Only a SAML provider has this.")


def _check_mcp(wanted: Wanted) -> None:
    if wanted.mcp not in get_args(McpAccess):
        raise ProviderError("mcp", f"Enter one of {', '.join(get_args(McpAccess))}.")
    if wanted.mcp != "off" and wanted.kind != ProviderKind.OIDC:
        raise ProviderError("mcp", "Only an OpenID Connect provider issues access tokens.")
    for name in MCP_DETAILS:
        value = getattr(wanted, name)
        if len(value) > TEXT_MAX or not value.isprintable() or " " in value:
            raise ProviderError(name, f"Enter one word of at most {TEXT_MAX} characters.")
        if not value.isascii() or '"' in value or "\\" in value:
            raise ProviderError(name, "Enter ASCII characters without quotes and backslashes.")
    if wanted.mcp_audience and wanted.mcp_audience == wanted.client_id:
        raise ProviderError(
            "mcp_audience",
            "This is the client ID of the sign-in, which is the audience of ID tokens. Register"
            " /mcp at the provider as an application of its own.",
        )


def _checked_saml(wanted: Wanted) -> Wanted:
    if not is_installed():
        raise ProviderError("kind", MISSING)
    for name in ("client_id", "secret"):
        if getattr(wanted, name):
            raise ProviderError(name, "A SAML provider has none.")
    entered = [bool(wanted.metadata), bool(wanted.metadata_url)]
    entered.append(bool(wanted.sso_url or wanted.certificates))
    if entered.count(True) != 1:
        raise ProviderError(
            "metadata_url",
            "Enter the address of the metadata, or the metadata, or a sign-in address with"
            " certificates.",
        )
    if wanted.metadata_url:
        if len(wanted.metadata_url) > TEXT_MAX:
            raise ProviderError("metadata_url", f"Enter at most {TEXT_MAX} characters.")
        check_server_url("metadata_url", wanted.metadata_url, may_have_query=True)
        return wanted
    if wanted.metadata:
        wanted = _from_metadata(wanted)
    if len(wanted.sso_url) > TEXT_MAX:
        raise ProviderError("sso_url", f"Enter at most {TEXT_MAX} characters.")
    check_server_url("sso_url", wanted.sso_url, may_have_query=True)
    if len("".join(wanted.certificates)) > CERTIFICATES_TEXT_MAX:
        raise ProviderError("certificates", "Enter fewer certificates.")
    if not wanted.certificates:
        raise ProviderError("certificates", "Enter the provider's certificate.")
    try:
        certificates = tuple(read_certificates("\n".join(wanted.certificates)))
    except SamlError as error:
        raise ProviderError("certificates", str(error)) from error
    return replace(wanted, certificates=certificates)


def _from_metadata(wanted: Wanted) -> Wanted:
    from tenants.identity.saml.metadata import read_metadata

    if len(wanted.metadata) > METADATA_MAX:
        raise ProviderError("metadata", f"Enter at most {METADATA_MAX:,} characters.")
    try:
        read = read_metadata(wanted.metadata)
    except SamlError as error:
        raise ProviderError("metadata", str(error)) from error
    if wanted.issuer not in ("", read.entity_id):
        raise ProviderError("issuer", f"The metadata has another entity ID: {read.entity_id[:200]}")
    return replace(
        wanted,
        metadata="",
        issuer=read.entity_id,
        sso_url=read.sso_url,
        certificates=tuple(read.certificates),
    )
