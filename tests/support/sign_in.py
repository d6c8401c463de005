"""Signs in to the live server: with a session at hand, or through its form."""

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.test import Client

from tenants.models import User
from tests.support.factories import PASSWORD

if TYPE_CHECKING:
    from playwright.sync_api import Page


def sign_in(page: "Page", user: User) -> None:
    """Give the tab's browser a session of this user. No page is opened, which saves three."""
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    page.context.add_cookies(
        [{"name": name, "value": client.cookies[name].value, "domain": "127.0.0.1", "path": "/"}]
    )


def sign_in_by_form(page: "Page", user: User) -> None:
    """Open the form, fill it in and end on the page it leads to."""
    # The session's own hasher is a fast one, which the real server does not accept.
    user.password = PBKDF2PasswordHasher().encode(PASSWORD, salt="browser", iterations=1)
    user.save(update_fields=["password"])
    page.goto("/login")
    page.get_by_label("Username").fill(user.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(lambda url: "/login" not in url)
