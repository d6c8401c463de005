"""The forms of an identity provider, one for each protocol. The rules are in `wanted`."""

from typing import Any, ClassVar

from django import forms

from tenants.identity.wanted import (
    CERTIFICATES_TEXT_MAX,
    MCP_DETAILS,
    METADATA_MAX,
    NAME_ID,
    NAME_MAX,
    SUBJECT,
    TEXT_MAX,
    Wanted,
)
from tenants.models import IdentityProvider, ProviderKind, Role

_MCP_LEAD = (
    "People can query the record with their MCP clients, such as Claude Code, Cursor or VS Code,"
    " and sign in there with this provider instead of an API key. The last three fields are for"
    " providers that need them."
)


class ProviderForm(forms.Form):
    """What every provider needs: a name, and which role a group gives."""

    kind: ClassVar[ProviderKind]
    at_provider: ClassVar[tuple[str, ...]]
    """The fields about the provider itself."""
    lead: ClassVar = ""
    """Which of these are needed, if not all."""
    fixed: ClassVar = ("issuer", "subject_claim")
    """What cannot change later."""

    name = forms.CharField(
        max_length=NAME_MAX,
        help_text="On the button of the sign-in page, such as the company's name.",
    )
    roles = forms.CharField(
        label="Roles by group",
        required=False,
        max_length=100_000,
        help_text="A line for each group, such as <code>platform = editor</code>. Of several, the"
        " strongest counts: admin, editor, auditor, viewer.",
        widget=forms.Textarea(attrs={"rows": 5, "class": "mono"}),
    )
    default_role = forms.ChoiceField(
        label="Role of all others",
        choices=[("", "None: no access"), *Role.choices],
        required=False,
    )
    asks_second_factor = forms.BooleanField(
        label="The provider asks for a second factor itself",
        required=False,
        help_text="A sign-in with it then counts as one with a second factor.",
    )
    scim = forms.BooleanField(
        label="The provider's directory decides who is a member (SCIM)",
        required=False,
        help_text="It sends people and groups here. People who are not in it have no access.",
    )

    def __init__(self, *args: Any, provider: IdentityProvider | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            if not isinstance(field.widget, forms.CheckboxInput):
                base = "form-select" if isinstance(field.widget, forms.Select) else "form-control"
                field.widget.attrs["class"] = (
                    f"{base} {field.widget.attrs.get('class', '')}".strip()
                )
                field.widget.attrs["autocomplete"] = "off"
        if provider is not None:
            for name in self.fixed:
                self.fields[name].widget.attrs["readonly"] = True
            if provider.secret_box is not None:
                self.fields["secret"].help_text = "One is stored. Leave empty to keep it."

    def sections(self) -> list[dict[str, Any]]:
        """The fields as the page shows them, with headings."""
        of_people = ("groups_claim", "subject_claim", "roles", "default_role")
        shown = [
            ("", "", ("name",)),
            ("At the provider", self.lead, self.at_provider),
            ("People", "", (*of_people, "asks_second_factor", "scim")),
        ]
        if "mcp" in self.fields:
            shown.append(("MCP clients", _MCP_LEAD, ("mcp", *MCP_DETAILS)))
        return [
            {"heading": heading, "lead": lead, "fields": [self[name] for name in names]}
            for heading, lead, names in shown
        ]

    def clean_roles(self) -> dict[str, Role]:
        """Roles by group. Raises ValidationError that names the line."""
        roles = {}
        for number, line in enumerate(self.cleaned_data["roles"].splitlines(), 1):
            if not line.strip():
                continue
            group, separator, role = line.rpartition("=")
            if not separator or role.strip() not in Role.values or not group.strip():
                known = ", ".join(Role.values)
                raise forms.ValidationError(f"Line {number}: enter GROUP = ROLE; roles: {known}.")
            roles[group.strip()] = Role(role.strip())
        return roles

    @property
    def wanted(self) -> Wanted:
        """What a valid form says."""
        given = dict(self.cleaned_data)
        roles, default = given.pop("roles"), given.pop("default_role")
        if "certificates" in given:
            given["certificates"] = (given["certificates"],) if given["certificates"] else ()
        return Wanted(
            kind=self.kind,
            role_by_group=roles,
            default_role=Role(default) if default else None,
            **given,
        )


class OpenIDForm(ProviderForm):
    """Where an OpenID provider is, and who we are there."""

    kind = ProviderKind.OIDC
    at_provider = ("issuer", "client_id", "secret")

    issuer = forms.CharField(
        max_length=TEXT_MAX,
        help_text="Its URL, exactly as its discovery document says. It cannot change later.",
    )
    client_id = forms.CharField(label="Client ID", max_length=TEXT_MAX)
    secret = forms.CharField(
        label="Client secret",
        max_length=TEXT_MAX,
        required=False,
        strip=False,
        help_text="It is stored encrypted and not shown again.",
    )
    groups_claim = forms.CharField(
        label="Claim with the groups",
        max_length=TEXT_MAX,
        initial="groups",
        help_text="The member of the id_token, or of userinfo, that lists a person's groups.",
    )
    subject_claim = forms.CharField(
        label="Claim with the person",
        max_length=TEXT_MAX,
        initial=SUBJECT,
        required=False,
        help_text="The member of the id_token that names a person, and the externalId of SCIM."
        " <code>oid</code> with Entra ID. It cannot change later.",
    )
    mcp = forms.ChoiceField(
        label="What MCP clients may read",
        choices=[
            ("off", "Nothing: access tokens are refused"),
            ("read", "All but payloads"),
            ("payloads", "Payloads, too, if the role sees them"),
        ],
        initial="off",
        required=False,
        help_text="Never more than the person may see, and than the token's scopes allow.",
    )
    mcp_audience = forms.CharField(
        label="Audience of access tokens",
        max_length=TEXT_MAX,
        required=False,
        help_text="Empty: the address for MCP clients. With Entra ID the client ID of the"
        " application that stands for this address there.",
    )
    mcp_person_claim = forms.CharField(
        label="Claim of access tokens with the person",
        max_length=TEXT_MAX,
        required=False,
        help_text="Its value must be that of the sign-in's claim above. Empty: it has the same"
        " name. <code>uid</code> with Okta.",
    )
    mcp_scope_prefix = forms.CharField(
        label="Prefix of scopes",
        max_length=TEXT_MAX,
        required=False,
        help_text="Before <code>read</code> and <code>payloads</code>, if the provider needs one."
        " With Entra ID the application ID URI and a slash.",
    )

    def clean_mcp(self) -> str:
        """A request without the field turns it off, as the page's other fields do."""
        return self.cleaned_data["mcp"] or "off"


class SamlForm(ProviderForm):
    """What a SAML provider says about itself, by an address, as XML, or as single values."""

    kind = ProviderKind.SAML
    at_provider = ("issuer", "metadata_url", "metadata", "sso_url", "certificates")
    lead = (
        "Enter the entity ID and the address of the metadata. Or only the metadata. Or entity ID,"
        " sign-in address and certificates."
    )

    metadata_url = forms.CharField(
        label="Address of the metadata",
        max_length=TEXT_MAX,
        required=False,
        help_text="It is read at each sign-in, so new certificates need no change here.",
    )
    metadata = forms.CharField(
        label="Metadata",
        max_length=METADATA_MAX,
        required=False,
        help_text="The XML, as the provider shows or downloads it. Entity ID, address and"
        " certificates are taken from it.",
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
    )
    issuer = forms.CharField(
        label="Entity ID",
        max_length=TEXT_MAX,
        required=False,
        help_text="The provider's name for itself. It cannot change later.",
    )
    sso_url = forms.CharField(
        label="Sign-in address",
        max_length=TEXT_MAX,
        required=False,
        help_text="Where people are sent to, with the HTTP-Redirect binding.",
    )
    certificates = forms.CharField(
        label="Certificates",
        max_length=CERTIFICATES_TEXT_MAX,
        required=False,
        help_text="Of the signing keys, as PEM. Several can be valid at once.",
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
    )
    groups_claim = forms.CharField(
        label="Attribute with the groups",
        max_length=TEXT_MAX,
        initial="groups",
        help_text="The name, or friendly name, of the attribute that lists a person's groups.",
    )
    subject_claim = forms.CharField(
        label="Attribute with the person",
        max_length=TEXT_MAX,
        initial=NAME_ID,
        required=False,
        help_text="Names a person, and is the externalId of SCIM. <code>NameID</code> is the"
        " assertion's subject; it must be the same at each sign-in. It cannot change later.",
    )

    def clean(self) -> dict[str, Any]:
        """New metadata replaces the values that were taken from older metadata."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if given.get("metadata") or given.get("metadata_url"):
            for name in ("sso_url", "certificates"):
                if name not in self.changed_data:
                    given[name] = ""
        return given


FORMS: dict[str, type[ProviderForm]] = {form.kind: form for form in (OpenIDForm, SamlForm)}


def initial_of(provider: IdentityProvider) -> dict[str, Any]:
    """A provider's values in the form, without the secret."""
    roles = "\n".join(f"{group} = {role}" for group, role in sorted(provider.role_by_group.items()))
    settings = dict(provider.settings)
    if "certificates" in settings:
        settings["certificates"] = "\n".join(settings["certificates"])
    return {
        "name": provider.name,
        **settings,
        "roles": roles,
        "default_role": provider.default_role or "",
    }
