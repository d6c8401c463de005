"""The list of calls in a browser: completion, live tail, counts, hostile text, small screens."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from audit.models import PayloadSearch
from audit.work.payload_search import run_slice
from tenants.scope import tenant_scope
from tests.support.browser_errors import complaints
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.hostile_text import XSS, send_hostile_calls
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in

pytestmark = pytest.mark.sampled("list of calls in a browser", 2)

NAMED = ("tool_name", "tool_version", "trace_id", "run_id")


@pytest.mark.sampled("hostile text in a browser", 1)
def test_scripts_in_agent_text_run_on_no_page(page: Page, acme: Cast) -> None:
    send_hostile_calls(acme)
    sign_in(page, acme.admin)
    heard = complaints(page)
    page.goto("/calls/?q=tool:%3Cscript%3Ealert(1)%3C/script%3E+nothing:1")
    expect(page.get_by_role("alert")).to_be_visible()
    for address in ("/calls/?live=1", "/calls/open", "/calls/", "/calls/?q=state:error"):
        page.goto(address)
        expect(page.locator(".call-rows tbody tr").first).to_be_visible()
        assert page.evaluate("window.hacked") is None, address
        assert (
            page.locator(
                "main script:not([type='application/json']), main iframe, main img, main [onload]"
            ).count()
            == 0
        )
        assert heard == [], address
    field = page.get_by_label("Query", exact=True)
    for typed in ("error:", "code:", "violation:", "path:", "tool:", "version:"):
        with page.expect_response(lambda answer: "/calls/complete" in answer.url):
            field.fill(typed)
    expect(page.locator("#call-terms option")).not_to_have_count(0)
    page.get_by_text("Save view").click()
    page.get_by_label("Name", exact=True).fill(XSS[1])
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".view")).to_have_count(1)
    page.goto("/calls/")
    page.get_by_text("Search in payloads").click()
    page.get_by_label("Text in arguments or output").fill("needle <")
    page.locator(".mini").get_by_role("button", name="Search").click()
    expect(page.get_by_text("No matches so far")).to_be_visible()
    with tenant_scope(acme.tenant.id):
        search = PayloadSearch.objects.for_tenant(acme.tenant.id).get()
    run_slice(acme.tenant.id, search.id)
    expect(page.locator(".hits mark").first).to_be_visible()  # without a reload
    assert page.evaluate("window.hacked") is None
    assert heard == []


def test_live_page_adds_new_calls_and_completes_open_ones(page: Page, acme: Cast) -> None:
    key, now = make_ingest_key(acme.tenant), datetime.now(UTC)
    running = make_call(tool_name="running", started_at=now - timedelta(seconds=20))
    send_events(acme.tenant, [running[0]], key=key)
    send_events(
        acme.tenant, make_call(tool_name="old", started_at=now - timedelta(hours=1)), key=key
    )
    sign_in(page, acme.editor)
    heard = complaints(page)
    page.goto("/calls/")
    page.get_by_role("link", name="Live", exact=True).click()
    rows = page.locator(".call-rows tbody tr:not(.tail-end)")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("open for")
    for width in (1280, 1600):  # without and with the column of runs
        page.set_viewport_size({"width": width, "height": 720})
        page.wait_for_function(  # the window is laid out anew after its size was set
            "() => { const right = (each) => each.getBoundingClientRect().right;"
            " const table = document.querySelector('.call-rows');"
            " const cells = [...table.querySelector('tbody tr').cells];"
            " return Math.abs(right(table) - Math.max(...cells.map(right))) < 1; }"
        )
    send_events(acme.tenant, make_call(tool_name="fresh", started_at=now), key=key)
    expect(rows).to_have_count(3)
    expect(rows.first).to_contain_text("fresh")
    send_events(acme.tenant, [running[1]], key=key)
    expect(rows.nth(1)).not_to_contain_text("open for")
    page.get_by_role("link", name="stop").click()
    expect(page.get_by_role("link", name="Live", exact=True)).to_be_visible()
    assert "live" not in page.url
    assert heard == []


def test_query_is_completed_submitted_and_counted(page: Page, acme: Cast) -> None:
    error = {"type": "UPSTREAM", "message": "no"}
    failed = {"status": "error", "error": error, "meta": {"took_ms": 1}}
    send_events(acme.tenant, make_call(tool_name="search", output=failed))
    send_events(acme.tenant, make_call(tool_name="other"))
    sign_in(page, acme.editor)
    heard = complaints(page)
    page.goto("/calls/")
    expect(page.locator(".tally")).to_have_text("2")
    field = page.get_by_label("Query", exact=True)
    field.press_sequentially("state:error tool:s")
    option = page.locator('#call-terms option[value="state:error tool:search"]')
    expect(option).to_have_count(1)
    field.fill("state:error tool:search")
    field.press("Enter")
    page.wait_for_url("**/calls/?q=state*")
    expect(page.locator(".call-rows tbody tr")).to_have_count(1)
    expect(page.locator(".tally")).to_have_text("1")
    page.get_by_role("link", name="OK", exact=True).click()
    expect(page.get_by_role("heading", name="No calls match")).to_be_visible()
    page.go_back()
    expect(page.locator(".call-rows tbody tr")).to_have_count(1)
    page.locator(".which a").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("search in trace")
    assert heard == []


def test_click_on_a_count_that_is_not_there_yet_stays_on_the_list(page: Page, acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    sign_in(page, acme.editor)
    heard = complaints(page)
    held: list[Route] = []
    page.route("**/calls/count*", lambda route: held.append(route))
    with page.expect_request("**/calls/count*"):
        page.goto("/calls/")
    page.get_by_role("link", name="Count matches").click()
    assert page.url.endswith("/calls/")
    assert len(held) == 1
    held[0].continue_()
    expect(page.locator(".tally")).to_have_text("1")
    assert heard == []


def test_list_works_without_javascript(
    browser: Browser, live_server: LiveServer, acme: Cast
) -> None:
    send_events(acme.tenant, make_call(tool_name="search", duration_ms=3000))
    send_events(acme.tenant, make_call(tool_name="quick"))
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, acme.editor)
    page.goto("/calls/")
    page.get_by_text("All filters").click()
    page.get_by_role("textbox", name="Duration").fill(">2s")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".call-rows tbody tr")).to_have_count(1)
    assert page.url.endswith("/calls/?q=duration%3A%3E2s")
    page.get_by_role("link", name="Count matches").click()
    expect(page.get_by_text("1", exact=True)).to_be_visible()
    context.close()


def test_no_call_page_scrolls_sideways_on_a_phone(page: Page, acme: Cast) -> None:
    long = "x" * 120
    error = {"type": long, "message": long, "code": long}
    output = {"status": "error", "error": error, "meta": {"took_ms": 1}}
    members: dict[str, Any] = {
        "tool_name": long,
        "tool_version": long,
        "trace_id": long,
        "run_id": long,
    }
    send_events(
        acme.tenant,
        [
            *make_call(**members, output=output, args={"q": "needle" + long}),
            *make_call(**members, producer_id=long, timeouts_ms=1, is_open=True),
        ],
    )
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in(page, acme.editor)
    heard = complaints(page)
    for address in (
        *("/calls/", "/calls/?live=1", "/calls/open", f"/calls/?q=tool:{long}+{long}"),
        *(f"/calls/open?q=tool:none{long}", f"/calls/?q=tool:none{long}"),
    ):
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390, address
    page.goto("/calls/")
    for menu in ("All filters", "Search in payloads"):
        page.get_by_text(menu).click()
        assert page.evaluate("document.documentElement.scrollWidth") == 390, menu
    assert heard == []


def test_a_long_reason_is_read_with_the_keyboard_and_on_a_phone(page: Page, acme: Cast) -> None:
    message = "the upstream said no, " * 20 + "and that was the end of it"
    output = {"status": "error", "error": {"type": "UPSTREAM", "message": message}}
    send_events(acme.tenant, make_call(output=output))
    sign_in(page, acme.admin)
    page.goto("/calls/")
    expect(page.locator(".tally")).to_have_text("1")  # a link to the count until then
    reason = page.locator(".call-rows .what")
    cut = "it => it.scrollWidth > it.clientWidth"
    assert reason.evaluate(cut)
    page.locator(".call-rows .which a").focus()
    assert not reason.evaluate(cut)
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("heading", level=1).click()
    assert not reason.evaluate(cut)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_page_that_refreshes_itself_is_not_dimmed_meanwhile(page: Page, acme: Cast) -> None:
    sign_in(page, acme.editor)
    page.emulate_media(reduced_motion="reduce")
    held: list[Route] = []
    page.route("**/calls/tail?*", lambda route: held.append(route))
    page.goto("/calls/?live=1")
    refresh = page.get_by_role("link", name="Refresh now")
    expect(refresh).to_have_class("htmx-request")
    expect(refresh).to_have_css("opacity", "1")
    for route in held:
        route.abort()
