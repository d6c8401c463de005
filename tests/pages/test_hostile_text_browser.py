"""Hostile text from agents is on every page in a real browser, and none of it runs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from audit.models import Invocation, RejectedEvent
from audit.pages.traces.waterfall import WINDOW_ROWS
from audit.queries.call_query import parse, quoted
from audit.queries.definitions import ToolFilter, served_tools
from audit.queries.saved_views import save_view
from audit.work.payload_search import run_slice, start_search
from tenants.keys import create_key
from tenants.models import Scope, TenantSetting
from tenants.scope import tenant_scope
from tests.support.argument_comparisons import compared_arguments
from tests.support.browser_errors import complaints
from tests.support.contracts import make_contract
from tests.support.event_requests import post
from tests.support.factories import (
    Cast,
    make_call,
    make_cast,
    make_definition,
    make_definitions,
    make_ingest_key,
    send_events,
)
from tests.support.hostile_text import XSS, send_hostile_calls
from tests.support.pages import signed_in
from tests.support.reports import make
from tests.support.server import LiveServer
from tests.support.sign_in import sign_in
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import register_contracts

FOREIGN = (
    "main :is(script:not([type='application/json']), iframe, img, object, embed, base, [onload])"
)
FOREIGN += ", main :is([onerror], [onmouseover], [srcdoc], b[hx-get], a[href^='javascript'])"


PAGES = [
    *("/traces/", "/traces/long?row=0", "/calls/", "/calls/?live=1", "/calls/open"),
    *("/calls/open?kind=orphan", "/inbox/", "/tools/", "/reports/"),
    *("/settings/keys", "/settings/members", "/settings/redaction", "/settings/tenant"),
    "/settings/service-accounts",
    *("/", "/approvals/", "/violations/", "/latency/", "/latency/newest"),
    *("/repeats/", "/repeats/results", "/definitions/", "/apart/?q=state:ok&range=24h"),
    *("/agents/", "/conversations/", "/compare/?a=state:ok&b=NOT+state:ok&range=24h"),
]
COUNTS = {
    "arguments": 1,
    "report": 1,
    "search": 1,
    "trace": len(XSS),
    "call": 2 * len(XSS),
    "rejected": 2 * len(XSS),
    "tool": len(XSS),
    "definition": len(XSS),
    "calls that match": len(XSS),
    "traces that match": len(XSS),
    "rows that match": len(XSS),
}
"""How many pages there are of each kind whose addresses depend on what was sent."""
CASES = [(page, 0) for page in PAGES] + [(kind, n) for kind in COUNTS for n in range(COUNTS[kind])]


@dataclass(frozen=True)
class Site:
    """A tenant that has nothing but hostile text, and its pages by kind."""

    cast: Cast
    addresses: dict[str, list[str]]


@pytest.fixture(scope="module")
def site() -> Site:
    """Every page of a tenant whose agents, executors and members write nothing else."""
    cast = make_cast("acme")
    send_hostile_calls(cast)
    key, now = make_ingest_key(cast.tenant), datetime.now(UTC)
    long = [
        make_call(
            trace_id="long",
            tool_name=XSS[n % len(XSS)],
            call_id=XSS[n % len(XSS)],
            started_at=now - timedelta(minutes=2) + timedelta(milliseconds=n),
            output={"status": "error", "error": {"type": XSS[n % len(XSS)], "message": XSS[0]}},
        )
        for n in range(2 * WINDOW_ROWS)
    ]
    send_events(cast.tenant, [event for call in long for event in call], key=key)
    for text in XSS:
        event = make_call(tool_name=text)[1] | {"duration_ms": text, text: text}
        post(key, json.dumps(event).encode() + b"\n" + text.encode())
    for age in (2, 1):
        tools = [
            make_definition(text, title=text, description=f"{text} {age}", _meta={text: age})
            for text in XSS
        ]
        sighting = make_definitions(
            *tools,
            server=XSS[0],
            seen_at=now - timedelta(minutes=age),
            client={"name": XSS[1], "version": XSS[2]},
        )
        send_events(cast.tenant, [sighting], key=key)
    with tenant_scope(cast.tenant.id):
        contracts = [
            ToolContract.model_validate(
                make_contract(
                    name=f"{n} {text}" if text.isprintable() else str(n),
                    description=text,
                    input_schema={"title": text, "type": "object", "properties": {text: {}}},
                )
            )
            for n, text in enumerate(XSS)
        ]
        register_contracts(cast.tenant, contracts, Publisher(key_id="key"))
        for text in XSS:
            create_key(cast.tenant, text[:60], [Scope.READ])
            save_view(cast.admin, text[:60], f"run:{json.dumps(text, ensure_ascii=False)}")
        TenantSetting.objects.create(
            tenant=cast.tenant, redact_names=XSS, redact_patterns=[f"never {text}" for text in XSS]
        )
        search = start_search(cast.admin, "needle", parse(""), now + timedelta(minutes=1))
        calls = Invocation.objects.for_tenant(cast.tenant.id).exclude(trace_id="long")
        traces = {call.trace_id for call in calls}
        addresses = {page: [page] for page in PAGES} | {
            "search": [f"/calls/search/{search.id}"],
            "trace": [f"/traces/{quote(quote(trace, safe=''), safe='')}" for trace in traces],
            "call": [f"/calls/{call.started_on}/{call.invocation_id}" for call in calls],
            "rejected": [
                f"/inbox/{line.id}" for line in RejectedEvent.objects.for_tenant(cast.tenant.id)
            ],
            "tool": [f"/tools/{tool.id}" for tool in Tool.objects.filter(tenant=cast.tenant)],
            "definition": [
                f"/definitions/{one.definition.id}"
                for one in served_tools(ToolFilter(), size=100).tools
                if one.definition is not None
            ],
            "calls that match": [f"/calls/?q={quote(text)}" for text in XSS],
            "traces that match": [f"/traces/?trace={quote(text)}" for text in XSS],
            "rows that match": [
                f"/traces/long?find={quote(text)}&tool={quote(text)}" for text in XSS
            ],
        }
    run_slice(cast.tenant.id, search.id)
    report = make(signed_in(cast.admin), kind="range", range="24h")
    arguments = compared_arguments(cast, f"state:failed tool:{quoted(XSS[0])} NOT trace:long")
    return Site(cast, addresses | {"report": [f"/reports/{report}"], "arguments": [arguments]})


@pytest.fixture(scope="module")
def visitor(browser: Browser, live_server: LiveServer, site: Site) -> Iterator[Page]:
    """A tab in which the admin visits one page after the other."""
    with browser.new_context(base_url=live_server.url) as context:
        page = context.new_page()
        sign_in(page, site.cast.admin)
        yield page


@pytest.fixture(scope="module")
def heard(visitor: Page) -> list[str]:
    """What the browser complained about, on any page so far."""
    complained = complaints(visitor)
    visitor.on("dialog", lambda dialog: complained.append(f"a dialog: {dialog.message}"))
    return complained


def is_inert(page: Page, address: str) -> None:
    assert page.evaluate("window.hacked") is None, address
    assert page.locator(FOREIGN).count() == 0, address


def test_pages_of_each_kind_are_complete(site: Site) -> None:
    counts = {kind: len(addresses) for kind, addresses in site.addresses.items()}
    assert counts == dict.fromkeys(PAGES, 1) | COUNTS


@pytest.mark.generated(20, kind="kind")
@pytest.mark.parametrize(("kind", "number"), CASES)
def test_hostile_agent_text_runs_on_no_page(
    visitor: Page, heard: list[str], site: Site, kind: str, number: int
) -> None:
    address = site.addresses[kind][number]
    answer = visitor.goto(address)
    assert answer is not None
    assert answer.status == 200, address
    assert "/login" not in visitor.url, f"something before {address} signed us out"
    visitor.evaluate("document.querySelectorAll('main details').forEach(it => { it.open = true })")
    is_inert(visitor, address)
    assert heard == [], address


def test_rows_and_panels_loaded_later_are_inert(page: Page, site: Site) -> None:
    sign_in(page, site.cast.admin)
    heard = complaints(page)
    page.goto("/traces/long?row=0")
    rows = page.locator(".calls li[id]")
    rows.nth(WINDOW_ROWS - 1).locator("a").focus()
    page.keyboard.press("ArrowDown")
    expect(rows).to_have_count(2 * WINDOW_ROWS)
    is_inert(page, "rows")
    for n in range(len(XSS)):
        with page.expect_response("**/calls/2*/*"):
            rows.nth(WINDOW_ROWS + n).locator("a").press("Enter")
        is_inert(page, f"panel {n}")
    assert heard == []


@pytest.mark.parametrize("text", XSS)
def test_trace_text_is_served_as_plain_text(page: Page, acme: Cast, text: str) -> None:
    send_events(acme.tenant, make_call(trace_id="t", tool_name=text))
    sign_in(page, acme.editor)
    answer = page.goto("/traces/t/text")
    assert answer is not None
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert page.evaluate("window.hacked") is None
    assert page.locator("script, img, svg, iframe, b").count() == 0
