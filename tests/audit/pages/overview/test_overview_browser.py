"""Overview and violations in a browser: charts, their tables, marks that lead to calls."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.accessibility import accessibility_findings, open_folds
from tests.support.browser_errors import complaints
from tests.support.browser_pages import MAX_TRANSFER_BYTES, chart_colours, transferred
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.hostile_text import XSS, send_hostile_calls
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in

pytestmark = pytest.mark.sampled("overview in a browser", 2)


@pytest.fixture
def busy(acme: Cast) -> Cast:
    """Two hours of calls: some fail, some violate their schema."""
    now = datetime.now(UTC)
    failed = {"status": "error", "error": {"type": "FATAL", "message": "no"}, "meta": {}}
    failed["meta"] = {"took_ms": 1}
    violation = {"path": "$.items[2].name", "severity": "error", "code": "WRONG_TYPE"}
    violation |= {"expected": "string", "received": "number"}
    guard = {"strategy": "coerce-and-warn", "outcome": "coerced", "violations": [violation]}
    events = []
    for n in range(60):
        more: dict[str, Any] = {"output": failed} if n % 6 == 0 else {}
        more |= {"guard": guard} if n % 10 == 0 else {}
        at = now - timedelta(minutes=2 * n, seconds=1)
        events += make_call(started_at=at, tool_name="search", tool_version="4", **more)
    send_events(acme.tenant, events, key=make_ingest_key(acme.tenant))
    return acme


def test_charts_are_drawn_and_a_mark_links_to_its_calls(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    heard = complaints(page)
    sizes = transferred(page)
    page.goto("/?range=6h")
    expect(page.locator(".chart-canvas canvas")).to_have_count(4)
    for chart in ("calls", "errors", "latency", "violations"):
        assert chart_colours(page, chart) > 2, chart
    page.wait_for_load_state("networkidle")
    assert sum(sizes) <= MAX_TRANSFER_BYTES
    box = page.locator("#chart-calls canvas").bounding_box()
    assert box is not None
    # Near the right edge, where the newest calls are; from the bottom up to the first mark.
    canvas = page.locator("#chart-calls canvas")
    for up in range(30, 120, 6):
        page.mouse.move(box["x"] + box["width"] - 24, box["y"] + box["height"] - up)
        if canvas.evaluate("(it) => getComputedStyle(it).cursor") == "pointer":
            break
    page.mouse.down()
    page.mouse.up()
    page.wait_for_url("**/calls/?q=since*")
    expect(page.locator(".call-rows tbody tr").first).to_be_visible()
    assert heard == []


def test_every_figure_links_to_the_same_number_of_calls(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    page.goto("/?range=6h&pause=1")
    addresses = {
        text: page.locator(selector).first.get_attribute("href")
        for selector, text in (
            (".tile:nth-child(1) .value a", "60"),
            (".tile:nth-child(2) .value a", "10"),
            (".tile:nth-child(3) .value a", "6"),
        )
    }
    expect(page.locator(".tile:nth-child(2) .value")).to_have_text("16.7\u00a0%")
    for count, address in addresses.items():
        assert address is not None
        page.goto(address)
        expect(page.locator(".tally")).to_have_text(count)


def test_chart_table_works_by_keyboard(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    heard = complaints(page)
    page.goto("/?range=6h")
    summary = page.locator(".chart-table summary").first
    summary.focus()
    page.keyboard.press("Enter")
    table = page.get_by_role("region", name="Calls by state, table")
    expect(table).to_be_visible()
    link = table.get_by_role("link").first
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/calls/?q=since*")
    assert heard == []


def test_selected_range_redraws_without_reload(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    heard = complaints(page)
    page.goto("/")
    page.get_by_role("link", name="15 min", exact=True).click()
    page.wait_for_url("**/?range=15m")
    expect(page.locator(".chart-canvas canvas")).to_have_count(4)
    expect(page.locator(".chart figcaption").first).to_contain_text("per minute")
    page.get_by_text("Custom", exact=True).click()
    page.get_by_label("From").fill("2020-01-01T00:00")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("alert")).to_contain_text("longer than 400 days")
    expect(page.locator(".tile")).to_have_count(0)
    assert heard == []


def test_page_refreshes_unless_hidden_or_paused(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    page.goto("/?range=1h")
    calls = page.locator(".tile .value").first
    before = calls.inner_text()
    poll = "document.querySelector('[hx-trigger*=\"every\"]').dispatchEvent(new Event('every'))"
    send_events(busy.tenant, make_call(tool_name="fresh"))
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.evaluate(poll)
    page.wait_for_timeout(400)
    expect(calls).to_have_text(before)
    page.evaluate("Object.defineProperty(document, 'hidden', {value: false})")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(calls).not_to_have_text(before)
    expect(page.locator(".chart-canvas canvas")).to_have_count(4)
    page.get_by_role("link", name="pause").click()
    page.wait_for_url("**pause=1*")
    expect(page.locator('[hx-trigger*="every"]')).to_have_count(0)


def test_tables_replace_charts_without_javascript(
    browser: Browser, live_server: LiveServer, busy: Cast
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, busy.viewer)
    page.goto("/?range=6h")
    expect(page.locator(".chart-canvas").first).to_be_hidden()
    expect(page.get_by_role("region", name="Calls by state, table")).to_be_visible()
    page.get_by_role("link", name="1 h", exact=True).click()
    expect(page.locator(".chart figcaption").first).to_contain_text("per minute")
    page.goto("/violations/?range=6h")
    page.locator(".heat td a").first.click()
    expect(page.locator(".chips li")).to_have_count(2)
    context.close()


@pytest.mark.sampled("hostile text in a browser", 1)
def test_hostile_agent_text_does_not_run(page: Page, acme: Cast) -> None:
    send_hostile_calls(acme)
    violation = {"severity": "error", "code": "WRONG_TYPE"}
    for text in XSS:
        hostile = [{**violation, "path": f"$.{text}", "expected": text, "received": text}]
        guard = {"strategy": text[:32], "outcome": "passed", "violations": hostile}
        send_events(acme.tenant, make_call(tool_name=text, tool_version=text, guard=guard))
    sign_in(page, acme.admin)
    heard = complaints(page)
    for address in ("/", "/?range=30d", "/violations/", "/violations/?range=30d&path=<b>x"):
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        for fold in page.locator("main details > summary").all():
            if fold.is_visible():
                fold.click()
        assert page.evaluate("window.hacked") is None, address
        assert page.locator("main iframe, main img, main [onload], main [onerror]").count() == 0
        assert page.locator("main script:not([type='application/json'])").count() == 0
    page.goto("/violations/")
    page.locator(".kinds .where a").first.click()
    expect(page.locator(".chips li")).to_have_count(3)
    assert page.evaluate("window.hacked") is None
    assert heard == []


def test_violations_are_narrowed_down_to_one_call(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    heard = complaints(page)
    page.goto("/violations/?range=6h")
    expect(page.locator(".heat td a")).to_have_text("6")
    expect(page.locator(".shares").get_by_text("coerced", exact=True)).to_be_visible()
    page.locator(".kinds .where a").press("Enter")
    expect(page.locator(".chips li")).to_have_count(3)
    expect(page.locator(".kinds .r").nth(4)).to_contain_text("10.0")  # of the version's calls
    page.locator(".samples .when a").first.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("in trace")
    expect(page.locator("mark, .is-violation").first).to_be_visible()
    assert heard == []


def test_pages_fit_a_phone_screen(page: Page, acme: Cast) -> None:
    long = "x" * 250
    violation = {"path": f"$.{long}", "severity": "error", "code": "WRONG_TYPE"}
    violation |= {"expected": long, "received": long}
    guard = {"strategy": "warn", "outcome": "passed", "violations": [violation]}
    send_events(acme.tenant, make_call(tool_name=long, tool_version=long, guard=guard))
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in(page, acme.viewer)
    for address in ("/", "/violations/", f"/violations/?tool={long}", "/?from=x"):
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390, address


@pytest.mark.sampled("axe in a browser", 1)
def test_axe_reports_no_serious_issues(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    for address in ("/?range=6h", "/violations/?range=6h", "/violations/?tool=search&from=x"):
        page.goto(address)
        open_folds(page)
        assert accessibility_findings(page) == [], address
