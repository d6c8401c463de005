"""The forms of the settings pages and their validation."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, ClassVar, cast

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, UserCreationForm
from django.utils import timezone

from tenants.admin_acts import WantedKey
from tenants.keys import NETWORKS_MAX, read_networks
from tenants.mail.outgoing import is_on
from tenants.members import members_of
from tenants.models import ApiKey, Invitation, Role, Scope, Tenant, User
from tenants.passwords.forms import address_field
from tenants.service_accounts import NAME_MAX as SERVICE_NAME_MAX


class MemberField(forms.ModelChoiceField):  # type: ignore[type-arg]  # not generic at run time
    """A choice of members, shown by their user names."""

    def label_from_instance(self, obj: Any) -> str:
        """The member's user name."""
        return str(obj.get_username())


class KeyForm(forms.Form):
    """A new API key."""

    name = forms.CharField(
        max_length=ApiKey._meta.get_field("name").max_length,
        help_text="Where the key is used, so that you know what stops when you revoke it.",
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    purpose = forms.CharField(
        max_length=ApiKey._meta.get_field("purpose").max_length,
        required=False,
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    owner = MemberField(
        queryset=User.objects.none(),
        required=False,
        empty_label="You",
        help_text="The member or service account that answers for the key.",
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    scopes = forms.TypedMultipleChoiceField(
        choices=Scope.choices,
        coerce=Scope,
        initial=[Scope.INGEST],
        widget=forms.CheckboxSelectMultiple,
    )
    allowed_addresses = forms.CharField(
        required=False,
        max_length=NETWORKS_MAX * 50,
        help_text="One address or network per line, such as 10.0.0.0/8. Leave empty to accept the"
        " key from everywhere.",
        widget=forms.Textarea(attrs={"class": "form-control mono", "rows": 2}),
    )
    expires_on = forms.DateField(
        required=False,
        label="Last day (UTC)",
        help_text="Leave empty for no expiry.",
        widget=forms.DateInput(attrs={"class": "form-control", "type": "date"}),
    )

    def __init__(self, *args: Any, tenant: Tenant, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        owner = cast(MemberField, self.fields["owner"])
        owner.queryset = members_of(tenant)

    def clean_allowed_addresses(self) -> list[str]:
        """The networks. Raises ValidationError for a text that is none."""
        try:
            return read_networks(self.cleaned_data["allowed_addresses"].split())
        except ValueError as error:
            raise forms.ValidationError(f"{error}.") from None

    def clean_expires_on(self) -> datetime | None:
        """When the key expires: the end of its last day. Raises ValidationError for a past day."""
        return _end_of(self.cleaned_data["expires_on"])

    @property
    def wanted(self) -> WantedKey:
        """The key from the form."""
        members = dict(self.cleaned_data)
        return WantedKey(expires_at=members.pop("expires_on"), **members)


class RotationForm(forms.Form):
    """A key's replacement: how long the old key still works, and the last day of the new one."""

    OVERLAPS: ClassVar[dict[str, tuple[str, timedelta]]] = {
        "0": ("stops immediately", timedelta(0)),
        "1h": ("works for 1 more hour", timedelta(hours=1)),
        "24h": ("works for 1 more day", timedelta(days=1)),
        "7d": ("works for 7 more days", timedelta(days=7)),
        "30d": ("works for 30 more days", timedelta(days=30)),
    }

    overlap = forms.ChoiceField(choices=[(key, each[0]) for key, each in OVERLAPS.items()])
    expires_on = forms.DateField(required=False)

    def clean_overlap(self) -> timedelta:
        """How long the old key still works."""
        return self.OVERLAPS[self.cleaned_data["overlap"]][1]

    def clean_expires_on(self) -> datetime | None:
        """When the new key expires: the end of its last day, as in `KeyForm`."""
        return _end_of(self.cleaned_data["expires_on"])


def _end_of(day: date | None) -> datetime | None:
    if day is None:
        return None
    if day < timezone.now().date():
        raise forms.ValidationError("This day is in the past.")
    try:
        return datetime.combine(day + timedelta(days=1), time(), UTC)
    except OverflowError:
        raise forms.ValidationError("This date is too far in the future.") from None


class InvitationForm(forms.Form):
    """An invitation: for whom, and the role. The invited person chooses the account."""

    label = forms.CharField(
        max_length=Invitation._meta.get_field("label").max_length,
        label="Invited person",
        help_text="A name or an address, for you and the audit log. It need not be a user name.",
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    role = forms.TypedChoiceField(
        choices=Role.choices,
        coerce=Role,
        initial=Role.VIEWER,
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    email = address_field(
        label="Mail the link to",
        required=False,
        help_text="Leave empty to get the link yourself, and hand it over.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not is_on():
            del self.fields["email"]


class ServiceAccountForm(forms.Form):
    """A new service account."""

    name = forms.CharField(
        max_length=SERVICE_NAME_MAX,
        help_text="Lower-case letters, digits, and . _ - between them.",
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )


class AccountForm(UserCreationForm[User]):
    """A new account for an invited person: a user name, and a password typed twice.

    The name ends with the tenant's slug (`ada@acme`). So "this name is taken" reveals only
    accounts made in this tenant, and everybody sees in which tenant an account was made.
    """

    _NAME_MAX = 80  # fits into the column (150) with `@` and a slug of 63

    class Meta:
        model = User
        fields = ("username",)

    def __init__(self, *args: Any, tenant: Tenant, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tenant = tenant
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"
        name = self.fields["username"]
        name.help_text = f"You sign in with this name followed by @{tenant.slug}."
        name.widget.attrs |= {
            "maxlength": self._NAME_MAX,
            "autofocus": False,
            "autocapitalize": "none",
        }

    def clean_username(self) -> str:
        """The complete name. Raises ValidationError if it has an `@`, is too long, or is taken."""
        name = self.cleaned_data["username"]
        if "@" in name:
            raise forms.ValidationError(f"Enter the name without @. @{self.tenant.slug} is added.")
        if len(name) > self._NAME_MAX:
            raise forms.ValidationError(f"At most {self._NAME_MAX} characters.")
        self.cleaned_data["username"] = f"{name}@{self.tenant.slug}"
        return super().clean_username()


class RoleForm(forms.Form):
    """A member's role, chosen in the list of members."""

    role = forms.TypedChoiceField(choices=Role.choices, coerce=Role)


class PasswordForm(PasswordChangeForm):
    """Change of the user's own password: the old one, and the new one typed twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"

    def save(self, commit: bool = True) -> User:
        """Store the new password; this ends the user's other sessions."""
        self.user.has_initial_password = False
        user: User = super().save(commit)
        return user


ROLE_HELP = {
    Role.VIEWER: "sees calls and figures; structure of payloads only",
    Role.EDITOR: "sees all recorded data, publishes tool versions, resolves rejected events",
    Role.AUDITOR: "sees the audit log, and payloads for a reason; reports, exports, no changes",
    Role.ADMIN: "all of this, and manages keys, members and retention",
}
