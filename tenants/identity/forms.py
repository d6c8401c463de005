"""The form of an identity provider. The rules are in `tenants.identity.providers`."""

from typing import Any

from django import forms

from tenants.identity.providers import NAME_MAX, SUBJECT, TEXT_MAX, Wanted
from tenants.models import IdentityProvider, Role


class ProviderForm(forms.Form):
    """What a provider needs: where it is, who we are there, and which role a group gives."""

    name = forms.CharField(
        max_length=NAME_MAX,
        help_text="On the button of the sign-in page, such as the company's name.",
    )
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
        choices=[("", "None: they do not get in"), *Role.choices],
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
        help_text="It sends people and groups here. Whoever is not in it does not get in.",
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
            for name in ("issuer", "subject_claim"):
                self.fields[name].widget.attrs["readonly"] = True
            if provider.secret_box is not None:
                self.fields["secret"].help_text = "One is stored. Leave empty to keep it."

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
        given = self.cleaned_data
        return Wanted(
            **{name: given[name] for name in ("name", "issuer", "client_id", "secret")},
            groups_claim=given["groups_claim"],
            role_by_group=given["roles"],
            default_role=Role(given["default_role"]) if given["default_role"] else None,
            asks_second_factor=given["asks_second_factor"],
            subject_claim=given["subject_claim"] or SUBJECT,
            scim=given["scim"],
        )


def initial_of(provider: IdentityProvider) -> dict[str, Any]:
    """A provider's values in the form, without the secret."""
    roles = "\n".join(f"{group} = {role}" for group, role in sorted(provider.role_by_group.items()))
    return {
        "name": provider.name,
        **provider.settings,
        "roles": roles,
        "default_role": provider.default_role or "",
    }
