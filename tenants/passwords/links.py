"""Links for a new password and for an address, and the mails with them."""

from datetime import timedelta

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.forms import PasswordResetForm
from django.contrib.auth.tokens import default_token_generator
from django.core import signing
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from config.http.origin import own_url
from tenants.mail.outgoing import send_later
from tenants.mail.texts import Letter, harmless
from tenants.models import User
from tenants.service_accounts import PREFIX
from tenants.sessions import record_session

ACCOUNTS_MAX = 10
"""With one address. Each gets a mail of its own."""
_SALT = "tooltrail address"
_HOLDS = "It works once, and for three hours."


class NoLinkError(ValueError):
    """An account gets no link; the message is for people."""


def link_for(user: User) -> str:
    """A link by which an account gets a new password.

    Raises NoLinkError for an account that has none, because a provider signs it in or it is a
    program's, and for one that is closed.
    """
    if user.get_username().startswith(PREFIX):
        raise NoLinkError("a service account has no password")
    if not user.is_active:
        raise NoLinkError("the account is closed")
    if not user.has_usable_password() and SocialAccount.objects.filter(user=user).exists():
        raise NoLinkError("an identity provider signs this account in")
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    token = default_token_generator.make_token(user)
    return own_url() + reverse("password_reset", args=[uid, token])


def mail_links(address: str) -> None:
    """Mail a link to each account that has this address and a password. Others get nothing."""
    users = list(PasswordResetForm().get_users(address))
    for user in users[:ACCOUNTS_MAX]:
        assert isinstance(user, User)
        name = harmless(user.get_username())
        letter = Letter(
            f"A new password for {name}",
            [f"Somebody asked for a new password of the account {name} in Tooltrail."],
            link_for(user),
            "Choose a new password",
            [f"{_HOLDS} If it was not you, do nothing: the password stays."],
        )
        record_session(user, "password.ask")
        # To the stored address: an equal one may be somebody else's, letter for letter.
        send_later(user.email, letter, timezone.now() + _validity())


def mail_address(user: User, address: str) -> None:
    """Mail a link that proves that an address is the user's."""
    token = signing.dumps([user.pk, user.email, address], salt=_SALT)
    name = harmless(user.get_username())
    letter = Letter(
        "Confirm your e-mail address",
        [f"The account {name} in Tooltrail wants its links for a new password at this address."],
        own_url() + reverse("address_confirm", args=[token]),
        "Use this address",
        ["It holds for three hours. If it was not you, do nothing."],
    )
    send_later(address, letter, timezone.now() + _validity())


def address_in(token: str, user: User) -> str | None:
    """The address that a link proves; None if it is not this user's, too old, or was used."""
    try:
        pk, before, address = signing.loads(token, salt=_SALT, max_age=_validity())
    except (signing.BadSignature, ValueError, TypeError):
        return None
    return str(address) if (pk, before) == (user.pk, user.email) else None


def _validity() -> timedelta:
    return timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)
