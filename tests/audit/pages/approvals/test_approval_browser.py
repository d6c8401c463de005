"""Approvals on a small screen: every word of a cell is to be seen."""

import pytest
from playwright.sync_api import Page

from tests.support.factories import Cast, make_call, make_decision, send_events
from tests.support.sign_in import sign_in

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clear_principals")]


def test_no_cell_is_cut_on_a_small_screen(page: Page, acme: Cast) -> None:
    events = make_call(tool_call_id="toolu_1")
    ids = {each: events[0][each] for each in ("trace_id", "tool_name", "tool_call_id")}
    request = make_decision("awaiting", **ids)
    unasked = make_decision("approved", by={"kind": "person", "id": "bob"})
    del request["invocation_id"]
    send_events(acme.tenant, [request, *events, unasked])
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in(page, acme.viewer)
    page.goto("/approvals/")
    cut = page.locator(".approvals td").evaluate_all(
        """cells => cells.filter(cell => {
          const range = document.createRange();
          range.selectNodeContents(cell);
          const words = range.getBoundingClientRect();
          return words.right > cell.getBoundingClientRect().right + 1;
        }).map(cell => cell.innerText)"""
    )
    assert cut == []
    assert page.get_by_text("ran without an answer").count() == 1
    assert page.get_by_text("1 without a request", exact=True).count() == 1
