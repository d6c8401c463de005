"""What a file of configuration may contain. Pure.

The models are also the published JSON Schema (`docs/schemas/config.json`).
"""

from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    model_validator,
)

from audit.alerts.maintenance import Maintenance
from audit.alerts.rules import Rule
from audit.queries.boards import BoardPage
from audit.queries.polling import NAME_LENGTH as TOOL_NAME_LENGTH
from audit.queries.saved_views import NAME_LENGTH
from tenants.actions import storable_text
from tenants.identity.wanted import McpAccess
from tenants.models import Role, Scope


def _storable(value: object) -> object:
    return storable_text(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_storable), StringConstraints(strip_whitespace=True)]
_Name = Annotated[Text, Field(min_length=1, max_length=100)]
_User = Annotated[Text, Field(min_length=1, max_length=150)]
_ToolName = Annotated[
    str, BeforeValidator(_storable), Field(min_length=1, max_length=TOOL_NAME_LENGTH)
]


def _with_zone(value: object) -> object:
    """The time in UTC. One without an offset is in UTC, and a day is its beginning."""
    if not isinstance(value, str):
        return value
    at = datetime.fromisoformat(value)
    try:
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except OverflowError as error:
        raise ValueError("the year is out of range") from error


Instant = Annotated[datetime, BeforeValidator(_with_zone)]


class Part(BaseModel):
    """A part of the file. Unknown members are refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True
    )

    def is_given(self, member: str) -> bool:
        """Whether the file has this member: one that it lacks stays as it is."""
        return member in self.model_fields_set


class Secret(Part):
    """Where a secret is: in an environment variable or in a file. Name one of them."""

    env: str = ""
    """Name of the variable."""
    file: str = ""
    """Path of the file, relative to the file of configuration."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.env) == bool(self.file):
            raise ValueError("name either env or file")
        return self


class Retention(Part):
    """For how many days data is kept; null: forever."""

    payload_days: int | None = None
    index_days: int | None = None
    floor_days: int | None = None
    """The retention floor; null: none. A file can raise it, and two admins lower it."""


class RedactionRules(Part):
    """What is removed from events before they are stored."""

    names: list[str] = []
    """Names of members whose values are removed."""
    patterns: list[str] = []
    """Regular expressions: a text with a match is removed."""
    otlp: bool = True
    """Whether the SDK's default rules apply to OpenTelemetry data."""
    clear_principals: bool = False
    """Whether principals are stored in clear text, and not as pseudonyms."""


class Witness(Part):
    """A server of somebody else that signs the checkpoints of the ledger."""

    url: str
    """The prefix of its URL."""
    key: str
    """Its public key: name+id+key."""


class Witnesses(Part):
    """The witnesses of the ledger, and how many of them must sign."""

    needed: int
    witnesses: list[Witness] = []
    timestamp_url: str = ""
    """Of a time authority (RFC 3161); empty: none."""


class SignIn(Part):
    """What the tenant asks of a sign-in. What is absent stays as it is."""

    second_factor_roles: list[Annotated[Role, Field(strict=False)]] = []
    """Roles whose members need a second factor."""
    step_up: bool = False
    """Whether a reveal, an erasure and the release of a hold need a fresh confirmation."""
    session_idle_minutes: int | None = None
    """A session ends after so many minutes without a page; null: it does not."""
    session_max_hours: int | None = None
    """A session ends so many hours after the sign-in; null: after two weeks."""
    anonymous_links: bool = False
    """Whether share links may open without a sign-in."""


