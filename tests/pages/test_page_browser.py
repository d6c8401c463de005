"""The behaviour that every page shares, in a real browser: js/page.js."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, Request, expect

from tests.support.factories import Cast, make_call, send_events
from tests.support.sign_in import sign_in


@pytest.fixture
def seen(acme: Cast) -> Cast:
    """One call now, and one of another day that took over a minute."""
    now = datetime.now(UTC)
    long = make_call(
        tool_name="slow_one",
        trace_id="long-ago",
        started_at=now - timedelta(days=2),
        duration_ms=(61 * 60 + 47) * 1000.0,
    )
    send_events(acme.tenant, [*make_call(started_at=now - timedelta(seconds=5)), *long])
    return acme


def test_refresh_waits_while_a_form_or_table_is_open(page: Page, seen: Cast) -> None:
    sign_in(page, seen.viewer)
    page.clock.install()
    page.goto("/?range=1h")
    sent: list[str] = []

    def note(request: Request) -> None:
        if "hx-request" in request.headers:
            sent.append(request.url)

    page.on("request", note)
    page.get_by_text("Custom", exact=True).click()
    page.get_by_label("From", exact=True).fill("2026-01-02T03:04")
    page.clock.run_for(65_000)
    expect(page.get_by_label("From", exact=True)).to_have_value("2026-01-02T03:04")
    expect(page.get_by_text("(waiting)")).to_be_visible()
    assert sent == []
    page.keyboard.press("Escape")
    expect(page.get_by_label("From", exact=True)).to_be_hidden()
    page.get_by_text("Show as table").first.click()
    page.clock.run_for(65_000)
    assert sent == []
    page.get_by_text("Show as table").first.click()
    expect(page.get_by_text("(waiting)")).to_be_hidden()
    with page.expect_request("**/?range=1h"):
        page.clock.run_for(31_000)
    assert sent != []


def test_menus_close_on_escape_and_outside_clicks(page: Page, seen: Cast) -> None:
    sign_in(page, seen.viewer)
    page.goto("/?range=1h")
    field, summary = page.get_by_label("From", exact=True), page.get_by_text("Custom", exact=True)
    summary.click()
    expect(field).to_be_visible()
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    expect(page.locator("summary:focus")).to_have_text("Custom")
    summary.click()
    page.get_by_role("heading", name="Overview").click()
    expect(field).to_be_hidden()


@pytest.mark.generated(1)
@pytest.mark.parametrize("width", [1440, 390])
def test_custom_range_fits_its_popup(page: Page, seen: Cast, width: int) -> None:
    sign_in(page, seen.viewer)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/?range=1h")
    page.get_by_text("Custom", exact=True).click()
    popup = page.locator(".range .menu-body")
    assert popup.evaluate("it => it.scrollWidth <= it.clientWidth")
    box = popup.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    for name in ("From", "To"):
        inner = page.get_by_label(name, exact=True).bounding_box()
        assert inner is not None
        assert inner["x"] + inner["width"] <= box["x"] + box["width"]
    apply = page.get_by_role("button", name="Apply")
    assert apply.evaluate("it => getComputedStyle(it).backgroundColor") != "rgba(0, 0, 0, 0)"


@pytest.mark.generated(2, kind="path")
@pytest.mark.parametrize("width", [1440, 1100, 390])
@pytest.mark.parametrize("path", ["/calls/?q=since:7d", "/traces/?range=7d"])
def test_dates_and_durations_are_not_truncated(
    page: Page, seen: Cast, path: str, width: int
) -> None:
    sign_in(page, seen.viewer)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(path)
    row = (
        page.locator("tbody tr")
        .filter(has_text="61 min")
        .or_(page.locator("tbody tr").filter(has_text="1 h"))
    )
    expect(row).to_have_count(1)
    cut = row.locator("td:has(time), td.num").evaluate_all(
        "cells => cells.filter(it => it.scrollWidth > it.clientWidth).map(it => it.innerText)"
    )
    assert cut == []
