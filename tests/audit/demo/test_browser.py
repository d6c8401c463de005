"""The first minute with the demo: sign in, find a failed call, and read its error."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser_errors import complaints
from tests.support.demo import Demo

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PATH = re.compile(r"\$\.\w+")  # a violation's path, as in the reason of a row


@pytest.fixture(params=[True, False], ids=["with-javascript", "without-javascript"])
def visitor(request: pytest.FixtureRequest, browser: "Browser", demo: Demo) -> Iterator[Page]:
    """A new tab, with and without JavaScript."""
    context = browser.new_context(base_url=demo.url, java_script_enabled=request.param)
    yield context.new_page()
    context.close()


@pytest.mark.generated(1)
def test_user_signs_in_and_reaches_the_violation(visitor: Page, demo: Demo) -> None:
    page, heard = visitor, complaints(visitor)
    page.goto("/")
    page.get_by_label("Username").fill(demo.user)
    page.get_by_label("Password").fill(demo.password)
    page.get_by_role("button", name="Sign in", exact=True).click()

    # The start page shows the tools with most failures.
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.get_by_role("table").filter(has_text="get_weather").first).to_be_visible()

    # The list of failed traces, page by page until one has a violation.
    page.get_by_label("Main").get_by_role("link", name="Traces").click()
    page.get_by_label("State").get_by_role("link", name="Failed").click()
    page.wait_for_url("**/traces/?state=failed")
    # A trace of an agent; traces of the watch (audit/demo/agents.py) have one call each.
    agents = page.get_by_role("row").filter(has_not_text="demo-watch")
    broken = agents.filter(has_text="get_weather").filter(has_text="$.")
    while broken.count() == 0:
        page.get_by_role("link", name="Older").click()
        page.wait_for_url("**before=**")
    page.wait_for_load_state()
    shown = broken.first.inner_text()
    path = PATH.search(shown)
    assert path is not None, shown
    broken.first.get_by_role("link").click()

    # The timeline opens at the first failure. Select another row, then the failure again.
    page.wait_for_url("**/traces/demo-*")
    panel = page.locator("#call-panel")
    expect(panel).to_contain_text("get_weather")
    rows = page.locator(".calls li")
    rows.first.get_by_role("link").click()
    expect(panel).to_contain_text("plan_trip")
    rows.filter(has_text="get_weather").filter(has_text=path[0]).first.get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"\?call=[0-9a-f-]{36}$"))
    expect(panel.get_by_role("heading", level=2)).to_contain_text("get_weather")

    # The violation with path, expected and received value; then the raw event.
    [stored] = demo.query(
        "SELECT path, code, expected, received FROM violation WHERE invocation_id = %s",
        page.url.rpartition("call=")[2],
    )
    violation = panel.get_by_role("table").get_by_role("row").filter(has_text=path[0])
    for text in stored:
        expect(violation).to_contain_text(text)
    end = panel.locator("details").filter(has_text=re.compile(r"End\s+#\d"))
    end.locator("summary").click()
    expect(end.locator("pre")).to_contain_text('"type":"toolExecutionEnd"')
    expect(end.locator("pre")).to_contain_text(stored[1])
    assert heard == []
