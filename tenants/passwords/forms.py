"""Forms of passwords and addresses."""

from typing import Any

from django import forms
from django.contrib.auth.forms import SetPasswordForm
from django.core.validators import RegexValidator

from tenants.models import User

_ASCII = RegexValidator(r"\A[\x21-\x7e]*\Z", "Enter an address without special characters.")


def address_field(**more: Any) -> forms.EmailField:
    """An address to which mail can be sent by every server."""
    widget = forms.EmailInput(attrs={"class": "form-control", "autocomplete": "email"})
    return forms.EmailField(max_length=254, validators=[_ASCII], widget=widget, **more)


class ForgottenForm(forms.Form):
    """Where a link for a new password goes."""

    address = address_field(label="E-mail address of your account")


class AddressForm(forms.Form):
    """The address of an account."""

    address = address_field(
        label="E-mail address",
        required=False,
        help_text="Only links for a new password go there. Empty: none.",
    )


class NewPasswordForm(SetPasswordForm[User]):
    """A new password, typed twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "form-control"

    def save(self, commit: bool = True) -> User:
        """Store the new password, which only this person knows; the account's sessions end."""
        self.user.has_initial_password = False
        user: User = super().save(commit)
        return user
