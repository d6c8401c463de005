"""Traces in a browser: with JavaScript and without, by mouse and by keyboard."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser_errors import complaints
from tests.support.factories import Cast, make_call, send_events
from tests.support.sign_in import sign_in, sign_in_by_form
from tests.support.traces import send_family

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.support.server import LiveServer

pytestmark = pytest.mark.sampled("timeline in a browser", 3)


@pytest.fixture
def plain_page(browser: "Browser", live_server: "LiveServer") -> Iterator[Page]:
    """A tab that runs no JavaScript."""
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    yield context.new_page()
    context.close()


def test_user_gets_from_the_list_to_the_violation(page: Page, acme: Cast) -> None:
    ids = send_family(acme)
    sign_in(page, acme.editor)
    heard = complaints(page)
    page.goto("/traces/")
    page.locator("main").get_by_role("link", name="Violations").click()
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


def test_timeline_works_by_keyboard(page: Page, acme: Cast) -> None:
    send_family(acme)
    sign_in(page, acme.editor)
    page.goto("/traces/trace-123")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".calls a:focus")).to_contain_text("get_weather")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")  # the last row keeps the focus
    page.keyboard.press("Enter")
    expect(page.locator("#call-panel")).to_contain_text("No end event yet")
    expect(page.locator(".calls a[aria-current]")).to_contain_text("notify")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".calls a:focus")).to_contain_text("get_weather")
    page.keyboard.press("/")
    page.keyboard.type("bad gateway")
    page.keyboard.press("Enter")
    expect(page.locator(".calls .tool")).to_have_text(["plan", "fetch_page"])


def test_nested_calls_are_folded(page: Page, acme: Cast) -> None:
    send_family(acme)
    sign_in(page, acme.editor)
    page.goto("/traces/trace-123?call=")
    shown = page.locator(".calls li:visible .tool")
    everything = shown.all_text_contents()
    assert len(everything) == 4
    page.get_by_role("button", name="Collapse 3 calls inside plan").click()
    expect(shown).to_have_text(["plan"])
    page.locator(".calls a").first.focus()
    page.keyboard.press("ArrowRight")
    expect(shown).to_have_text(everything)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".calls a:focus")).to_contain_text(everything[1])
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(shown).to_have_text(["plan"])


def test_range_selected_on_the_minimap_fills_the_timeline(page: Page, acme: Cast) -> None:
    send_family(acme)
    sign_in(page, acme.editor)
    page.goto("/traces/trace-123")
    box = page.locator(".minimap-map").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=4)
    page.mouse.up()
    page.wait_for_url("**/traces/trace-123?*zoom_from=*")
    expect(page.get_by_role("link", name="← Whole trace")).to_be_visible()
    width = page.locator(".minimap-window .window").get_attribute("width")
    assert width is not None
    assert 20 < float(width.rstrip("%")) < 30
    page.keyboard.press("Escape")
    page.wait_for_url("**/traces/trace-123")


def test_trace_is_copied_as_text(page: Page, acme: Cast) -> None:
    send_family(acme)
    sign_in(page, acme.editor)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/traces/trace-123")
    page.get_by_role("link", name="Copy as text").click()
    expect(page.get_by_role("link", name="Copied")).to_be_visible()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.startswith("Tooltrail trace, 4 calls")
    assert "Bad gateway" in text


def test_tool_filter_reduces_the_timeline(page: Page, acme: Cast) -> None:
    send_family(acme)
    sign_in(page, acme.editor)
    page.goto("/traces/trace-123")
    page.get_by_label("Tool", exact=True).select_option("notify")
    expect(page.locator(".calls .tool")).to_have_text(["plan", "notify"])


def test_trace_pages_work_without_javascript(plain_page: Page, acme: Cast) -> None:
    ids = send_family(acme)
    page = plain_page
    sign_in_by_form(page, acme.editor)
    page.goto("/traces/")
    page.locator("main").get_by_role("link", name="Failed").click()
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


@pytest.mark.generated(1)
@pytest.mark.parametrize("width", [390, 1440])
def test_pages_are_not_wider_than_the_window(page: Page, acme: Cast, width: int) -> None:
    long = "x" * 120
    send_events(
        acme.tenant, make_call(trace_id=long, tool_name=long, run_id=long, args={long: long * 9})
    )
    sign_in(page, acme.editor)
    page.set_viewport_size({"width": width, "height": 844})
    for address in ("/traces/", f"/traces/{long}"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.generated(1)
@pytest.mark.parametrize("width", [1024, 1440])
def test_deeply_nested_call_keeps_its_name_readable(page: Page, acme: Cast, width: int) -> None:
    """And the number of its children does not cover its bar."""
    parent: str | None = None
    for level in range(1, 13):
        events = make_call(tool_name=f"look_{level}", parent_invocation_id=parent)
        send_events(acme.tenant, events)
        parent = str(events[0]["invocation_id"])
    sign_in(page, acme.editor)
    page.set_viewport_size({"width": width, "height": 844})
    page.goto("/traces/trace-123")
    expect(page.locator(".calls .tool")).to_have_count(12)
    cut = "all => all.filter(each => each.scrollWidth > each.clientWidth).map(e => e.textContent)"
    assert page.locator(".calls .tool").evaluate_all(cut) == []
    assert page.locator(".calls .level").all_text_contents() == [str(n) for n in range(8, 13)]
    overlap = page.locator(".calls li:has(.fold-calls)").evaluate_all(
        "all => Math.max(...all.map(row => row.querySelector('.fold-calls').getBoundingClientRect()"
        ".right - row.querySelector('.lane').getBoundingClientRect().left))"
    )
    assert overlap <= 1


@pytest.fixture(params=[True, False], ids=["with-javascript", "without-javascript"])
def any_page(
    request: pytest.FixtureRequest, browser: "Browser", live_server: "LiveServer"
) -> Iterator[Page]:
    """A tab that runs JavaScript, and one that does not."""
    context = browser.new_context(base_url=live_server.url, java_script_enabled=request.param)
    yield context.new_page()
    context.close()


@pytest.mark.generated(1)
def test_url_of_a_call_opens_the_call_in_its_trace(any_page: Page, acme: Cast) -> None:
    page, started_at = any_page, datetime.now(UTC) - timedelta(minutes=5)
    calls = [
        make_call(tool_name=f"tool-{n}", started_at=started_at + timedelta(milliseconds=n))
        for n in range(449)
    ]
    calls.append(make_call(tool_name="waiting", is_open=True))
    for part in (calls[:250], calls[250:]):
        send_events(acme.tenant, [event for call in part for event in call])
    wanted = {call[0]["tool_name"]: call[0]["invocation_id"] for call in calls}
    sign_in(page, acme.editor)
    for tool in ("tool-0", "tool-440", "waiting"):
        page.goto(f"/traces/trace-123?call={wanted[tool]}#c-{wanted[tool]}")
        expect(page.locator("#call-panel h2")).to_contain_text(tool)
        row = page.locator(f"#c-{wanted[tool]}")
        expect(row.locator("a[aria-current]")).to_contain_text(tool)
        expect(row).to_be_in_viewport()
        # To the call's own page, whose address contains the day, and back.
        page.locator("#call-panel").get_by_role("link", name=wanted[tool]).click()
        page.wait_for_url(f"**/calls/*-*-*/{wanted[tool]}")
        expect(page.locator("#call-panel h2")).to_contain_text(tool)
        page.get_by_role("link", name="Show in its trace").click()
        page.wait_for_url(f"**/traces/trace-123?call={wanted[tool]}**")
        expect(page.locator("#call-panel h2")).to_contain_text(tool)


def test_selected_call_stays_open_after_a_reload(page: Page, acme: Cast) -> None:
    ids = send_family(acme)
    sign_in(page, acme.editor)
    page.goto("/traces/trace-123")
    page.locator(f"#c-{ids['notify']} a").click()
    expect(page.locator("#call-panel h2")).to_contain_text("notify")
    page.reload()
    expect(page.locator("#call-panel h2")).to_contain_text("notify")
    expect(page.locator(".calls a[aria-current]")).to_contain_text("notify")


@pytest.mark.generated(1)
def test_raw_events_are_shown_with_their_ledger_index(any_page: Page, acme: Cast) -> None:
    page = any_page
    first = send_events(acme.tenant, make_call(trace_id="earlier"))
    events = make_call(args={"city": "Zürich"}, locale="de-CH")
    second = send_events(acme.tenant, events)
    assert second["ledger"]["first_index"] == first["ledger"]["size"] == 2
    sign_in(page, acme.editor)
    page.goto("/traces/trace-123")
    for index, (kind, event) in enumerate(zip(("Start", "End"), events, strict=True), start=2):
        fold = page.locator("#call-panel details").filter(has_text=f"{kind} #{index}")
        expect(fold.locator("pre")).to_be_hidden()
        fold.locator("summary").click()
        assert json.loads(fold.locator("pre").inner_text()) == event
        fold.get_by_role("link", name="Show as received").click()
        page.wait_for_url(f"**/{kind.lower()}")
        assert json.loads(page.locator("body").inner_text()) == event
        page.go_back()
