"""Signs in through the form of the live server."""

from typing import TYPE_CHECKING

from django.contrib.auth.hashers import PBKDF2PasswordHasher

from tenants.models import User
from tests.support.factories import PASSWORD

if TYPE_CHECKING:
    from playwright.sync_api import Page


def sign_in(page: "Page", user: User) -> None:
    """Open the form, fill it in and end on the page it leads to."""
    # The session's own hasher is a fast one, which the real server does not accept.
    user.password = PBKDF2PasswordHasher().encode(PASSWORD, salt="browser", iterations=1)
    user.save(update_fields=["password"])
    page.goto("/login")
    page.get_by_label("Username").fill(user.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/login" not in url)
