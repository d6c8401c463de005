"""The guide in the browser: what it copies, and axe-core in each of its states."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, Page, expect

from audit.alerts.starter import add_starter_rules
from tenants.scope import tenant_scope
from tests.support.accessibility import accessibility_findings
from tests.support.browser_errors import complaints
from tests.support.contracts import make_contract
from tests.support.factories import Cast, make_call, make_ingest_key, send_events
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in
from tools_registry.changes import Publisher
from tools_registry.schemas import ToolContract
from tools_registry.versions import register_contracts


def nothing(cast: Cast, page: Page) -> None:
    sign_in(page, cast.admin)


def viewer(cast: Cast, page: Page) -> None:
    sign_in(page, cast.viewer)


def key_made(cast: Cast, page: Page) -> None:
    sign_in(page, cast.admin)
    page.goto("/")
    page.get_by_role("button", name="Create API key").click()
    expect(page.get_by_text("Your new key is in the lines below.")).to_be_visible()


def call_seen(cast: Cast, page: Page) -> None:
    sign_in(page, cast.admin)
    send_events(cast.tenant, make_call(tool_name="get_weather"), key=make_ingest_key(cast.tenant))


def all_done(cast: Cast, page: Page) -> None:
    call_seen(cast, page)
    contract = ToolContract.model_validate(make_contract())
    with tenant_scope(cast.tenant.id):
        register_contracts(cast.tenant, [contract], Publisher(key_id="key"))
        add_starter_rules(cast.tenant, cast.admin, datetime.now(UTC))


@pytest.mark.generated(1)
@pytest.mark.parametrize("state", [nothing, viewer, key_made, call_seen, all_done])
def test_each_state_is_accessible_and_fits(
    state: Callable[[Cast, Page], None], acme: Cast, page: Page
) -> None:
    heard = complaints(page)
    state(acme, page)
    if state is not key_made:
        page.goto("/first-steps/")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert accessibility_findings(page) == []
    assert heard == []


def test_copy_button_copies_the_key(acme: Cast, browser: Browser, live_server: LiveServer) -> None:
    context = browser.new_context(base_url=live_server.url)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    key_made(acme, page)
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied: str = page.evaluate("navigator.clipboard.readText()")
    url, key = copied.split("\n")
    assert url == f"export TOOLTRAIL_URL={live_server.url}"
    send_events(acme.tenant, make_call(), key=key.removeprefix("export TOOLTRAIL_API_KEY="))
    context.close()


def test_guide_needs_no_script(acme: Cast, browser: Browser, live_server: LiveServer) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    key_made(acme, page)
    expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    page.get_by_text("smolagents", exact=True).click()
    expect(page.get_by_text("record_tools(agent, trail)")).to_be_visible()
    line = page.get_by_text("export TOOLTRAIL_API_KEY=tt_").inner_text()
    send_events(acme.tenant, make_call(), key=line.rpartition("=")[2])
    expect(page.get_by_role("heading", name="No tool calls yet")).to_be_visible()
    page.get_by_role("link", name="Refresh").click()
    expect(page.get_by_role("link", name="Open its trace")).to_be_visible()
    context.close()
