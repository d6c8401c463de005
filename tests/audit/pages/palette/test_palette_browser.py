"""The palette in a browser: by keys, by the link, by arrows, and without scripts."""

from playwright.sync_api import Browser, Page, expect

from tests.support.accessibility import accessibility_findings
from tests.support.browser_errors import complaints
from tests.support.factories import Cast
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in


def test_keys_lead_to_a_page(page: Page, acme: Cast) -> None:
    sign_in(page, acme.admin)
    heard = complaints(page)
    page.goto("/calls/")
    palette = page.get_by_role("dialog", name="Palette")
    page.locator("body").press("/")
    expect(palette.get_by_role("link", name="Overview")).to_be_visible()
    palette.get_by_role("searchbox").fill("rep")
    expect(palette.get_by_role("link")).to_have_text(
        ["Repeats page", "Reports page", "Search calls for rep search"]
    )
    assert accessibility_findings(page) == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(palette.get_by_role("link", name="Reports")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url("/reports/")

    page.locator("body").press("Control+k")
    palette.get_by_role("searchbox").fill("x")
    page.keyboard.press("Escape")
    expect(palette).not_to_be_visible()
    page.locator("body").press("Control+k")
    palette.get_by_role("searchbox").fill("ledg")
    expect(palette.get_by_role("link").first).to_have_text("Ledger page")
    page.keyboard.press("Enter")
    expect(page).to_have_url("/ledger/")
    assert heard == []


def test_answer_that_comes_while_the_next_text_is_typed_does_not_stay(
    page: Page, acme: Cast
) -> None:
    sign_in(page, acme.viewer)
    page.goto("/calls/")
    palette = page.get_by_role("dialog", name="Palette")
    page.locator("body").press("Control+k")
    expect(palette.get_by_role("link", name="Overview")).to_be_visible()
    page.evaluate("""() => document.addEventListener("htmx:before:swap", () => {
        const field = document.querySelector("#palette input");
        field.value = "ledg";
        field.dispatchEvent(new Event("palette:open"));
    }, {once: true})""")
    palette.get_by_role("searchbox").fill("x")
    expect(palette.get_by_role("link").first).to_have_text("Ledger page")


def test_question_mark_lists_the_keys(page: Page, acme: Cast) -> None:
    sign_in(page, acme.viewer)
    page.goto("/violations/")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    page.locator("body").press("?")
    expect(keys).to_be_visible()
    assert accessibility_findings(page) == []
    page.keyboard.press("Escape")
    expect(keys).not_to_be_visible()
    page.goto("/calls/")
    query = page.get_by_label("Query", exact=True)
    query.press_sequentially("a/?")
    expect(query).to_have_value("a/?")
    expect(keys).not_to_be_visible()


def test_link_leads_to_a_page_without_scripts(
    browser: Browser, live_server: LiveServer, acme: Cast
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, acme.viewer)
    page.goto("/")
    page.get_by_role("link", name="Go to…").click()
    page.get_by_role("main").get_by_role("searchbox").fill("viol")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("main").get_by_role("link", name="Violations").click()
    expect(page).to_have_url("/violations/")
    context.close()
