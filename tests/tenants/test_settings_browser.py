"""Keys, members and the switcher in a real browser."""

from playwright.sync_api import Page, expect

from tenants.keys import authenticate
from tenants.models import Membership, Role, Scope
from tenants.scope import tenant_scope
from tests.factories import Cast
from tests.signing_in import sign_in


def test_a_key_is_made_copied_and_revoked(page: Page, acme: Cast) -> None:
    sign_in(page, acme.admin)
    page.get_by_role("link", name="API keys").click()
    page.get_by_label("Name").fill("crawler")
    page.get_by_label("Send events").check()
    page.get_by_role("button", name="Create key").click()
    text = page.get_by_label("Your new key").input_value()
    assert authenticate(text, Scope.INGEST).tenant_id == acme.tenant.id
    page.get_by_role("link", name="API keys").click()
    expect(page.get_by_label("Your new key")).to_have_count(0)
    page.locator("summary", has_text="Revoke").click()
    page.get_by_role("button", name="Revoke crawler").click()
    expect(page.get_by_text("no longer opens anything")).to_be_visible()


def test_the_switcher_leads_to_the_other_tenant(page: Page, acme: Cast, globex: Cast) -> None:
    with tenant_scope(globex.tenant.id):
        Membership.objects.create(tenant=globex.tenant, user=acme.admin, role=Role.ADMIN)
    sign_in(page, acme.admin)
    page.locator(".nav-tenant summary").click()
    page.get_by_role("button", name="Globex").click()
    page.get_by_role("link", name="Members").click()
    expect(page.get_by_text(globex.viewer.username, exact=True)).to_be_visible()
    expect(page.get_by_text(acme.viewer.username)).to_have_count(0)