class _Provider(Part):
    """What providers of tenants and of the installation share."""

    name: _Name
    """On the button of the sign-in page."""
    kind: Literal["oidc", "saml"] = "oidc"
    """The protocol. It cannot change later."""
    issuer: str = ""
    """Its URL, as in its discovery document; of a SAML provider its entity ID, which its metadata
    may say instead. It cannot change later."""
    client_id: str = ""
    """Needed with OpenID Connect."""
    secret: Secret | None = None
    """The client's."""
    groups_claim: str = "groups"
    subject_claim: str = ""
    """The claim or attribute that names a person; empty: `sub`, or `NameID` with SAML. It cannot
    change later."""
    asks_second_factor: bool = False
    """Whether a sign-in with it counts as one with a second factor."""
    metadata_url: str = ""
    """With SAML: where the provider's metadata is fetched from at each sign-in."""
    metadata: str = ""
    """With SAML, instead of an address: the provider's metadata (XML)."""
    sso_url: str = ""
    """With SAML, instead of metadata: where people sign in (HTTP-Redirect binding)."""
    certificates: list[str] = []
    """With SAML, instead of metadata: of the keys by which the provider signs, as PEM."""
    is_disabled: bool = False


class DeclaredProvider(_Provider):
    """A company's sign-in. What is absent has its default; a secret that is absent stays."""

    role_by_group: dict[Text, Annotated[Role, Field(strict=False)]] = {}
    default_role: Annotated[Role, Field(strict=False)] | None = None
    """Of people in none of these groups; null: they do not get in."""
    scim: bool = False
    """Whether its directory decides who is a member. The directory's key is one of `keys`."""
    mcp: McpAccess = "off"
    """What MCP clients may read with its access tokens. Only with OpenID Connect."""
    mcp_audience: str = ""
    """Of these tokens; empty: the address of `/mcp` for the tenant."""
    mcp_person_claim: str = ""
    """The claim of these tokens that names a person; empty: `subject_claim`."""
    mcp_scope_prefix: str = ""
    """What the provider puts before the scopes `read` and `payloads`."""


class DeclaredGroupRole(Part):
    """A group of a provider of the installation, and the role that it gives in a tenant."""

    group: Text
    tenant: str
    """The tenant's slug."""
    role: Annotated[Role, Field(strict=False)]


class DeclaredInstallationProvider(_Provider):
    """A sign-in for all tenants. What is absent has its default; a secret that is absent stays."""

    roles: list[DeclaredGroupRole] = []
    """In these tenants people become members by their groups. Who was invited gets in without."""


class SsoOnly(Part):
    """Whether only identity providers open the tenant."""

    is_on: bool
    break_glass: _User | None = None
    """The admin with a password who gets in all the same; needed if it is on."""


class Member(Part):
    """A person with a role. A new account is made; an existing one is only invited."""

    user: _User
    role: Annotated[Role, Field(strict=False)] = Role.VIEWER
    password: Secret | None = None
    """Of a new account. Without it, the person cannot sign in until `changepassword` sets one."""


class ServiceAccount(Part):
    """A member that is a program: keys that it owns outlive people."""

    name: str
    """Lower-case letters, digits and `. _ -`. As the owner of a key: `service:NAME@SLUG`."""
    is_disabled: bool = False
    """Whether its keys are refused."""


class Key(Part):
    """An API key. A stored key does not change: another secret makes another key of this name."""

    name: _Name
    scopes: Annotated[list[Annotated[Scope, Field(strict=False)]], Field(min_length=1)]
    secret: Secret | None = None
    """The whole key. If it names a file that does not exist, the key is made and written there."""
    purpose: Annotated[Text, Field(max_length=300)] = ""
    owner: _User | None = None
    """The member who answers for it."""
    expires_at: Instant | None = None
    allowed_addresses: list[str] = []
    """Networks from which it is accepted; none: from everywhere."""


class _Channel(Part):
    name: _Name


class EmailChannel(_Channel):
    """Alerts by e-mail."""

    kind: Literal["email"]
    recipients: list[str]
    sender: str
    host: str
    """The mail server."""
    port: int = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: str = ""
    password: Secret | None = None


class WebhookChannel(_Channel):
    """Alerts as signed requests."""

    kind: Literal["webhook"]
    url: str
    secret: Secret | None = None
    """Of the signatures: `whsec_` and the base64 of 24 to 64 bytes."""


