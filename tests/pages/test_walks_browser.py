"""The five main tasks with a keyboard alone, and what a screen reader is told on the way.

Nothing is clicked. On each page all controls have names, headings are in order, and results that
change without a new page are said in a live region.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from audit.queries.saved_views import saved_views
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.keyboard import Keyboard, spoken, unspoken
from tests.support.ledger_log import keep, own_folder
from tests.support.replays import publish_contract, run_replay, send_outputs
from tests.support.sign_in import sign_in
from tools_registry.changes import timeline

pytestmark = pytest.mark.sampled("walk by keyboard", 2)

FAILED = {"status": "error", "error": {"type": "UPSTREAM", "message": "the station is down"}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The signer's folder of this test's worker."""
    yield own_folder(tmp_path, monkeypatch)


def said(page: Page) -> str:
    """The text of the live region that tells of changes."""
    return page.locator("#said").inner_text()


def test_why_a_call_failed(page: Page, acme: Cast) -> None:
    send_events(acme.tenant, [*make_call(tool_name="read", output=FAILED), *make_call()])
    sign_in(page, acme.viewer)
    page.goto("/")
    assert unspoken(page) == []
    keys = Keyboard(page)
    keys.skip_navigation()
    keys.enter(page.get_by_role("region", name="Latest failures").get_by_role("link", name="read"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("read")
    assert unspoken(page) == []
    names = " ".join(str(node["name"]) for node in spoken(page))
    assert "UPSTREAM" in names
    keys = Keyboard(page)
    keys.skip_navigation()
    keys.enter(page.get_by_role("link", name="Show in its trace"))
    expect(page).to_have_url(re.compile("/traces/"))
    assert unspoken(page) == []
    chosen = page.locator(".calls [aria-current=true]").first
    Keyboard(page).to(chosen)
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("region", name="Call")).to_be_visible()


def test_schema_is_edited_replayed_and_published(page: Page, acme: Cast) -> None:
    tool = publish_contract(acme)
    send_outputs(acme, [{"celsius": 1}] * 3 + [{}])
    sign_in(page, acme.editor)
    page.goto(f"/tools/{tool.pk}")
    assert unspoken(page) == []
    keys = Keyboard(page)
    keys.skip_navigation()
    keys.enter(page.get_by_role("button", name="Create draft"))
    page.wait_for_url("**/draft")
    expect(page.locator("#check")).to_contain_text("Valid contract")
    assert unspoken(page) == []
    keys = Keyboard(page)
    keys.write(page.get_by_label("Description").first, "The temperature of a station.")
    keys.enter(page.get_by_role("button", name="Save draft"))
    expect(page.get_by_text("Revision 2")).to_be_visible()
    assert any(node["role"] == "status" for node in spoken(page)), "saving is not announced"
    keys = Keyboard(page)
    keys.enter(page.get_by_role("button", name="Review and publish"))
    page.wait_for_url("**/draft/review")
    assert unspoken(page) == []
    keys = Keyboard(page)
    keys.enter(page.get_by_role("button", name="Replay"))
    page.wait_for_url(re.compile("/replays/"))
    run_replay(acme, UUID(page.url.rpartition("/")[2]))
    expect(page.get_by_role("progressbar")).to_have_count(0)
    assert unspoken(page) == []
    keys = Keyboard(page)
    keys.enter(page.get_by_role("link", name="Review and publish"))
    page.wait_for_url("**/draft/review")
    keys = Keyboard(page)
    keys.write(page.get_by_label("Reason"), "Clearer for agents.")
    keys.enter(page.get_by_role("button", name=re.compile("^Publish")))
    expect(page.get_by_text("Version 2 published and now current.").first).to_be_visible()
    with tenant_scope(acme.tenant.id):
        assert timeline(tool, size=1)[0].reason == "Clearer for agents."


def test_query_is_built_and_saved_as_a_view(page: Page, acme: Cast) -> None:
    send_events(acme.tenant, [*make_call(tool_name="read", output=FAILED), *make_call()])
    sign_in(page, acme.editor)
    page.goto("/calls/")
    assert unspoken(page) == []
    keys = Keyboard(page)
    keys.skip_navigation()
    keys.write(page.get_by_label("Query", exact=True), "state:failed")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("q=state%3Afailed"))
    expect(page.locator("#said")).to_have_text("1 call listed")
    keys.write(page.get_by_label("Query", exact=True), "state:eror")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    field = page.get_by_label("Query", exact=True)
    expect(field).to_have_attribute("aria-invalid", "true")
    keys.write(field, "state:failed tool:read")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("tool%3Aread"))
    assert unspoken(page) == []
    keys.enter(page.locator("summary", has_text="Save view"))
    keys.write(page.get_by_role("textbox", name="Name"), "Readings that fail")
    page.keyboard.press("Enter")
    expect(page.get_by_text("View “Readings that fail” saved")).to_be_visible()
    with tenant_scope(acme.tenant.id):
        (view,) = saved_views(acme.editor)
    assert (view.name, view.query) == ("Readings that fail", "state:failed tool:read")
    keys = Keyboard(page)
    keys.enter(page.locator("summary[aria-label='Change view Readings that fail']"))
    keys.to(page.get_by_role("checkbox", name="Share with all members"))
    page.keyboard.press("Space")
    keys.enter(page.get_by_role("button", name="Save", exact=True))
    expect(page.get_by_text("All members of the tenant are offered it")).to_be_visible()


def test_report_is_made_and_read(page: Page, acme: Cast) -> None:
    send_events(acme.tenant, [*make_call(tool_name="read", output=FAILED), *make_call()])
    sign_in(page, acme.editor)
    page.goto("/reports/")
    assert unspoken(page) == []
    keys = Keyboard(page)
    keys.skip_navigation()
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    page.get_by_label("Day of").evaluate("(field, day) => { field.value = day }", today)
    keys.enter(page.get_by_role("button", name="Create the report of the day"))
    page.wait_for_url(re.compile("/reports/[0-9a-f-]{36}"))
    assert unspoken(page) == []
    keys = Keyboard(page)
    keys.skip_navigation()
    contents = page.get_by_role("navigation", name="Contents")
    keys.enter(contents.get_by_role("link", name="Violations"))
    expect(page).to_have_url(re.compile("#violations$"))
    expect(page.get_by_role("heading", name="Violations", exact=True)).to_be_in_viewport()
    names = [node["name"] for node in spoken(page) if node["role"] == "heading"]
    assert {"Summary", "Volume and reliability", "Violations"} <= set(names)


def test_record_is_verified_and_a_call_proved(page: Page, acme: Cast) -> None:
    call = make_call()
    send_events(acme.tenant, call)
    keep(acme.tenant, datetime.now(UTC))
    sign_in(page, acme.auditor)
    page.goto("/ledger/")
    assert unspoken(page) == []
    keys = Keyboard(page)
    keys.skip_navigation()
    keys.to(page.get_by_role("button", name="Verify"))
    at = datetime.fromisoformat(call[0]["started_at"]).astimezone(UTC)
    page.goto(f"/calls/{at:%Y-%m-%d}/{call[0]['invocation_id']}")
    keys = Keyboard(page)
    keys.skip_navigation()
    keys.enter(page.locator("summary", has_text="End #1"))
    keys.enter(page.locator("details[open] a", has_text="Integrity proof"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("Entry #1")
    expect(page.get_by_text("valid", exact=True)).to_be_visible()
    assert unspoken(page) == []
    keys = Keyboard(page)
    keys.skip_navigation()
    keys.to(page.get_by_role("link", name="Download proof"))
