"""The forms of the settings pages: what may be typed, and how it is refused."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.utils import timezone

from tenants.models import ApiKey, Role, Scope, User


class KeyForm(forms.Form):
    """A new API key: what it is called, opens, and until when."""

    name = forms.CharField(
        max_length=ApiKey._meta.get_field("name").max_length,
        help_text="Where it is used, so that you know what stops when you revoke it.",
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    scopes = forms.TypedMultipleChoiceField(
        choices=Scope.choices,
        coerce=Scope,
        initial=[Scope.INGEST],
        widget=forms.CheckboxSelectMultiple,
    )
    expires_on = forms.DateField(
        required=False,
        label="Last day, UTC",
        help_text="Empty: it opens until it is revoked.",
        widget=forms.DateInput(attrs={"class": "form-control", "type": "date"}),
    )

    def clean_expires_on(self) -> datetime | None:
        """The instant the key ends: the end of its last day. Raises for a day that is over."""
        return _end_of(self.cleaned_data["expires_on"])


class RotationForm(forms.Form):
    """A key's successor: how long both open, and until when the new one does."""

    OVERLAPS: ClassVar[dict[str, tuple[str, timedelta]]] = {
        "0": ("stops at once", timedelta(0)),
        "1h": ("works for an hour more", timedelta(hours=1)),
        "24h": ("works for a day more", timedelta(days=1)),
        "7d": ("works for a week more", timedelta(days=7)),
        "30d": ("works for 30 days more", timedelta(days=30)),
    }

    overlap = forms.ChoiceField(choices=[(key, each[0]) for key, each in OVERLAPS.items()])
    expires_on = forms.DateField(required=False)

    def clean_overlap(self) -> timedelta:
        """How long the old key opens."""
        return self.OVERLAPS[self.cleaned_data["overlap"]][1]

    def clean_expires_on(self) -> datetime | None:
        """The instant the new key ends, as a new key's."""
        return _end_of(self.cleaned_data["expires_on"])


def _end_of(day: date | None) -> datetime | None:
    if day is None:
        return None
    if day < timezone.now().date():
        raise forms.ValidationError("This day is over.")
    try:
        return datetime.combine(day + timedelta(days=1), time(), UTC)
    except OverflowError:
        raise forms.ValidationError("That is beyond the calendar.") from None


class MemberForm(forms.Form):
    """A new member: somebody with an account, or a name to make one for."""

    username = forms.CharField(
        max_length=User._meta.get_field("username").max_length,
        validators=[UnicodeUsernameValidator()],
        widget=forms.TextInput(
            attrs={"class": "form-control", "autocomplete": "off", "autocapitalize": "none"}
        ),
    )
    role = forms.TypedChoiceField(
        choices=Role.choices,
        coerce=Role,
        initial=Role.VIEWER,
        widget=forms.Select(attrs={"class": "form-select"}),
    )
    is_new = forms.BooleanField(
        required=False,
        label="Make a new account",
        help_text="Its initial password is shown once.",
    )

    def clean(self) -> dict[str, Any]:
        """Find the user, so that a mistyped name does not become an account of its own."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if name := cleaned.get("username"):
            user = User.objects.filter(username=name).first()
            if cleaned["is_new"] and user is not None:
                self.add_error("username", "This account exists: add it without making one.")
            if not cleaned["is_new"] and user is None:
                self.add_error("username", "Nobody has this name. You can make a new account.")
            cleaned["user"] = user
        return cleaned


class RoleForm(forms.Form):
    """A member's role, as chosen in the list of members."""

    role = forms.TypedChoiceField(choices=Role.choices, coerce=Role)


class PasswordForm(PasswordChangeForm):
    """The old password and twice the new one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"


ROLE_HELP = {
    Role.VIEWER: "sees what ran and how it went; of payloads their shape",
    Role.EDITOR: "sees everything recorded, publishes tool versions, deals with the inbox",
    Role.AUDITOR: "sees who did what, and payloads for a reason; reports, exports, no changes",
    Role.ADMIN: "all of this, and manages keys, members and how long what is kept",
}
