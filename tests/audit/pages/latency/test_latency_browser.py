"""Durations and tokens in a browser: charts, late data, hostile text, small screens, axe."""

import re
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

pytestmark = pytest.mark.sampled("latency in a browser", 2)


@pytest.fixture
def busy(acme: Cast) -> Cast:
    """Two hours of calls with every member that the page shows."""
    now = datetime.now(UTC)
    events = []
    for n in range(60):
        usage = {"prompt": 900 + n, "completion": 90}
        meta: dict[str, Any] = {"took_ms": 1, "token_usage": usage, "cache_hit": n % 4 == 0}
        meta |= {"routing": {"profile": "fast", "space": "laws"}, "source_counts": {"laws": n}}
        output: dict[str, Any] = {"status": "ok", "data": {}, "meta": meta}
        if n % 6 == 0:
            error = {"type": "UPSTREAM", "message": "no", "upstream_status": 503}
            error |= {"retry_after_ms": 500, "attempt": 1 + n % 2}
            output = {"status": "error", "error": error, "meta": meta}
        events += make_call(
            started_at=now - timedelta(minutes=2 * n, seconds=1),
            duration_ms=2.0 ** (n % 14),
            tool_name="search",
            tool_version=str(n % 3 + 1),
            output=output,
            timeouts_ms=2000,
            budget_tokens=1000,
            run_id=f"run-{n % 5}",
        )
    send_events(acme.tenant, events, key=make_ingest_key(acme.tenant))
    return acme


