"""An editor writes a draft, sees breaking changes, and publishes it; in a browser."""

import json
import re
from uuid import UUID

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from audit.models import Replay
from tenants.scope import tenant_scope
from tests.support.browser_errors import complaints
from tests.support.factories import Cast
from tests.support.replays import publish_contract, run_replay, send_outputs
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in
from tools_registry.changes import Publisher, timeline
from tools_registry.drafts import create_draft, find_draft
from tools_registry.models import Tool
from tools_registry.versions import contract_of

pytestmark = pytest.mark.sampled("draft in a browser", 2)

TAKEN_AWAY = '{"type": "object", "required": ["celsius"]}'


def write(page: Page, name: str, text: str) -> None:
    """Replace the text in an editor as a person does."""
    page.locator(f"[data-editor-of={name}] .cm-content").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.insert_text(text)


def replay_of(cast: Cast, page: Page) -> UUID:
    page.wait_for_url(re.compile("/replays/"))
    pk = UUID(page.url.rpartition("/")[2])
    with tenant_scope(cast.tenant.id):
        assert Replay.objects.for_tenant(cast.tenant.id).filter(id=pk).exists()
    return pk


def test_draft_is_written_replayed_and_published(page: Page, acme: Cast) -> None:
    heard = complaints(page)
    tool = publish_contract(acme)
    send_outputs(acme, [{"celsius": 1}] * 4 + [{}] * 3)
    sign_in(page, acme.editor)
    page.goto(f"/tools/{tool.pk}/draft")
    page.get_by_role("button", name="Create draft").click()
    check = page.locator("#check")
    expect(check).to_contain_text("Valid contract")

    write(page, "output_schema", '{"type": "objekt", "required": "celsius"}')
    expect(check.locator("[data-pointer='/type']")).to_be_visible()
    marked = page.locator("[data-editor-of=output_schema] .cm-lintRange-error")
    expect(marked).to_have_text(['"objekt"', '"celsius"'])
    write(page, "output_schema", '{"type": ')
    expect(check).to_contain_text("is not valid JSON")
    write(page, "output_schema", '{\n  "type": "object",\n  "required": ]\n}')
    expect(check).to_contain_text("in line 3")
    expect(marked).to_have_text(["]"])
    write(page, "output_schema", TAKEN_AWAY)
    with page.expect_request("**/draft/check") as checks:
        page.get_by_label("Example outputs").fill('{"celsius": 20}\n---\n{}')
    sent_as = checks.value.headers["content-type"]
    assert sent_as.startswith("multipart/"), "the server reads it in a tenth of the time"
    expect(check).to_contain_text("Output 1: valid")
    expect(check).to_contain_text('Required field "celsius" is missing')
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_text("Revision 2")).to_be_visible()
    with tenant_scope(acme.tenant.id):
        draft = find_draft(tool)
        assert draft is not None
        assert draft.output_schema == json.loads(TAKEN_AWAY)

    page.get_by_role("button", name="Review and publish").click()
    expect(page.get_by_text("Not replayed since the last change")).to_be_visible()
    page.get_by_role("button", name="Replay").click()
    pk = replay_of(acme, page)
    expect(page.get_by_role("progressbar")).to_be_visible()
    run_replay(acme, pk)  # the worker
    outputs = page.get_by_role("region", name="Outputs")
    expect(outputs.locator("dd").first).to_contain_text("3")
    expect(page.get_by_role("progressbar")).to_have_count(0)
    outputs.get_by_text("3 calls").click()
    expect(outputs.get_by_text('Required field "celsius" is missing').first).to_be_visible()
    page.get_by_role("link", name="Review and publish").click()
    expect(page.get_by_text("Replay: new violations in 3 of 7 calls.")).to_be_visible()
    publishing = page.get_by_role("button", name="Publish anyway")
    page.get_by_label("Reason").evaluate("field => field.removeAttribute('required')")
    publishing.click()
    expect(page.get_by_text("Enter a reason to publish it anyway")).to_be_visible()
    page.get_by_label("Reason").fill("Stations without a thermometer are gone.")
    publishing.click()
    expect(page.get_by_text("Version 2 published and now current.").first).to_be_visible()
    with tenant_scope(acme.tenant.id):
        assert timeline(tool, size=1)[0].reason == "Stations without a thermometer are gone."
    # The browser reports the status 422 of a rejected form; nothing else may be reported.
    assert [one for one in heard if "422" not in one] == []


