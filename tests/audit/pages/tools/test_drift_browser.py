"""An editor compares real outputs with the contract and drafts a new one; in a browser."""

from playwright.sync_api import Page, expect

from tenants.scope import tenant_scope
from tests.support.browser_errors import complaints
from tests.support.drift import send_outputs, weather_contract
from tests.support.factories import Cast
from tests.support.sign_in import sign_in
from tools_registry.changes import Publisher
from tools_registry.drafts import find_draft
from tools_registry.models import Tool
from tools_registry.versions import publish_version


def test_observed_fields_become_a_draft(page: Page, acme: Cast) -> None:
    heard = complaints(page)
    with tenant_scope(acme.tenant.id):
        tool = Tool.objects.create(tenant=acme.tenant, name="get_weather")
        publish_version(tool, weather_contract(), Publisher(acme.editor))
    send_outputs(acme, [{"celsius": 3.5, "sky": "clear"}] * 3 + [{"sky": "rain", "wind": 3}] * 2)
    sign_in(page, acme.editor)
    page.goto(f"/tools/{tool.pk}")
    page.get_by_role("link", name="Drift").click()
    page.get_by_role("button", name="Analyze", exact=True).click()
    outputs = page.get_by_role("region", name="Outputs")
    wind = outputs.get_by_role("row").filter(has_text="$.wind")
    expect(wind).to_contain_text("Undeclared")
    expect(outputs.get_by_role("row").filter(has_text="$.sky")).to_contain_text('"rain"')
    page.set_viewport_size({"width": 390, "height": 844})
    arguments = page.get_by_role("region", name="Arguments")
    matches = arguments.get_by_text("Matches the schema")
    text, card = matches.bounding_box(), arguments.bounding_box()
    assert text is not None
    assert card is not None
    assert text["x"] + text["width"] <= card["x"] + card["width"], "cut off"
    page.set_viewport_size({"width": 1280, "height": 844})
    wind.get_by_text("2 calls").click()
    expect(wind.locator("a[href^='/calls/']").first).to_be_visible()
    page.get_by_role("button", name="Create draft from observations").click()
    expect(page.locator("#check")).to_contain_text("Valid contract")
    expect(page.locator("[data-editor-of=output_schema] .cm-content")).to_contain_text("wind")
    with tenant_scope(acme.tenant.id):
        draft = find_draft(tool)
        assert draft is not None
        assert draft.output_schema["properties"]["wind"] == {"type": "integer"}
    assert heard == [], "the content security policy blocked something"
