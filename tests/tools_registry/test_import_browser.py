"""An editor imports tools and turns on validation of outputs; in a browser."""

import json
import re
from pathlib import Path
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from tenants.scope import tenant_scope
from tests.support.browser_errors import complaints
from tests.support.factories import Cast
from tests.support.registered_tools import DEFINITION, register_tool
from tests.support.sign_in import sign_in
from tools_registry.changes import timeline
from tools_registry.exchange import job
from tools_registry.models import Tool

pytestmark = pytest.mark.sampled("import in a browser", 1)


def preview(page: Page, file: Path, tools: object) -> UUID:
    file.write_text(json.dumps(tools))
    page.goto("/tools/import")
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Preview").click()
    page.wait_for_url(re.compile("/tools/import/"))
    return UUID(page.url.rpartition("/")[2])


def work(cast: Cast, pk: UUID, chunks: int = 1_000) -> None:
    """What the worker does, or its first transactions."""
    for _ in range(chunks):
        if not job.run_slice(cast.tenant.id, pk, seconds=0):
            return


def test_file_is_selected_previewed_and_published(page: Page, acme: Cast, tmp_path: Path) -> None:
    heard = complaints(page)
    register_tool(acme)
    sign_in(page, acme.editor)
    preview(page, tmp_path / "tools.json", [DEFINITION, {"name": "bad", "input_schema": 7}])
    expect(page.get_by_role("heading", name="Preview of 2 tools")).to_be_visible()
    page.get_by_role("link", name="Published").click()
    row = page.get_by_role("row").filter(has_text="get_weather")
    expect(row).to_contain_text("breaking for callers")
    expect(row).to_contain_text("maxLength")
    page.get_by_label("Reason").fill("Cities have short names.")
    page.get_by_role("button", name="Import 1 tool").click()
    expect(page.get_by_role("heading", name="Result of 2 tools")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="bad")).to_contain_text("[1].input_schema")
    row.get_by_role("link", name="get_weather").click()
    last = page.get_by_role("listitem").filter(has_text="Published").first
    expect(last).to_contain_text("Cities have short names.")
    assert heard == [], "the policy forbids something the page does"


def test_large_import_is_watched_and_cancelled(page: Page, acme: Cast, tmp_path: Path) -> None:
    heard = complaints(page)
    sign_in(page, acme.editor)
    tools = [{"name": f"tool_{n:02}", "inputSchema": {}} for n in range(job.AT_ONCE_TOOLS + 1)]
    pk = preview(page, tmp_path / "tools.json", tools)
    expect(page.get_by_role("progressbar")).to_be_visible()
    work(acme, pk)
    page.get_by_role("button", name="Import 51 tools").click()  # it came by itself
    expect(page.get_by_role("progressbar")).to_be_visible()
    work(acme, pk, 10)
    expect(page.get_by_text("19 %", exact=True).last).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("41 tools of 51 not imported")).to_be_visible()
    page.get_by_role("button", name="Preview again").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    work(acme, pk)
    expect(page.get_by_role("button", name="Import 41 tools")).to_be_visible()
    assert heard == [], "the policy forbids something the page does"


def test_editor_toggles_validation_on_arrival(page: Page, acme: Cast) -> None:
    heard = complaints(page)
    tool = register_tool(acme)
    sign_in(page, acme.editor)
    page.goto(f"/tools/{tool.pk}")
    section = page.get_by_role("region", name="Validation on arrival")
    section.get_by_text("Turn on", exact=True).click()
    section.get_by_label("Reason").fill("Two executors do not guard.")
    section.get_by_role("button", name="Turn on validation").click()
    expect(section.get_by_text("Turn off", exact=True)).to_be_visible()
    with tenant_scope(acme.tenant.id):
        assert Tool.objects.get(pk=tool.pk).is_checked_on_arrival
        assert timeline(tool, size=1)[0].reason == "Two executors do not guard."
    section.get_by_text("Turn off", exact=True).click()
    section.get_by_role("button").click()
    expect(section.get_by_text("Turn on", exact=True)).to_be_visible()
    with tenant_scope(acme.tenant.id):
        assert not Tool.objects.get(pk=tool.pk).is_checked_on_arrival
    assert heard == [], "the policy forbids something the page does"
