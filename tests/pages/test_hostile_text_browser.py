"""Hostile text from agents is on every page in a real browser, and none of it runs."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from audit.models import Invocation, RejectedEvent
from audit.pages.traces.waterfall import WINDOW_ROWS
from audit.queries.call_query import parse
from audit.queries.saved_views import save_view
from audit.work.payload_search import run_slice, start_search
from tenants.keys import create_key
from tenants.models import Scope, TenantSetting
from tenants.scope import tenant_scope
from tests.support.browser_errors import complaints
from tests.support.contracts import make_contract
from tests.support.event_requests import post
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.hostile_text import XSS, send_hostile_calls
from tests.support.reports import make
from tests.support.sign_in import sign_in
from tools_registry.changes import Publisher
from tools_registry.models import Tool
from tools_registry.schemas import ToolContract
from tools_registry.versions import register_contracts

FOREIGN = (
    "main :is(script:not([type='application/json']), iframe, img, object, embed, base, [onload])"
)
FOREIGN += ", main :is([onerror], [onmouseover], [srcdoc], b[hx-get], a[href^='javascript'])"


@pytest.fixture
def addresses(acme: Cast) -> Iterator[list[str]]:
    """Every page of a tenant whose agents, executors and members write nothing else."""
    send_hostile_calls(acme)
    key, now = make_ingest_key(acme.tenant), datetime.now(UTC)
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
    send_events(acme.tenant, [event for call in long for event in call], key=key)
    for text in XSS:
        event = make_call(tool_name=text)[1] | {"duration_ms": text, text: text}
        post(key, json.dumps(event).encode() + b"\n" + text.encode())
    with tenant_scope(acme.tenant.id):
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
        register_contracts(acme.tenant, contracts, Publisher(key_id="key"))
        for text in XSS:
            create_key(acme.tenant, text[:60], [Scope.READ])
            save_view(acme.admin, text[:60], f"run:{json.dumps(text, ensure_ascii=False)}")
        TenantSetting.objects.create(
            tenant=acme.tenant, redact_names=XSS, redact_patterns=[f"never {text}" for text in XSS]
        )
        search = start_search(acme.admin, "needle", parse(""), now + timedelta(minutes=1))
        calls = Invocation.objects.for_tenant(acme.tenant.id).exclude(trace_id="long")
        traces = {call.trace_id for call in calls}
        pages = [
            *("/traces/", "/traces/long?row=0", "/calls/", "/calls/?live=1", "/calls/open"),
            *("/calls/open?kind=orphan", f"/calls/search/{search.id}", "/inbox/", "/tools/"),
            *(
                "/settings/keys",
                "/settings/members",
                "/settings/redaction",
                "/settings/tenant",
                "/",
                "/violations/",
                "/latency/",
                "/latency/newest",
                "/repeats/",
                "/repeats/results",
            ),
            *(f"/traces/{quote(quote(trace, safe=''), safe='')}" for trace in traces),
            *(f"/calls/{call.started_on}/{call.invocation_id}" for call in calls),
            *(f"/inbox/{line.id}" for line in RejectedEvent.objects.for_tenant(acme.tenant.id)),
            *(f"/tools/{tool.id}" for tool in Tool.objects.filter(tenant=acme.tenant)),
            *(f"/calls/?q={quote(text)}" for text in XSS),
            *(f"/traces/?trace={quote(text)}" for text in XSS),
            *(f"/traces/long?find={quote(text)}&tool={quote(text)}" for text in XSS),
        ]
    run_slice(acme.tenant.id, search.id)
    client = Client()
    client.force_login(acme.admin)
    pages += ["/reports/", f"/reports/{make(client, kind='range', range='24h')}"]
    yield [address for address in pages if client.get(address).status_code != 404]


def is_inert(page: Page, address: str) -> None:
    assert page.evaluate("window.hacked") is None, address
    assert page.locator(FOREIGN).count() == 0, address


def test_hostile_agent_text_runs_on_no_page(page: Page, acme: Cast, addresses: list[str]) -> None:
    assert len(addresses) > 80
    sign_in(page, acme.admin)
    heard = complaints(page)
    page.on("dialog", lambda dialog: heard.append(f"a dialog: {dialog.message}"))
    for address in addresses:
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == 200, address
        assert "/login" not in page.url, f"something before {address} signed us out"
        page.evaluate("document.querySelectorAll('main details').forEach(it => { it.open = true })")
        is_inert(page, address)
        assert heard == [], address


def test_rows_and_panels_loaded_later_are_inert(
    page: Page, acme: Cast, addresses: list[str]
) -> None:
    sign_in(page, acme.admin)
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