class UrlChannel(_Channel):
    """Alerts to Slack or another service. The URL is a secret."""

    kind: Literal["slack", "service"]
    url: Secret | None = None


Channel = Annotated[EmailChannel | WebhookChannel | UrlChannel, Discriminator("kind")]


class View(Part):
    """A query of calls that a member has saved."""

    owner: _User
    name: Annotated[Text, Field(min_length=1, max_length=NAME_LENGTH)]
    q: str = Field(examples=["tool:search state:error"])
    page: Literal["calls", "traces", "violations", "latency", "costs"] = "calls"
    """The page that it is a view of. Of others than calls, `q` is what follows the address's ?."""
    shared: bool = False
    """Whether all members are offered it."""


class Reports(Part):
    """Which reports the worker makes, and how long all reports are kept."""

    kinds: list[Literal["day", "week", "month"]] = []
    time_zone: str = "UTC"
    keep_days: int = 400


class Price(Part):
    """What a tool's calls cost."""

    tool: str
    amount: Annotated[str, Field(examples=["0.004"])]
    """A decimal number as a text: of each completed call, or of each unit."""
    path: str = Field("", examples=["output.meta.pages"])
    """Where the result has its units; absent: each call costs alike."""


class ModelPrice(Part):
    """What a million tokens of a model cost: decimal numbers as texts."""

    model: str
    """As spans report it."""
    input: Annotated[str, Field(examples=["2.50"])]
    output: Annotated[str, Field(examples=["10"])]
    cached: str | None = None
    """Of input read from a cache; absent: as `input`."""
    written: str | None = None
    """Of input written to a cache; absent: as `input`."""


class PriceList(Part):
    """The prices that hold from a day, in UTC, until the next list."""

    holds_from: Annotated[date, Field(strict=False)]
    currency: str = Field(examples=["EUR"])
    prices: list[Price] = []
    models: list[ModelPrice] = []


class DeclaredTenant(Part):
    """A tenant. A section that is absent stays as it is, even with `--prune`."""

    slug: str
    """Names the tenant, and cannot be changed."""
    id: Annotated[UUID, Field(strict=False)] | None = None
    """Of a new tenant. API keys contain it, so keys of an earlier installation need it."""
    name: Annotated[Text, Field(min_length=1, max_length=200)] | None = None
    time_zone: str | None = None
    """IANA name; empty: UTC."""
    retention: Retention | None = None
    redaction: RedactionRules | None = None
    witnesses: Witnesses | None = None
    sign_in: SignIn | None = None
    identity_providers: list[DeclaredProvider] | None = None
    sso_only: SsoOnly | None = None
    members: list[Member] | None = None
    service_accounts: list[ServiceAccount] | None = None
    keys: list[Key] | None = None
    channels: list[Channel] | None = None
    alert_rules: list[Rule] | None = None
    maintenance_windows: list[Maintenance] | None = None
    polling_tools: list[_ToolName] | None = None
    """Names of tools that repeat calls on purpose: they are in no repeats."""
    saved_views: list[View] | None = None
    boards: list[BoardPage] | None = None
    """Shared boards. Private ones stay as they are."""
    reports: Reports | None = None
    price_lists: list[PriceList] | None = None
    tools: list[dict[str, Any]] | None = None
    """Tools as in an export of the registry, or definitions of OpenAI, Anthropic or MCP. An entry
    with only `file` stands for the tools of that file."""
    checks_on_arrival: list[_ToolName] | None = None
    """Names of registered tools whose outputs the server validates if no guard did."""


class Installation(Part):
    """What belongs to no tenant. A section that is absent stays as it is, even with `--prune`."""

    identity_providers: list[DeclaredInstallationProvider] | None = None


class Document(Part):
    """A file of configuration."""

    version: Literal[1]
    installation: Installation | None = None
    tenants: list[DeclaredTenant]