def test_charts_are_drawn_and_link_to_calls(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    heard = complaints(page)
    sizes = transferred(page)
    page.goto("/latency/?range=6h")
    expect(page.locator(".chart-canvas:has(canvas)")).to_have_count(3)
    expect(page.get_by_text("all 60 calls in the range")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert sum(sizes) <= MAX_TRANSFER_BYTES
    assert heard == []
    for chart in ("over-time", "histogram", "tokens"):
        assert chart_colours(page, chart) > 2, chart
    x, y = page.evaluate(  # a coloured cell: its centre is some pixels further in
        """() => {
            for (const canvas of document.querySelectorAll("#chart-over-time canvas")) {
                const { width, height } = canvas, box = canvas.getBoundingClientRect();
                const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
                for (let at = 0; at < data.length; at += 4)
                    if (data[at + 3] === 255 && data[at + 2] - data[at] > 100) {
                        const x = (at / 4) % width, y = Math.floor(at / 4 / width);
                        return [box.x + x / devicePixelRatio + 4, box.y + y / devicePixelRatio + 4];
                    }
            }
        }"""
    )
    page.mouse.click(x, y)
    page.wait_for_url("**/calls/?q=since*duration*")
    expect(page.locator(".call-rows tbody tr").first).to_be_visible()


def test_heat_map_table_links_to_calls(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    page.goto("/latency/?range=6h")
    page.locator("figure", has_text="Duration over time").get_by_text("Show as table").click()
    link = page.locator("figure", has_text="Duration over time").locator("td a").first
    counted = int(link.inner_text())
    link.click()
    expect(page.locator(".call-rows tbody tr")).to_have_count(counted)


def test_tool_version_is_selected_and_cleared(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    page.goto("/latency/?range=6h")
    page.locator(".versions").get_by_role("link", name="v2", exact=True).click()
    expect(page.locator(".versions tbody tr")).to_have_count(1)
    expect(page.get_by_text("all 20 calls in the range")).to_be_visible()
    expect(page.locator(".chart-canvas:has(canvas)")).to_have_count(3)
    page.get_by_role("link", name="Remove version filter").click()
    expect(page.locator(".versions tbody tr")).to_have_count(3)
    page.locator(".versions").get_by_role("link", name="Calls").click()
    page.wait_for_url("**sort=calls*")
    expect(page.locator("th[aria-sort]")).to_have_text("Calls")
    expect(page.get_by_text("all 60 calls in the range")).to_be_visible()


def test_refresh_keeps_the_figures_of_the_newest_calls(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    heard = complaints(page)
    page.goto("/latency/?range=6h")
    expect(page.get_by_text("all 60 calls in the range")).to_be_visible()
    with page.expect_response("**/latency/?range=6h"):
        page.get_by_role("link", name="Refresh").click()
    expect(page.locator(".htmx-request")).to_have_count(0)
    expect(page.get_by_text("all 60 calls in the range")).to_be_visible()
    assert heard == []


def test_tables_of_the_newest_calls_sort_in_their_place(page: Page, busy: Cast) -> None:
    now = datetime.now(UTC)
    send_events(busy.tenant, make_call(tool_name="a tool", timeouts_ms=9000, started_at=now))
    sign_in(page, busy.viewer)
    heard = complaints(page)
    page.goto("/latency/")
    timeouts = page.get_by_role("region", name="Timeout vs. actual")
    lead = timeouts.locator("tbody td.lead")
    expect(lead).to_have_text(["search", "a tool"])
    timeouts.get_by_role("link", name="Tool", exact=True).click()
    expect(lead).to_have_text(["a tool", "search"])
    expect(page).to_have_url(re.compile("/latency/$"))
    assert heard == []


def test_link_leads_to_the_figures_of_the_newest_calls_without_javascript(
    browser: Browser, live_server: LiveServer, busy: Cast
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, busy.viewer)
    page.goto("/latency/?range=6h")
    page.get_by_role("link", name="Per-call details").click()
    expect(page.get_by_role("heading", name="newest calls")).to_be_visible()
    expect(page.get_by_text("all 60 calls in the range")).to_be_visible()
    context.close()


@pytest.mark.sampled("axe in a browser", 1)
def test_axe_reports_no_serious_issues(page: Page, busy: Cast) -> None:
    sign_in(page, busy.viewer)
    for address in ("/latency/?range=6h", "/latency/newest?range=6h", "/latency/?tool=none"):
        page.goto(address)
        open_folds(page)
        assert accessibility_findings(page) == [], address


@pytest.mark.sampled("hostile text in a browser", 1)
def test_hostile_agent_text_does_not_run(page: Page, acme: Cast) -> None:
    send_hostile_calls(acme)
    for text in XSS:
        meta = {"routing": {"profile": text, "space": text, text: text}, "source_counts": {text: 1}}
        error = {"type": text, "message": text, "upstream_status": 500, "retry_after_ms": 10**6}
        members: dict[str, Any] = {"tool_name": text, "tool_version": text, "run_id": text}
        members |= {"trace_id": text, "timeouts_ms": 1, "budget_tokens": 1}
        meta |= {"took_ms": 1, "token_usage": {"prompt": 9, "completion": 9}}
        output = {"status": "error", "error": error, "meta": meta}
        now = datetime.now(UTC)
        calls = [
            make_call(**members, output=output, started_at=now - timedelta(seconds=60 - n))
            for n in range(2)
        ]
        send_events(acme.tenant, [event for call in calls for event in call])
    sign_in(page, acme.viewer)
    heard = complaints(page)
    for address in ("/latency/", "/latency/newest", "/latency/?tool=<b>x&version='%22><i>"):
        page.goto(address)
        expect(page.locator(".htmx-request")).to_have_count(0)
        page.evaluate("document.querySelectorAll('main details').forEach(it => { it.open = true })")
        assert page.evaluate("window.hacked") is None, address
        foreign = (
            "main :is(script:not([type='application/json']), iframe, img, [onload], [onerror])"
        )
        assert page.locator(foreign).count() == 0, address
        assert heard == [], address
    page.goto("/latency/")
    expect(page.locator("#newest .card").first).to_be_visible()
    page.locator("#chart-over-time").hover()
    assert page.evaluate("window.hacked") is None


def test_pages_fit_a_phone_screen(browser: Browser, live_server: LiveServer, busy: Cast) -> None:
    long = "x" * 120
    send_events(busy.tenant, make_call(tool_name=long, tool_version=long, run_id=long))
    context = browser.new_context(base_url=live_server.url, viewport={"width": 390, "height": 844})
    page = context.new_page()
    sign_in(page, busy.viewer)
    for address in ("/latency/", "/latency/newest", f"/latency/?tool={long}", "/latency/?from=x"):
        page.goto(address)
        expect(page.locator(".htmx-request")).to_have_count(0)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, address
    context.close()
