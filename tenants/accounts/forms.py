"""Forms of django-allauth with our words."""

from typing import Any

from allauth.mfa.webauthn.forms import AddWebAuthnForm


class AddPasskeyForm(AddWebAuthnForm):  # type: ignore[misc]  # django-allauth has no types
    """A new passkey or security key."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        passwordless = self.fields["passwordless"]
        passwordless.label = "It replaces name and password"
        passwordless.help_text = (
            "You sign in with it alone. The device asks for your fingerprint or PIN each time."
        )
