"""Keys, members and the switcher in a real browser."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tenants.keys import authenticate, create_key
from tenants.models import Membership, Role, Scope, TenantSetting
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in

pytestmark = pytest.mark.sampled("settings in a browser", 2)


def test_key_is_created_copied_and_revoked(page: Page, acme: Cast) -> None:
    sign_in(page, acme.admin)
    page.goto("/")
    page.get_by_label("Main").get_by_role("link", name="API keys").click()
    page.get_by_label("Name").fill("crawler")
    page.get_by_label("Send events").check()
    page.get_by_role("button", name="Create key").click()
    text = page.get_by_label("Your new key").input_value()
    assert authenticate(text, Scope.INGEST).tenant_id == acme.tenant.id
    page.get_by_label("Main").get_by_role("link", name="API keys").click()
    expect(page.get_by_label("Your new key")).to_have_count(0)
    page.locator("summary", has_text="Revoke").click()
    page.get_by_role("button", name="Revoke crawler").click()
    expect(page.get_by_text("Key crawler revoked")).to_be_visible()


def test_rotated_key_works_beside_the_new_key(page: Page, acme: Cast) -> None:
    _, text = create_key(acme.tenant, "crawler", [Scope.INGEST])
    sign_in(page, acme.admin)
    page.goto("/")
    page.get_by_label("Main").get_by_role("link", name="API keys").click()
    page.locator("summary", has_text="Rotate").click()
    page.get_by_label("Old key").select_option(label="works for 7 more days")
    page.get_by_role("button", name="Rotate key").click()
    new = page.get_by_label("Your new key").input_value()
    for each in (text, new):
        assert authenticate(each, Scope.INGEST).tenant_id == acme.tenant.id
    expect(page.get_by_text("which works until")).to_be_visible()
    expect(page.locator("summary", has_text="Rotate")).to_have_count(1)


def test_retention_change_is_confirmed_and_redaction_rules_are_tried_before_saving(
    page: Page, acme: Cast
) -> None:
    sign_in(page, acme.admin)
    page.goto("/")
    page.get_by_role("link", name="Tenant", exact=True).click()
    page.get_by_label("Keep payloads (days)").fill("90")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Retention under 183 days")).to_be_visible()
    page.get_by_label("Erase older data").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    page.get_by_role("link", name="Redaction").click()
    page.get_by_label("Member names").fill("iban")
    page.get_by_label("Sample").fill('{"iban": "DE89"}')
    page.get_by_role("button", name="Test with sample").click()
    expect(page.get_by_text("1 value would be removed")).to_be_visible()
    expect(page.locator("#result")).to_contain_text('{"iban": "[redacted]"}')
    box = page.get_by_label("default rules to OpenTelemetry spans")
    expect(box).to_be_checked()
    box.uncheck()
    page.get_by_role("button", name="Save rules").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    with tenant_scope(acme.tenant.id):
        setting = TenantSetting.objects.get(tenant=acme.tenant)
    assert (setting.payload_days, setting.redact_names) == (90, ["iban"])
    assert setting.redact_otlp is False


def test_theme_and_time_zone_of_a_viewer_apply_on_every_page(page: Page, acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    sign_in(page, acme.viewer)
    page.goto("/")
    expect(page.get_by_role("link", name="Redaction")).to_have_count(0)
    page.locator(".nav-foot summary").click()
    page.get_by_role("link", name="Preferences").click()
    page.get_by_label("Time zone").select_option("Asia/Kathmandu")
    page.locator("#id_theme").select_option("dark")
    page.get_by_label("Default time range").select_option("7d")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("html[data-theme=dark]")).to_have_count(1)
    page.get_by_role("link", name="Overview").click()
    expect(page.locator(".segments [aria-current=true]")).to_have_text("7 d")
    expect(page.locator("html[data-theme=dark]")).to_have_count(1)


def test_switcher_leads_to_the_other_tenant(page: Page, acme: Cast, globex: Cast) -> None:
    with tenant_scope(globex.tenant.id):
        Membership.objects.create(tenant=globex.tenant, user=acme.admin, role=Role.ADMIN)
    sign_in(page, acme.admin)
    page.goto("/")
    page.locator(".nav-tenant summary").click()
    page.get_by_role("button", name="Globex").click()
    page.get_by_label("Main").get_by_role("link", name="Members").click()
    expect(page.get_by_text(globex.viewer.username, exact=True)).to_be_visible()
    expect(page.get_by_text(acme.viewer.username)).to_have_count(0)


def test_invited_user_joins_without_javascript(
    page: Page, browser: Browser, live_server: LiveServer, acme: Cast
) -> None:
    sign_in(page, acme.admin)
    page.goto("/")
    page.get_by_label("Main").get_by_role("link", name="Members").click()
    page.get_by_label("Invited person").fill("Nina from Support")
    page.get_by_label("Role", exact=True).select_option(label="Auditor")
    page.get_by_role("button", name="Create link").click()
    link = page.get_by_label("Invitation link").input_value()
    assert link.startswith(live_server.url)
    row = page.get_by_role("row").filter(has_text="Nina from Support")
    expect(row).to_contain_text("Auditor")
    with browser.new_context(java_script_enabled=False) as plain:
        joining = plain.new_page()
        joining.goto(link)
        expect(joining.get_by_text("invites you as Auditor")).to_be_visible()
        joining.get_by_label("Username").fill("nina")
        joining.get_by_label("Password", exact=True).fill("a password of their own")
        joining.get_by_label("Password confirmation").fill("a password of their own")
        joining.get_by_role("button", name="Create account and join").click()
        expect(joining.get_by_text("You are now a member of")).to_be_visible()
        joining.goto(link)
        expect(joining.get_by_text("It was already accepted")).to_be_visible()
    page.get_by_label("Main").get_by_role("link", name="Members").click()
    expect(page.get_by_text(f"nina@{acme.tenant.slug}", exact=True)).to_be_visible()
    expect(page.get_by_text("Nina from Support")).to_have_count(0)
