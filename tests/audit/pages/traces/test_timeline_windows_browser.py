"""A trace with more rows than are drawn at once, in a browser: no row is missing."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from audit.pages.traces.waterfall import WINDOW_ROWS
from tests.support.browser_errors import complaints
from tests.support.factories import Cast, make_call, send_events
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in
from tests.support.traces import FAILED_OUTPUT

pytestmark = pytest.mark.sampled("long timeline in a browser", 2)

COUNT = 250
LAST = COUNT - 1
BROKEN = (70, 200)


@pytest.fixture
def trace(acme: Cast) -> str:
    """The address of a trace of 250 rows: `plan`, all others in it, each in the one before
    from `t100` to `t104`; `t70` and `t200` fail."""
    started_at = datetime.now(UTC) - timedelta(minutes=5)
    ids = [str(uuid.uuid4()) for _ in range(COUNT)]

    def call(n: int) -> list[dict[str, Any]]:
        members: dict[str, Any] = {"output": FAILED_OUTPUT} if n in BROKEN else {}
        if n:
            members["parent_invocation_id"] = ids[n - 1 if 100 < n < 105 else 0]
        return make_call(
            tool_name=f"t{n}" if n else "plan",
            invocation_id=ids[n],
            call_id=f"{n:064x}",
            started_at=started_at + timedelta(milliseconds=n),
            **members,
        )

    for part in (range(125), range(125, COUNT)):
        send_events(acme.tenant, [event for n in part for event in call(n)])
    return "/traces/trace-123"


def row(page: Page, tool: str) -> Locator:
    return page.locator(".calls li[id]").filter(has=page.locator(f'.tool[title="{tool}"]'))


def in_focus(page: Page) -> Locator:
    return page.locator(".calls li[id] a:focus .tool")


def test_rows_are_loaded_while_scrolling(page: Page, acme: Cast, trace: str) -> None:
    sign_in(page, acme.editor)
    heard = complaints(page)
    page.goto(f"{trace}?row=0")
    expect(page.locator(".calls li[id]")).to_have_count(WINDOW_ROWS)
    height = page.evaluate("document.documentElement.scrollHeight")
    for _ in range(40):
        page.mouse.wheel(0, 400)
        if row(page, f"t{LAST}").count():
            break
        page.wait_for_timeout(50)
    expect(row(page, f"t{LAST}")).to_have_count(1)
    assert abs(page.evaluate("document.documentElement.scrollHeight") - height) < 40
    page.mouse.wheel(0, 9_000)
    expect(row(page, f"t{LAST}")).to_be_in_viewport()
    assert heard == []


def test_keyboard_moves_into_rows_not_loaded_yet(page: Page, acme: Cast, trace: str) -> None:
    sign_in(page, acme.editor)
    heard = complaints(page)
    page.set_viewport_size({"width": 1440, "height": 300})
    page.goto(f"{trace}?row=60")
    page.get_by_role("link", name="Rows 121 to 180").wait_for(state="attached")
    row(page, "t119").locator("a").focus()
    for n in (120, 121):
        page.keyboard.press("ArrowDown")
        expect(in_focus(page)).to_have_text(f"t{n}")
    row(page, "t60").locator("a").focus()
    page.keyboard.press("ArrowUp")
    expect(in_focus(page)).to_have_text("t59")
    expect(page.locator(".is-earlier")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator("#call-panel h2")).to_contain_text("t59")
    expect(page.locator(".calls a[aria-current]")).to_contain_text("t59")
    assert heard == []


def test_left_key_moves_to_a_parent_not_loaded_yet(page: Page, acme: Cast, trace: str) -> None:
    sign_in(page, acme.editor)
    page.goto(f"{trace}?row=180")
    row(page, "t185").locator("a").focus()
    page.keyboard.press("ArrowLeft")
    expect(in_focus(page)).to_have_text("plan")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".calls li:visible")).to_have_count(1)


def test_fold_applies_to_rows_loaded_later(page: Page, acme: Cast, trace: str) -> None:
    sign_in(page, acme.editor)
    page.set_viewport_size({"width": 1440, "height": 300})
    page.goto(f"{trace}?row=0")
    page.get_by_role("button", name="inside plan").click()
    expect(page.locator(".calls li:visible")).to_have_count(1)
    page.get_by_role("button", name="inside plan").click()
    page.get_by_role("link", name="Rows 61 to 120").focus()
    page.keyboard.press("Enter")
    fold = page.get_by_role("button", name="Collapse 4 calls inside t100")
    expect(fold).to_be_visible()
    fold.click()
    expect(row(page, "t104")).to_be_hidden()
    expect(row(page, "t105")).to_be_visible()


def test_next_failure_is_shown_among_rows_not_loaded_yet(
    page: Page, acme: Cast, trace: str
) -> None:
    sign_in(page, acme.editor)
    heard = complaints(page)
    page.goto(trace)
    expect(page.locator("#call-panel h2")).to_contain_text("t70")
    page.get_by_role("link", name="failure →").click()
    expect(page.locator("#call-panel h2")).to_contain_text("t200")
    expect(row(page, "t200")).to_be_in_viewport()
    expect(page.locator(".calls a[aria-current]")).to_contain_text("t200")
    page.get_by_role("link", name="← failure").click()
    expect(page.locator(".calls a[aria-current]")).to_contain_text("t70")
    page.goto(f"{trace}?row=240")
    page.get_by_role("link", name="failure →").click()
    expect(row(page, "t200")).to_be_in_viewport()  # two windows up: the page is loaded again
    expect(page.locator(".calls a[aria-current]")).to_contain_text("t200")
    assert heard == []


def test_search_covers_rows_not_loaded_yet(page: Page, acme: Cast, trace: str) -> None:
    sign_in(page, acme.editor)
    page.goto(f"{trace}?row=0")
    page.keyboard.press("/")
    page.keyboard.type(f"t{LAST}")
    page.keyboard.press("Enter")
    expect(page.locator(".calls li[id] .tool")).to_have_text(["plan", f"t{LAST}"])


def test_failed_row_request_can_be_retried(page: Page, acme: Cast, trace: str) -> None:
    sign_in(page, acme.editor)
    page.set_viewport_size({"width": 1440, "height": 300})
    failures = []

    def refuse(route: Route) -> None:
        failures.append(route.request.url)
        route.abort()

    page.route("**/*row=60", refuse)
    page.goto(f"{trace}?row=0")
    row(page, "t59").locator("a").focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="Rows 61 to 120")).to_be_focused()
    assert failures
    page.unroute("**/*row=60")
    page.keyboard.press("Enter")
    expect(row(page, "t60")).to_have_count(1)


def test_row_windows_are_links_without_javascript(
    browser: Browser, live_server: LiveServer, acme: Cast, trace: str
) -> None:
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, acme.editor)
    page.goto(f"{trace}?row=0")
    page.get_by_role("link", name="Rows 181 to 240").click()
    expect(row(page, "t200")).to_be_visible()
    page.get_by_role("link", name="Rows 121 to 180").click()
    expect(row(page, "t121")).to_be_visible()
    expect(page.locator("#call-panel h2")).to_contain_text("t70")
    context.close()
