"""Times in the browser's time zone, and in UTC without JavaScript."""

import re
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser_errors import complaints
from tests.support.factories import Cast, make_call, send_events
from tests.support.installation import until
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in

AT = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


@pytest.mark.generated(2, kind="has_script")
@pytest.mark.parametrize(
    ("zone", "has_script", "head", "shown"),
    [
        ("Asia/Kathmandu", True, "Kath?mandu", "2026-10-25 06:15:00.000 UTC+5:45"),
        ("Europe/Zurich", True, "Zurich", "2026-10-25 02:30:00.000 UTC+2"),
        ("America/Argentina/Buenos_Aires", True, "Buenos Aires", "2026-10-24 21:30:00.000 UTC−3"),
        ("Asia/Kathmandu", False, "UTC", "2026-10-25 00:30:00.000 UTC"),
    ],
)
def test_times_are_shown_in_the_browser_time_zone(
    browser: Browser, live_server: LiveServer, acme: Cast, zone: str, *, has_script: bool,
    head: str, shown: str,
) -> None:  # fmt: skip  # by line as they belong together
    send_events(acme.tenant, make_call(started_at=AT))
    context = browser.new_context(
        base_url=live_server.url, timezone_id=zone, java_script_enabled=has_script
    )
    page = context.new_page()
    heard = complaints(page)
    sign_in(page, acme.viewer)
    page.goto("/traces/")  # its script names the zone once something was painted
    if has_script:
        # Not wait_for_function: it polls with eval, which the policy of the pages forbids.
        until(lambda: "timezone" in {cookie["name"] for cookie in context.cookies()})
    page.goto("/traces/")
    heads = page.get_by_role("columnheader", name=re.compile("Started", re.IGNORECASE))
    expect(heads).to_contain_text(re.compile(head, re.IGNORECASE))
    page.goto("/traces/trace-123")
    started = page.locator("#call-panel time").first
    expect(started).to_have_text(shown)
    expect(started).to_have_attribute("title", "2026-10-25 00:30:00.000 UTC")
    expect(started).to_have_attribute("datetime", "2026-10-25T00:30:00.000Z")
    assert heard == []
    context.close()
