"""The inbox in a browser, without JavaScript: how a form changes the text of a line."""

import json

from playwright.sync_api import Browser, expect

from audit.models import Invocation
from tenants.scope import tenant_scope
from tests.support.event_requests import post
from tests.support.factories import Cast, make_call, make_ingest_key
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in


def test_event_is_edited_and_retried_without_javascript(
    browser: Browser, live_server: LiveServer, acme: Cast
) -> None:
    event = make_call(tool_name="mend_me", args={"text": "</textarea><b>é\u2028\\u0000"})[1]
    broken = json.dumps(event | {"duration_ms": "20"}, ensure_ascii=False)
    post(make_ingest_key(acme.tenant), broken.encode())
    context = browser.new_context(base_url=live_server.url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, acme.editor)
    page.goto("/")
    page.get_by_role("link", name="Rejected events 1").click()
    page.get_by_role("link", name="Invalid event").click()
    page.get_by_text("Resend an edited copy").click()
    field = page.get_by_label("Event (one JSON object)")
    assert field.input_value() == broken
    field.fill(json.dumps(json.loads(broken) | {"duration_ms": 20}, indent=2))
    page.get_by_role("button", name="Resend copy").click()
    expect(page.get_by_text("Event stored.")).to_be_visible()
    page.get_by_role("link", name="this call of mend_me").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("mend_me in trace")
    with tenant_scope(acme.tenant.id):
        assert Invocation.objects.for_tenant(acme.tenant.id).get().duration_us == 20_000
    context.close()
