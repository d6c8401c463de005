"""What a screen reader is told of what changes on a page: once, politely, and only news."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from audit.queries.call_query import parse
from audit.work.payload_search import run_slice, start_search
from tenants.scope import tenant_scope
from tests.support.accessibility import accessibility_findings
from tests.support.factories import Cast, make_call, send_events
from tests.support.keyboard import Keyboard, spoken
from tests.support.sign_in import sign_in
from tests.support.traces import VIOLATED_GUARD

pytestmark = pytest.mark.sampled("live regions", 2)

_LISTEN = """
() => {
  window.heard = [];
  const listen = (region) => new MutationObserver(() => {
    const text = region.textContent.trim().replace(/\\s+/g, " ");
    if (text) window.heard.push(text);
  }).observe(region, { childList: true, characterData: true, subtree: true });
  document.querySelectorAll("[aria-live], [role=status], [role=alert]").forEach(listen);
}
"""
"""Writes down what live regions say. A region announces whenever its text changes."""


def listen(page: Page) -> None:
    """From now on, keep what is said; the page must have its live region, and it must be polite."""
    live = [node for node in spoken(page) if node.get("live")] or page.locator("#said").all()
    assert live
    assert page.locator("#said").get_attribute("aria-live") == "polite"
    page.evaluate(_LISTEN)


def heard(page: Page) -> list[str]:
    """What was said, in order."""
    texts: list[str] = page.evaluate("window.heard")
    return texts


def test_new_calls_of_the_live_tail_are_said_once(page: Page, acme: Cast) -> None:
    sign_in(page, acme.viewer)
    page.goto("/calls/?live=1")
    listen(page)
    send_events(acme.tenant, [*make_call(started_at=datetime.now(UTC)), *make_call()])
    expect(page.locator("#call-tail tr.tail-end")).to_contain_text("Live since")
    expect(page.locator("#said")).to_have_text("2 new calls")
    with page.expect_response("**/calls/tail*"):  # the next refresh has no news
        pass
    with page.expect_response("**/calls/tail*"):
        pass
    assert heard(page) == ["2 new calls"]


def test_the_end_of_a_job_is_said_and_its_progress_is_not(page: Page, acme: Cast) -> None:
    send_events(acme.tenant, make_call(args={"q": "needle"}))
    with tenant_scope(acme.tenant.id):
        now = datetime.now(UTC) + timedelta(seconds=1)
        search = start_search(acme.admin, "needle", parse(""), now)
    sign_in(page, acme.admin)
    page.goto(f"/calls/search/{search.id}")
    listen(page)
    with page.expect_response(f"**/calls/search/{search.id}*"):
        pass
    assert heard(page) == []
    run_slice(acme.tenant.id, search.id)
    expect(page.locator("#said")).to_contain_text("Search:")
    expect(page.get_by_role("progressbar")).to_have_count(0)
    assert heard(page) == ["Search: done"]


def test_a_sorted_table_says_so_and_keeps_the_focus(page: Page, acme: Cast) -> None:
    sign_in(page, acme.admin)
    page.goto("/settings/members")
    listen(page)
    keys = Keyboard(page)
    keys.skip_navigation()
    head = page.get_by_role("columnheader", name="User")
    keys.enter(head.get_by_role("link"))
    expect(page.locator("#said")).to_have_text("Sorted by User, descending")
    expect(page).to_have_url(re.compile(r"\?sort=-user$"))
    expect(page.get_by_role("link", name="User", exact=True)).to_be_focused()
    expect(head).to_have_attribute("aria-sort", "descending")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_have_text("Sorted by User, ascending")
    assert heard(page) == ["Sorted by User, descending", "Sorted by User, ascending"]


@pytest.mark.parametrize("address", ["/settings/members", "/traces/", "/violations/"])
def test_tables_sort_on_a_phone(page: Page, acme: Cast, address: str) -> None:
    """The rows are cards there, and the heads that sort a line above them."""
    send_events(acme.tenant, make_call(guard=VIOLATED_GUARD))
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in(page, acme.admin)
    page.goto(address)
    heads = page.locator("main th > a")
    last = heads.last
    last.focus()  # which scrolls the line
    expect(last).to_be_in_viewport()
    name = last.get_attribute("id")
    page.keyboard.press("Enter")
    expect(page.locator(f"th[aria-sort] > [id='{name}']")).to_be_focused()
    box = last.bounding_box()
    assert box is not None
    assert box["height"] >= 24
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert accessibility_findings(page) == []


def test_a_refused_form_begins_with_its_mistake(page: Page, acme: Cast) -> None:
    sign_in(page, acme.admin)
    page.goto("/settings/holds")
    for label, text in (("Name", "of nothing"), ("Reason", "because"), ("Tool", "search")):
        page.get_by_label(label, exact=True).first.fill(text)
    page.locator("[name=since]").fill("2026-01-02T00:00")
    page.locator("[name=until]").fill("2026-01-01T00:00")
    page.get_by_role("button", name="Create hold").click()
    expect(page.locator("[name=until]")).to_be_focused()
    told = spoken(page)
    assert any(one.get("invalid") == "true" for one in told)
    # A part of the field has the focus.
    node = next(one for one in told if one.get("focused") and one["role"] != "RootWebArea")
    assert "The end must be after the start." in node["description"]