def test_draft_editing_and_publishing_work_without_javascript(
    browser: Browser, live_server: LiveServer, acme: Cast
) -> None:
    tool = publish_contract(acme)
    send_outputs(acme, [{"celsius": 1}] * 2 + [{}])
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, acme.editor)
    page.goto(f"/tools/{tool.pk}/draft")

    def press(name: str) -> None:
        """Not by the mouse: on a busy machine a click on a page just painted was lost, twice."""
        with page.expect_navigation():
            page.get_by_role("button", name=name).press("Enter")

    press("Create draft")
    page.get_by_label("Output schema").fill('{"type": "objekt"}')
    press("Check")
    expect(page.locator("#check")).to_contain_text("/type")
    page.get_by_label("Output schema").fill(TAKEN_AWAY)
    press("Save draft")
    press("Review and publish")
    press("Replay")
    run_replay(acme, replay_of(acme, page))
    page.get_by_role("link", name="Refresh").click()
    expect(page.get_by_role("region", name="Outputs").locator("dd").first).to_contain_text("1")
    page.get_by_role("link", name="Review and publish").click()
    page.get_by_label("Reason").fill("It must.")
    press("Publish anyway")
    expect(page.get_by_text("Version 2 published and now current.").first).to_be_visible()
    context.close()


def test_unsaved_edits_are_saved_by_the_review_and_never_discarded_silently(
    page: Page, acme: Cast
) -> None:
    tool = publish_contract(acme)
    begin(acme, tool)
    sign_in(page, acme.editor)
    page.goto(f"/tools/{tool.pk}/draft")
    dialogs: list[str] = []

    def stay(dialog: Dialog) -> None:
        dialogs.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.get_by_role("link", name="get_weather").click()  # nothing was edited
    page.wait_for_url(f"**/tools/{tool.pk}")
    assert dialogs == []
    page.goto(f"/tools/{tool.pk}/draft")
    write(page, "output_schema", TAKEN_AWAY)
    page.locator("h1 a").click()
    expect(page.get_by_label("Output schema").first).to_be_attached()
    assert dialogs == ["beforeunload"]
    page.get_by_role("button", name="Review and publish").click()
    page.wait_for_url("**/draft/review")
    assert dialogs == ["beforeunload"]
    with tenant_scope(acme.tenant.id):
        draft = find_draft(tool)
        assert draft is not None
        assert draft.output_schema == json.loads(TAKEN_AWAY)


def test_second_save_does_not_overwrite_and_keeps_its_text(page: Page, acme: Cast) -> None:
    tool = publish_contract(acme)
    begin(acme, tool)
    sign_in(page, acme.editor)
    page.goto(f"/tools/{tool.pk}/draft")
    write(page, "output_schema", TAKEN_AWAY)
    other = page.context.new_page()
    other.goto(f"/tools/{tool.pk}/draft")
    other.get_by_label("Description").fill("Faster.")
    other.get_by_role("button", name="Save draft").click()
    expect(other.get_by_text("Revision 2")).to_be_visible()
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was overwritten")
    expect(page.locator("[data-editor-of=output_schema] .cm-content")).to_contain_text("celsius")
    expect(page.get_by_label("Description, saved by").first).to_have_value("Faster.")
    page.get_by_role("button", name="Overwrite revision 2").click()
    expect(page.get_by_text("Revision 3")).to_be_visible()


def begin(cast: Cast, tool: Tool) -> None:
    """Create a draft equal to the current version."""
    with tenant_scope(cast.tenant.id):
        version = tool.versions.select_related("tool").get()
        create_draft(tool, contract_of(version), Publisher(cast.admin))
