"""Chromium at a company's real provider: one story, whichever protocol it speaks."""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from tests.support.browser_errors import complaints
from tests.support.server import LiveServer, running_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LIMIT_MS = 60_000


class Provider(Protocol):
    """A process that signs people in, whatever their password."""

    port: int

    def set_groups(self, person: str, *groups: str) -> None:
        """What it says about a person from now on."""


@dataclass
class Entrance:
    """Where people sign in, and how they prove at the provider who they are."""

    server: LiveServer
    path: str
    """Of the page with the button."""
    name: str
    """On the button."""
    asks_at: str
    """Part of the address of the provider's page."""
    user_field: str

    def sign_in(self, page: "Page", person: str) -> None:
        """Press the button, and enter name and password at the provider."""
        page.goto(self.path)
        page.get_by_role("button", name=f"Sign in with {self.name}").click()
        self.prove(page, person)

    def prove(self, page: "Page", person: str) -> None:
        """Enter name and password at the provider."""
        page.wait_for_url(re.compile(self.asks_at), timeout=LIMIT_MS)
        page.locator(f"input[name={self.user_field}]").fill(person)
        page.locator("input[name=password]").fill("any")
        page.locator("input[name=password]").press("Enter")

    def arrives(self, page: "Page", path: str = "/") -> None:
        """Wait until the browser is back here, at this path."""
        page.wait_for_url(re.compile(rf"{self.server.url}{path}$"), timeout=LIMIT_MS)


def role_of(tenant_id: UUID, name: str) -> str | None:
    """The role of a member; None: there is none."""
    from tenants.models import Membership
    from tenants.scope import tenant_scope

    with tenant_scope(tenant_id):
        members = Membership.objects.filter(tenant_id=tenant_id, user__username=name)
        return members.values_list("role", flat=True).first()


def server_for(provider: Provider) -> AbstractContextManager[LiveServer]:
    """A server whose operator opened the provider's address."""
    return running_server(TOOLTRAIL_IDENTITY_ALLOW=f"127.0.0.1:{provider.port}")


def company_signs_in(
    browser: "Browser",
    entrance: Entrance,
    provider: Provider,
    tenant_id: UUID,
    name: str,
    *,
    new_key: Callable[[], None],
    last_steps: Callable[["Page"], None] | None = None,
) -> None:
    """Ada is a viewer, then with another key an admin, confirms, and then has no role.

    `name` is that of her account, `last_steps` what her last sign-in needs without scripts.
    """
    from playwright.sync_api import expect

    provider.set_groups("ada", "staff")
    new_key()
    first = browser.new_context(base_url=entrance.server.url)
    page = first.new_page()
    heard = complaints(page)
    entrance.sign_in(page, "ada")
    entrance.arrives(page)
    assert role_of(tenant_id, name) == "viewer"
    page.locator(".nav-foot summary").click()
    expect(page.locator(".nav-foot")).to_contain_text(name)

    # Another key, and another role: both count at the next sign-in.
    provider.set_groups("ada", "staff", "owners")
    new_key()
    second = browser.new_context(base_url=entrance.server.url)
    page = second.new_page()
    entrance.sign_in(page, "ada")
    entrance.arrives(page)
    assert role_of(tenant_id, name) == "admin"
    page.goto("/settings/sign-in")
    expect(page.get_by_role("heading", name="Sign-in", exact=True)).to_be_visible()

    # The provider asks again, although it has a session of this person.
    page.goto("/settings/security/confirm/provider?next=/calls/")
    page.get_by_role("button", name=f"Continue to {entrance.name}").click()
    entrance.prove(page, "ada")
    entrance.arrives(page, "/calls/")

    # Without a group the person is out, in all browsers.
    provider.set_groups("ada", "others")
    third = browser.new_context(
        base_url=entrance.server.url, java_script_enabled=last_steps is None
    )
    page = third.new_page()
    entrance.sign_in(page, "ada")
    if last_steps is not None:
        last_steps(page)
    page.wait_for_url(re.compile(rf"{entrance.server.url}/"), timeout=LIMIT_MS)
    expect(page.get_by_text("None of your groups")).to_be_visible()
    assert role_of(tenant_id, name) is None
    page = first.new_page()  # the other tab may be on its way to the sign-in already
    page.goto("/calls/")
    expect(page).to_have_url(re.compile(r"/login\?next="), timeout=LIMIT_MS)
    assert [one for one in heard if entrance.server.url in one] == []  # the provider's are its own
    for context in (first, second, third):
        context.close()
