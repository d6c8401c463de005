"""Chromium signs in through a real OpenID provider, of a tenant and of the installation."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections
from django.utils.text import slugify
from playwright.sync_api import Browser, expect

from tenants.identity.installation import GroupRole, adding, carry_out
from tenants.identity.providers import add_provider, path_of
from tenants.identity.wanted import Wanted
from tenants.models import Role, new_id
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.identity.browser import (
    LIMIT_MS,
    Entrance,
    company_signs_in,
    role_of,
    server_for,
)
from tests.support.identity.real_provider import CLIENT, SECRET, RealProvider, real_provider
from tests.support.server import LiveServer

pytestmark = pytest.mark.slow
_ASKS = ("/interaction/", "login")


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[RealProvider]:
    with real_provider(tmp_path) as one:
        yield one


@pytest.fixture
def server(provider: RealProvider) -> Iterator[LiveServer]:
    with server_for(provider) as one:
        yield one


@pytest.mark.sampled("company in a browser", 1)
def test_company_signs_in(
    browser: Browser, server: LiveServer, provider: RealProvider, acme: Cast
) -> None:
    wanted = Wanted(
        name="Acme ID",
        issuer=provider.issuer,
        client_id=CLIENT,
        secret=SECRET,
        role_by_group={"staff": Role.VIEWER, "owners": Role.ADMIN},
    )
    with tenant_scope(acme.tenant.id):
        row = add_provider(acme.tenant, acme.admin, wanted)
    provider.redirect_uri = f"{server.url}{path_of(row, 'provider_callback')}"
    slug = acme.tenant.slug
    entrance = Entrance(server, f"/sign-in/{slug}", row.name, *_ASKS)
    company_signs_in(
        browser, entrance, provider, row.tenant_id, f"ada@{slug}", new_key=provider.start
    )


@pytest.fixture
def _no_providers_remain() -> Iterator[None]:
    """Other tests share the installation. The application may not delete a provider."""
    yield
    with connections["owner"].cursor() as cursor:
        cursor.execute("DELETE FROM installation_provider")


@pytest.mark.sampled("company in a browser", 1)
@pytest.mark.usefixtures("_no_providers_remain")
def test_installations_provider_leads_to_two_tenants_and_signs_out(
    browser: Browser, server: LiveServer, provider: RealProvider, acme: Cast, globex: Cast
) -> None:
    wanted = Wanted(f"ID {new_id().hex[-8:]}", provider.issuer, CLIENT, SECRET)
    roles = [
        GroupRole("staff", acme.tenant.pk, Role.VIEWER),
        GroupRole("staff", globex.tenant.pk, Role.EDITOR),
    ]
    change = adding(wanted, roles)
    carry_out("operator", change)
    row = change.provider
    provider.redirect_uri = f"{server.url}{path_of(row, 'provider_callback')}"
    provider.set_groups("ada", "staff")
    provider.start()
    entrance = Entrance(server, "/login", row.name, *_ASKS)
    context = browser.new_context(base_url=server.url)
    page = context.new_page()
    entrance.sign_in(page, "ada")
    entrance.arrives(page)
    name = f"ada@{slugify(row.name)}"
    assert role_of(acme.tenant.pk, name) == "viewer"
    assert role_of(globex.tenant.pk, name) == "editor"

    def sign_out() -> None:
        page.locator(".nav-foot summary").click()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", name="Signed out")).to_be_visible()

    # Without signing out there, the provider knows the person, and asks nothing.
    sign_out()
    page.get_by_role("link", name="Sign in again").click()
    page.get_by_role("button", name=f"Sign in with {row.name}").click()
    entrance.arrives(page)
    sign_out()
    page.get_by_role("link", name="Sign out at the provider, too").click()
    page.wait_for_url(re.compile("/session/end"), timeout=LIMIT_MS)
    page.get_by_role("button", name="Yes").click()
    page.wait_for_url(re.compile("/session/end/success"), timeout=LIMIT_MS)
    page.goto("/login")
    page.get_by_role("button", name=f"Sign in with {row.name}").click()
    page.wait_for_url(re.compile(_ASKS[0]), timeout=LIMIT_MS)
    context.close()
