"""Repeats in a browser: loops, late results, polling tools, hostile text, axe."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.accessibility import accessibility_findings
from tests.support.browser_errors import complaints
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.hostile_text import XSS
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in


def send_loop(cast: Cast, calls: int = 4, **members: Any) -> None:
    now = datetime.now(UTC)
    sent = [
        make_call(started_at=now - timedelta(seconds=10 * n + 1), **members) for n in range(calls)
    ]
    send_events(cast.tenant, [event for call in sent for event in call])


@pytest.fixture
def looping(acme: Cast) -> Cast:
    """Two tools that are called repeatedly: one always returns the same result, one never does."""
    send_loop(acme, tool_name="poll_job", call_id="p" * 64, trace_id="watching")
    now = datetime.now(UTC)
    for n in range(3):
        output = {"status": "ok", "data": {"rolled": n}, "meta": {"took_ms": 1}}
        dice = make_call(
            tool_name="roll_dice",
            call_id="d" * 64,
            trace_id=f"game-{n}",
            started_at=now - timedelta(minutes=n + 1),
            output=output,
        )
        send_events(acme.tenant, dice, key=make_ingest_key(acme.tenant))
    return acme


def test_loop_links_to_its_calls_and_polling_tools_are_excluded(page: Page, looping: Cast) -> None:
    sign_in(page, looping.editor)
    heard = complaints(page)
    page.goto("/repeats/?range=1h")
    expect(page.locator(".loops tbody tr")).to_have_count(1)
    expect(page.locator("#same")).to_be_visible()  # arrives later
    expect(page.locator("section[aria-labelledby=same]")).to_contain_text("poll_job")
    expect(page.locator("section[aria-labelledby=different]")).to_contain_text("roll_dice")
    page.locator(".loops").get_by_role("link", name="4", exact=True).click()
    expect(page.locator(".call-rows tbody tr")).to_have_count(4)
    page.goto("/repeats/?range=1h")
    page.get_by_label("Tool to exclude").fill("poll_job")
    page.get_by_role("button", name="Exclude").press("Enter")
    page.wait_for_url("**/repeats/?range=1h")
    expect(page.locator(".loops tbody tr")).to_have_count(0)
    expect(page.get_by_text("No loops in this range")).to_be_visible()
    page.get_by_role("button", name="Include poll_job").click()
    expect(page.locator(".loops tbody tr")).to_have_count(1)
    assert heard == []


def test_link_leads_to_the_results_without_javascript(
    browser: Browser, live_server: LiveServer, looping: Cast
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, looping.viewer)
    page.goto("/repeats/?range=1h")
    page.get_by_role("link", name="Compare results").click()
    expect(page.locator("section[aria-labelledby=different]")).to_contain_text("roll_dice")
    expect(page.locator(".range-says").first).not_to_contain_text("·")
    context.close()


@pytest.mark.sampled("axe in a browser", 1)
def test_axe_reports_no_serious_issues(page: Page, looping: Cast) -> None:
    sign_in(page, looping.editor)
    for address in ("/repeats/?range=1h", "/repeats/results?range=1h", "/repeats/?tool=none"):
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert accessibility_findings(page) == [], address


@pytest.mark.sampled("hostile text in a browser", 1)
def test_hostile_agent_text_does_not_run_and_fits_a_phone(page: Page, acme: Cast) -> None:
    for text in (*XSS, "x" * 250):
        send_loop(acme, tool_name=text, call_id=text, trace_id=text)
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in(page, acme.editor)
    heard = complaints(page)
    foreign = "main :is(script:not([type='application/json']), iframe, img, [onload], [onerror])"
    for address in ("/repeats/", "/repeats/results", "/repeats/?tool=<b>x"):
        page.goto(address)
        expect(page.locator(".htmx-request")).to_have_count(0)
        assert page.evaluate("window.hacked") is None, address
        assert page.locator(foreign).count() == 0, address
        assert page.evaluate("document.documentElement.scrollWidth") == 390, address
    for text in XSS[:3]:
        page.goto("/repeats/")
        page.get_by_label("Tool to exclude").fill(text)
        page.get_by_role("button", name="Exclude").click()
        expect(page.get_by_text("is excluded from repeats")).to_be_visible()
        assert page.locator(foreign).count() == 0
    assert page.evaluate("window.hacked") is None
    assert heard == []


@pytest.mark.generated(1)
@pytest.mark.parametrize("width", [390, 1440])
def test_end_of_the_arguments_is_visible(page: Page, acme: Cast, width: int) -> None:
    """On a telephone only an ellipsis was visible."""
    args = {"limit": 3, "query": "error OR loss"}
    send_loop(acme, tool_name="search_docs", call_id="s" * 64, trace_id="looking", args=args)
    sign_in(page, acme.admin)
    page.set_viewport_size({"width": width, "height": 900})
    for address, place in (("/repeats/", "td.arguments"), ("/repeats/results", "a")):
        page.goto(address)
        shown = page.locator(f"{place} .repeat-arguments").first
        expect(shown).to_have_text('{"limit": 3, "query": "error OR loss"}')
        assert shown.evaluate(
            """(one, place) => {
              const own = one.getBoundingClientRect();
              const around = one.closest(place).getBoundingClientRect();
              return own.right <= around.right + 1 && one.scrollWidth <= one.clientWidth + 1;
            }""",
            place,
        ), address
