"""An editor publishes a version in a real browser, under the real content security policy."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tenants.members import add_member
from tenants.models import Role
from tenants.scope import tenant_scope
from tests.support.browser_errors import complaints
from tests.support.factories import Cast
from tests.support.registered_tools import register_tool
from tests.support.sign_in import sign_in
from tools_registry.models import Tool

pytestmark = pytest.mark.sampled("admin in a browser", 2)


def test_editor_publishes_and_reads_the_next_version(page: Page, acme: Cast, globex: Cast) -> None:
    heard = complaints(page)
    register_tool(acme, name="get_weather")
    register_tool(globex, name="their_tool")
    acme.editor.is_staff = True
    acme.editor.save()
    sign_in(page, acme.editor)

    page.goto("/tools/")
    page.get_by_role("link", name="get_weather").click()
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Versions").click()
    page.get_by_role("link", name="Edit in admin").click()
    expect(page.get_by_label("Description")).to_have_value("Tells the weather.")
    page.get_by_label("Notes").fill("Ask Ann.")
    page.get_by_label("Description").fill("Tells the weather in a city.")
    page.get_by_label("Input schema").fill("{")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Enter a valid JSON.")).to_be_visible()
    schema = {"type": "object", "properties": {"town": {"type": "string"}}}
    page.get_by_label("Input schema").fill(json.dumps(schema))
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_text("their_tool")).to_have_count(0)
    page.get_by_label("Reason").fill("Towns, too.")
    page.get_by_role("button", name="Publish").click()
    page.goto("/tools/")
    page.get_by_role("link", name="get_weather").click()
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Versions").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("version 2")
    expect(page.get_by_text("Tells the weather in a city.")).to_be_visible()
    expect(page.locator("pre").first).to_contain_text('"town"')
    expect(page.get_by_role("paragraph").filter(has_text="Ask Ann.")).to_be_visible()
    page.get_by_role("link", name="1", exact=True).click()
    expect(page.get_by_text("(not current)")).to_be_visible()
    expect(page.locator("pre").first).to_contain_text('"city"')
    assert heard == [], "the policy forbids something the admin does"


def test_published_versions_are_read_only(page: Page, acme: Cast) -> None:
    tool = register_tool(acme, name="get_weather")
    acme.admin.is_staff = True
    acme.admin.save()
    sign_in(page, acme.admin)
    page.goto(f"/admin/tools_registry/tool/{tool.pk}/change/")
    versions = page.locator("#versions-group")
    expect(versions.get_by_text("sha256:")).to_be_visible()
    expect(versions.locator("input:visible, textarea:visible, select:visible")).to_have_count(0)
    expect(page.get_by_label("Name")).to_have_count(0)
    expect(page.get_by_role("link", name="Delete")).to_have_count(0)


def test_editor_creates_a_tool_and_cannot_delete(page: Page, acme: Cast) -> None:
    heard = complaints(page)
    acme.editor.is_staff = True
    acme.editor.save()
    sign_in(page, acme.editor)
    page.goto("/admin/tools_registry/tool/")
    page.get_by_role("link", name="Add tool").click()
    page.get_by_label("Name").fill("fetch_page")
    page.get_by_label("Description").fill("Fetches a page.")
    page.get_by_label("Trusted").check()
    page.get_by_label("Output schema").fill('{"type": "string"}')
    page.get_by_role("button", name="Save and continue editing").click()

    expect(page.get_by_role("listitem").filter(has_text="was added successfully")).to_be_visible()
    with tenant_scope(acme.tenant.id):
        tool = Tool.objects.get(tenant=acme.tenant)
    assert page.url.endswith(f"/admin/tools_registry/tool/{tool.pk}/change/")
    expect(page.locator(".readonly", has_text="fetch_page").first).to_be_visible()
    expect(page.locator("#versions-group tr.form-row")).to_have_count(1)
    page.get_by_label("Output schema").fill("")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page).to_have_url(re.compile(f"/tools/{tool.pk}/draft/review"))
    page.goto(f"/admin/tools_registry/tool/{tool.pk}/change/")
    expect(page.locator("#versions-group tr.form-row")).to_have_count(1)
    # Neither deleting nor a history outside the tenant's own record, here or in the list.
    expect(page.get_by_role("link", name="Delete")).to_have_count(0)
    expect(page.get_by_role("link", name="History")).to_have_count(0)
    page.goto("/admin/tools_registry/tool/?q=fetch")
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    expect(page.get_by_label("Action")).to_have_count(0)
    expect(page.locator("input.action-select")).to_have_count(0)
    assert heard == []
    for gone in ("delete", "history"):
        response = page.goto(f"/admin/tools_registry/tool/{tool.pk}/{gone}/")
        assert response is not None
        assert response.status == 404


def test_tool_of_another_tenant_is_invisible_until_switching(
    page: Page, acme: Cast, globex: Cast
) -> None:
    foreign = register_tool(globex, name="their_tool")
    acme.admin.is_staff = True
    acme.admin.save()
    sign_in(page, acme.admin)
    response = page.goto(f"/admin/tools_registry/tool/{foreign.pk}/change/")
    assert response is not None
    assert response.status == 404
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    page.goto("/admin/tools_registry/tool/?q=their")
    expect(page.locator("#result_list tbody tr")).to_have_count(0)

    # A member of both edits it once the switcher says so, and only then.
    with tenant_scope(globex.tenant.id):
        add_member(globex.tenant, acme.admin, Role.EDITOR)
    page.goto("/traces/")
    page.get_by_title("Switch tenant").click()
    page.get_by_role("button", name=globex.tenant.name).click()
    expect(page.get_by_title("Switch tenant")).to_contain_text(globex.tenant.name)
    page.goto(f"/admin/tools_registry/tool/{foreign.pk}/change/")
    page.get_by_label("Notes").fill("Ask Bob.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("listitem").filter(has_text="changed successfully")).to_be_visible()
    with tenant_scope(globex.tenant.id):
        assert Tool.objects.get(tenant=globex.tenant).notes == "Ask Bob."
