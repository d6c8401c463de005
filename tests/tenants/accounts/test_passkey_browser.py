"""A passkey in a real browser: added, used in place of the password, and as a confirmation."""

import re

from playwright.sync_api import Browser, expect

from tenants.models import User
from tests.support.browser_errors import complaints
from tests.support.factories import PASSWORD, Cast
from tests.support.second_factor import add_virtual_authenticator
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in_by_form


def test_passkey_replaces_the_password(
    browser: Browser, live_server: LiveServer, acme: Cast
) -> None:
    # A passkey belongs to a name: an address such as 127.0.0.1 cannot have one.
    context = browser.new_context(base_url=live_server.url.replace("127.0.0.1", "localhost"))
    page = context.new_page()
    heard = complaints(page)
    add_virtual_authenticator(page)
    sign_in_by_form(page, acme.admin)

    page.goto("/settings/security")
    page.get_by_role("row", name="Passkey").get_by_role("link", name="Add").click()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.get_by_label("Name", exact=True).fill("Laptop")
    page.get_by_label("It replaces name and password").check()
    page.get_by_role("button", name="Add passkey").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    page.get_by_role("link", name="I have saved them").click()
    expect(page.get_by_role("row", name="Laptop")).to_contain_text("no password")
    expect(page.get_by_role("row", name="this session")).to_contain_text("127.0.0.1")

    page.locator(".nav-foot summary").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(re.compile(r"/$"))

    # A closed account is told so, also to who has its passkey.
    page.locator(".nav-foot summary").click()
    page.get_by_role("button", name="Sign out").click()
    User.objects.filter(pk=acme.admin.pk).update(is_active=False)
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_text("This account is closed.")).to_be_visible()
    User.objects.filter(pk=acme.admin.pk).update(is_active=True)
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(re.compile(r"/$"))

    # It is also the second factor beside the password, and confirms.
    page.locator(".nav-foot summary").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Username").fill(acme.admin.username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="Second factor")).to_be_visible()
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(re.compile(r"/$"))
    page.goto("/settings/security")
    page.get_by_role("row", name="Laptop").get_by_role("link", name="Remove…").click()
    page.get_by_role("button", name="Use passkey").click()
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("row", name="Laptop")).to_have_count(0)
    assert heard == []
    context.close()


def test_refused_passkey_is_explained(
    browser: Browser, live_server: LiveServer, acme: Cast
) -> None:
    context = browser.new_context(base_url=live_server.url.replace("127.0.0.1", "localhost"))
    page = context.new_page()
    session = add_virtual_authenticator(page)
    page.goto("/login")
    expect(page.locator("#passkey-failed")).to_be_hidden()
    session.send("WebAuthn.disable")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.locator("#passkey-failed")).to_be_visible()
    context.close()
