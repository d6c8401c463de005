"""Every page on a small screen: no horizontal scrolling, however long a name is."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from audit.models import ChannelKind, RejectedEvent
from audit.queries.definitions import ToolFilter, served_tools
from audit.work.replay.job import run_slice as run_replay
from tenants.scope import tenant_scope
from tests.support import sampling
from tests.support.acts import act_on_prices
from tests.support.argument_comparisons import compared_arguments
from tests.support.browser_errors import complaints
from tests.support.contracts import make_contract
from tests.support.deliveries import make_channel
from tests.support.drafts import drafted_and_replayed
from tests.support.erasures import preview_erasure
from tests.support.event_requests import post
from tests.support.factories import (
    Cast,
    make_call,
    make_definition,
    make_definitions,
    make_ingest_key,
    send_events,
)
from tests.support.ledger_log import sign
from tests.support.legal_holds import set_hold
from tests.support.pages import signed_in
from tests.support.reports import make
from tests.support.sign_in import sign_in
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import register_contracts

LONG = "x" * 120
PAGES_SAMPLED = 14
ERROR = {
    "type": "UPSTREAM",
    "message": "<script>alert(1)</script> " + LONG,
    "code": LONG,
    "endpoint": f"https://example.org/{LONG}",
    "details": {LONG: LONG},
}


def test_no_page_scrolls_sideways(page: Page, acme: Cast, pytestconfig: pytest.Config) -> None:
    violation = {
        "path": f"$.{LONG}",
        "severity": "error",
        "code": "CONSTRAINT_VIOLATION",
        "expected": LONG,
        "received": LONG,
        "message": "",
        "llmMessage": "",
    }
    guard = {"strategy": "coerce-and-warn", "outcome": "failed", "violations": [violation]}
    send_events(
        acme.tenant,
        [
            *make_call(
                trace_id="t" * 128,
                run_id=LONG,
                tool_name=LONG,
                tool_version=f"sha256:{'a' * 64}",
                args={LONG: LONG},
                output={"status": "error", "error": ERROR},
                guard=guard,
            ),
            *make_call(trace_id="t" * 128, tool_name="waits", is_open=True),
        ],
    )
    contract = ToolContract.model_validate(make_contract(name=LONG, description=LONG))
    with tenant_scope(acme.tenant.id):
        register_contracts(acme.tenant, [contract], Publisher(key_id="key"))
        tool = Tool.objects.get(name=LONG)
        replay = drafted_and_replayed(acme, tool)
    run_replay(acme.tenant.id, replay)
    for age, description in ((2, LONG), (1, f"{LONG}!")):
        served = make_definition(LONG, description=description, _meta={LONG: LONG})
        seen_at = datetime.now(UTC) - timedelta(minutes=age)
        send_events(acme.tenant, [make_definitions(served, server=LONG, seen_at=seen_at)])
    with tenant_scope(acme.tenant.id):
        definition = served_tools(ToolFilter(), size=1).tools[0].definition
    assert definition is not None
    key = make_ingest_key(acme.tenant)
    post(key, b'{"type": "gap", "reason": "%s"}\n{ \xff%s' % (2 * (LONG.encode(),)))
    with tenant_scope(acme.tenant.id):
        refused = RejectedEvent.objects.for_tenant(acme.tenant.id).values_list("id", flat=True)
        lines = [f"/inbox/{pk}" for pk in refused]
    report = make(signed_in(acme.admin), kind="range", range="24h")
    set_hold(acme, trace_id="t" * 128, tool_name=LONG[:200], name=LONG[:100], reason=LONG[:900])
    url = f"https://alerts.example/{LONG[:900]}"
    channel, _ = make_channel(acme, ChannelKind.WEBHOOK, LONG[:100], url=url)
    signed_in(acme.admin).post(f"/settings/channels/{channel.id}/test")
    erasure = preview_erasure(acme, f"trace:{'t' * 128} version:{LONG[:200]}").id
    act_on_prices(acme)
    signed = sign(acme.tenant).signed_size
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in(page, acme.admin)
    heard = complaints(page)
    trace = f"/traces/{'t' * 128}"
    addresses = (
        *("/", "/traces/", "/traces/?state=ok", trace, "/tools/", f"/tools/{tool.pk}"),
        *("/tools/import", "/tools/definitions"),
        *(f"/tools/{tool.pk}/draft", f"/tools/{tool.pk}/draft/review"),
        *(
            f"/tools/{tool.pk}/replays/{replay}",
            f"/tools/{tool.pk}/effect",
            f"/tools/{tool.pk}/drift",
        ),
        *("/calls/", "/calls/open", "/approvals/", "/violations/", "/latency/", "/repeats/"),
        f"{trace}/compare?with={'t' * 128}&pair=1",
        compared_arguments(acme, f"state:failed tool:{LONG}"),
        *("/apart/?q=state:ok&range=24h", "/apart/?q=state:nonsense&range=24h"),
        *("/compare/?a=state:ok&b=NOT+state:ok&range=7d", "/compare/?a=agent:x"),
        *("/agents/", "/conversations/"),
        *("/inbox/", *lines),
        *("/definitions/", f"/definitions/{definition.id}"),
        *("/reports/", f"/reports/{report}"),
        *("/ledger/", "/ledger/entries/0", f"/ledger/consistency?old={signed}"),
        *("/settings/keys", "/settings/members", "/settings/password"),
        "/settings/service-accounts",
        *("/settings/channels", "/settings/channels/new/email", f"/settings/channels/{channel.id}"),
        *("/settings/prices", "/settings/prices/new", "/settings/prices/2026-01-01", "/costs/"),
        *("/settings/tenant", "/settings/redaction", "/settings/preferences", "/api/v1/docs"),
        *("/settings/holds", "/settings/erasures", f"/settings/erasures/{erasure}"),
    )
    for address in sampling.some(pytestconfig, "narrow", addresses, PAGES_SAMPLED):
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390, address
    page.goto(trace)
    page.get_by_role("link", name=re.compile("^[0-9a-f-]{36}$")).first.click()
    expect(page.get_by_role("link", name="Show in its trace")).to_be_visible()
    page.wait_for_load_state()  # with its styles: only `goto` waits for them by itself
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert heard == []


@pytest.mark.generated(1)
@pytest.mark.parametrize("width", [390, 1440])
def test_user_gets_from_an_empty_tenant_to_the_first_call(
    page: Page, acme: Cast, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    sign_in(page, acme.admin)
    heard = complaints(page)
    page.goto("/")
    page.get_by_role("button", name="Create API key").click()
    expect(page.get_by_role("heading", name="No tool calls yet")).to_be_visible()
    lines = page.get_by_text("export TOOLTRAIL_API_KEY=tt_").inner_text()
    page.get_by_role("radio", name="LangChain").check(force=True)
    expect(page.get_by_text("TooltrailHandler(Trail())")).to_be_visible()
    expect(page.get_by_text("first-python")).to_be_hidden()
    send_events(acme.tenant, make_call(trace_id="the-first"), key=lines.rpartition("=")[2])
    page.get_by_role("link", name="Open its trace").click()  # without a reload
    expect(page).to_have_url(re.compile("/traces/the-first"))
    assert heard == []
