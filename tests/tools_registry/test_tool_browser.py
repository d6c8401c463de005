"""An editor compares two versions and restores one, in a browser with the real policy."""

from playwright.sync_api import Page, expect

from tests.support.browser_errors import complaints
from tests.support.factories import Cast
from tests.support.registered_tools import NARROW, register_tool, send_call
from tests.support.sign_in import sign_in


def test_editor_compares_and_restores_a_version(page: Page, acme: Cast) -> None:
    heard = complaints(page)
    register_tool(acme)
    register_tool(acme, description="Tells it.", input_schema=NARROW, on_collision="replace")
    send_call(acme, "called_only")
    sign_in(page, acme.editor)

    page.goto("/tools/")
    page.get_by_role("link", name="get_weather").click()
    page.get_by_role("link", name="Versions").click()
    page.get_by_role("link", name="Compare with version 1").click()
    expect(page.get_by_text("breaks callers")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="maxLength")).to_contain_text("$.city")
    page.get_by_role("link", name="Swap").click()
    expect(page.get_by_text("compatible for callers")).to_be_visible()
    page.get_by_label("From").select_option("1")
    page.get_by_label("To").select_option("2")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("breaks callers")).to_be_visible()

    page.get_by_role("link", name="get_weather").click()
    page.get_by_role("table").get_by_role("link", name="1", exact=True).click()
    page.locator("#reason").fill("Callers send longer names.")
    page.get_by_role("button", name="Make current").click()
    expect(page.get_by_role("status")).to_contain_text("Version 1 is now current")
    timeline = page.get_by_role("listitem").filter(has_text="Made current")
    expect(timeline).to_contain_text("Callers send longer names.")
    expect(timeline).to_contain_text(acme.editor.username)
    assert heard == [], "the policy forbids something the page does"
