"""Traces in a real browser: with JavaScript and without, by mouse and by keyboard."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import ConsoleMessage, Page, expect

from tests.audit.test_trace_page import send_family
from tests.factories import Cast, make_call, send_events
from tests.signing_in import sign_in

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.server import LiveServer


@pytest.fixture
def plain_page(browser: "Browser", live_server: "LiveServer") -> Iterator[Page]:
    """A tab that runs no JavaScript."""
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    context.set_default_timeout(10_000)
    yield context.new_page()
    context.close()


def complaints(page: Page) -> list[str]:
    """What the browser says of the pages from now on: refused styles, scripts, errors."""
    heard: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            heard.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: heard.append(str(error)))
    return heard


def test_from_the_list_to_the_violation(page: Page, acme: Cast) -> None:
    ids = send_family(acme)
    sign_in(page, acme.viewer)
    heard = complaints(page)
    page.get_by_role("link", name="Violations").click()
    page.wait_for_url("**/traces/?state=violation")
    page.get_by_role("link", name="trace-123").click()
    expect(page.get_by_label("Call", exact=True)).to_contain_text("fetch_page")
    page.locator(f"#c-{ids['get_weather']} a").click()
    panel = page.locator("#call-panel")
    expect(panel.get_by_role("cell", name="ENUM_MISMATCH")).to_be_visible()
    expect(page.locator(".calls a[aria-current]")).to_contain_text("get_weather")
    assert page.url.endswith(f"?call={ids['get_weather']}")
    page.go_back()
    expect(panel).to_contain_text("fetch_page")
    expect(page.locator(".calls a[aria-current]")).to_contain_text("fetch_page")
    assert heard == []


def test_the_timeline_by_keyboard(page: Page, acme: Cast) -> None:
    send_family(acme)
    sign_in(page, acme.viewer)
    page.goto("/traces/trace-123")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".calls a:focus")).to_contain_text("get_weather")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")  # the last row keeps it
    page.keyboard.press("Enter")
    expect(page.locator("#call-panel")).to_contain_text("No end has arrived")
    expect(page.locator(".calls a[aria-current]")).to_contain_text("notify")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".calls a:focus")).to_contain_text("get_weather")
    page.keyboard.press("/")
    page.keyboard.type("bad gateway")
    page.keyboard.press("Enter")
    expect(page.locator(".calls .tool")).to_have_text(["plan", "fetch_page"])


def test_without_javascript(plain_page: Page, acme: Cast) -> None:
    ids = send_family(acme)
    page = plain_page
    sign_in(page, acme.viewer)
    page.get_by_role("link", name="Failed").click()
    page.get_by_role("link", name="trace-123").click()
    page.locator(f"#c-{ids['get_weather']} a").click()
    expect(page.locator("#call-panel")).to_contain_text("ENUM_MISMATCH")
    page.get_by_role("link", name="← failure").click()
    expect(page.locator("#call-panel")).to_contain_text("Bad gateway")
    page.locator(".nav-foot summary").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("link", name="Tools")).to_be_hidden()
    page.get_by_text("Menu", exact=True).click()
    expect(page.get_by_role("link", name="Tools")).to_be_visible()


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_reaches_beyond_the_window(page: Page, acme: Cast, width: int) -> None:
    long = "x" * 120
    send_events(
        acme.tenant, make_call(trace_id=long, tool_name=long, run_id=long, args={long: long * 9})
    )
    sign_in(page, acme.viewer)
    page.set_viewport_size({"width": width, "height": 844})
    for address in ("/traces/", f"/traces/{long}"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") == width
