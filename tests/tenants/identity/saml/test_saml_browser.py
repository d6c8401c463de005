"""Chromium signs in through SimpleSAMLphp: a new role and key, a confirmation, an end."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tenants.identity.providers import add_provider
from tenants.identity.wanted import Wanted
from tenants.models import IdentityProvider, Membership, ProviderKind, Role
from tenants.scope import tenant_scope
from tests.support.browser_errors import complaints
from tests.support.factories import Cast
from tests.support.identity.saml_provider import keys
from tests.support.identity.simplesaml import SimpleSaml, simple_saml
from tests.support.server import LiveServer, running_server

pytestmark = pytest.mark.slow
_LIMIT_MS = 60_000


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[SimpleSaml]:
    with simple_saml(tmp_path) as one:
        yield one


@pytest.fixture
def server(provider: SimpleSaml) -> Iterator[LiveServer]:
    """A server whose operator opened the provider's address."""
    with running_server(TOOLTRAIL_IDENTITY_ALLOW=f"127.0.0.1:{provider.port}") as one:
        yield one


def role_of(row: IdentityProvider, name: str) -> str | None:
    with tenant_scope(row.tenant_id):
        members = Membership.objects.filter(tenant_id=row.tenant_id, user__username=name)
        return members.values_list("role", flat=True).first()


def sign_in(page: Page, row: IdentityProvider, person: str) -> None:
    """Press the button, and at the provider enter name and password."""
    page.goto(f"/sign-in/{row.tenant.slug}")
    page.get_by_role("button", name="Sign in with Acme ID").click()
    prove(page, person)


def prove(page: Page, person: str) -> None:
    """Enter name and password at the provider."""
    page.wait_for_url(re.compile(r"loginuserpass"), timeout=_LIMIT_MS)
    page.locator("input[name=username]").fill(person)
    page.locator("input[name=password]").fill("any")
    page.locator("input[name=password]").press("Enter")


def test_company_signs_in_with_saml(
    browser: Browser, server: LiveServer, provider: SimpleSaml, acme: Cast
) -> None:
    wanted = Wanted(
        kind=ProviderKind.SAML,
        name="Acme ID",
        issuer=provider.entity_id,
        metadata_url=provider.entity_id,
        role_by_group={"staff": Role.VIEWER, "owners": Role.ADMIN},
    )
    with tenant_scope(acme.tenant.id):
        row = add_provider(acme.tenant, acme.admin, wanted)
    here = f"{server.url}/sign-in/with/{row.tenant_id}/{row.pk}"
    provider.service, provider.service_address = f"{here}/metadata", f"{here}/acs"
    provider.set_groups("ada", "staff")
    provider.start()
    name = f"ada@{acme.tenant.slug}"
    home = re.compile(rf"{server.url}/$")

    first = browser.new_context(base_url=server.url)
    page = first.new_page()
    heard = complaints(page)
    sign_in(page, row, "ada")
    page.wait_for_url(home, timeout=_LIMIT_MS)
    assert role_of(row, name) == "viewer"
    page.locator(".nav-foot summary").click()
    expect(page.locator(".nav-foot")).to_contain_text(name)

    # Another key, and another role: both count at the next sign-in.
    provider.set_groups("ada", "staff", "owners")
    provider.start(keys("two"))
    second = browser.new_context(base_url=server.url)
    page = second.new_page()
    sign_in(page, row, "ada")
    page.wait_for_url(home, timeout=_LIMIT_MS)
    assert role_of(row, name) == "admin"
    page.goto(f"/settings/sign-in/providers/{row.pk}")
    expect(page.get_by_text(f"{here}/acs")).to_be_visible()

    # The provider asks again, although it has a session of this person.
    page.goto("/settings/security/confirm/provider?next=/calls/")
    page.get_by_role("button", name="Continue to Acme ID").click()
    prove(page, "ada")
    page.wait_for_url(f"{server.url}/calls/", timeout=_LIMIT_MS)

    # Without a group the person is out, in all browsers. Here the two forms need a click each.
    provider.set_groups("ada", "others")
    third = browser.new_context(base_url=server.url, java_script_enabled=False)
    page = third.new_page()
    sign_in(page, row, "ada")
    page.get_by_role("button", name="Submit").click()  # of the provider's page
    page.get_by_role("button", name="Continue").click()  # of ours
    page.wait_for_url(re.compile(rf"/sign-in/{acme.tenant.slug}$"), timeout=_LIMIT_MS)
    expect(page.get_by_text("None of your groups gives you a role")).to_be_visible()
    assert role_of(row, name) is None
    page = first.new_page()  # the other tab may be on its way to the sign-in already
    page.goto("/calls/")
    expect(page).to_have_url(re.compile(r"/login\?next="), timeout=_LIMIT_MS)
    assert [one for one in heard if server.url in one] == []  # the provider's are its own
    for context in (first, second, third):
        context.close()
