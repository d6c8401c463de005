"""One call: its panel, its page, and its events as they were received."""

import json
import re
import uuid
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from tenants.scope import tenant_scope
from tests.support.contracts import make_contract
from tests.support.factories import Cast, make_call, send_events
from tests.support.pages import (
    FRAME,
    PARTIAL,
    signed_in,
    statements,
    text,
)
from tests.support.traces import FAILED_OUTPUT, VIOLATED_GUARD
from tools_registry.changes import Publisher
from tools_registry.schemas import ToolContract
from tools_registry.versions import register_contracts

DAY = (datetime.now(UTC) - timedelta(minutes=1)).date()


def send(cast: Cast, **members: Any) -> str:
    """Send one call; return the address of its page."""
    events = make_call(**members)
    send_events(cast.tenant, events)
    return address(events[0])


def address(event: dict[str, Any]) -> str:
    return f"/calls/{event['started_at'][:10]}/{event['invocation_id']}"


def body(cast: Cast, where: str) -> str:
    answer = signed_in(cast.editor).get(where)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_page_shows_arguments_output_context_and_events(acme: Cast) -> None:
    where = send(
        acme,
        args={"city": "London"},
        output={"status": "ok", "data": {"t": 21.50}, "meta": {"took_ms": 20, "cache_hit": True}},
        run_id="run-7",
        case_id="crm-1",
        timeouts_ms=2_000,
        context={"agent": "concierge", "model": "script-1", "turns": 3},
        model_usage={"prompt": 1812, "completion": 64},
    )
    shown = text(body(acme, where))
    for part in (
        '{ "city" : "London" }',
        '{ "t" : 21.5 }',
        "cache hit",
        "20 ms (timeout 2.00 s)",
        "Run run-7",
        "Case crm-1",
        "Agent concierge",
        "Model script-1",
        "Tokens of the asking model 1,812 ▸ 64",
        "Start #0 received",
        "End #1 received",
    ):
        assert part in shown


@pytest.mark.parametrize(
    "usage",
    [{"prompt": "1"}, {"prompt": 1, "completion": True}, {"prompt": -1, "completion": 1}, 7],
)
def test_malformed_usage_of_the_model_is_not_shown(acme: Cast, usage: Any) -> None:
    assert "Tokens of the asking model" not in body(acme, send(acme, model_usage=usage))


@pytest.mark.parametrize("outcome", ["fallback", "error-result"])
def test_guard_replacement_is_not_marked_as_violation(acme: Cast, outcome: str) -> None:
    data = {"summary": "not available"}
    page = body(
        acme,
        send(
            acme,
            output={"status": "ok", "data": data, "meta": {"took_ms": 20}},
            guard=VIOLATED_GUARD | {"strategy": outcome, "outcome": outcome},
        ),
    )
    assert "replaced by the guard" in page
    assert "missing" not in page.split("<h3>Output")[1].split("<h3>")[0]
    assert "ENUM_MISMATCH" in page.split("<h3>Output")[0]


def test_output_rejected_by_the_guard_is_shown_with_marks(acme: Cast) -> None:
    violation = {
        "path": "$.humidity",
        "severity": "error",
        "code": "WRONG_TYPE",
        "expected": "integer",
        "received": "string",
    }
    page = body(
        acme,
        send(
            acme,
            is_error=True,
            output=FAILED_OUTPUT,
            guard={
                "strategy": "throw",
                "outcome": "failed",
                "violations": [violation],
                "received": {"humidity": "<b>damp</b>", "city": "Oslo"},
            },
        ),
    )
    shown = page.split("<h3>Tool output")[1].split("<h3>")[0]
    assert '<mark class="j-mark is-error">' in shown
    assert "&lt;b&gt;damp&lt;/b&gt;" in shown
    assert "WRONG_TYPE expected integer, received string" in text(shown)
    assert "<h3>Output" not in page


def test_error_details_are_shown_completely(acme: Cast) -> None:
    error = FAILED_OUTPUT["error"] | {
        "message": "first line\nsecond line",
        "code": "HTTP_502",
        "endpoint": "api.example",
        "attempt": 2,
        "retry_after_ms": 500,
        "cause": "ConnectionResetError",
    }
    shown = text(body(acme, send(acme, output=FAILED_OUTPUT | {"error": error})))
    for part in (
        "first line second line",
        "Code HTTP_502",
        "Upstream status 502",
        "Retry after 500 ms",
        "Endpoint api.example",
        "attempt 2",
        '"cause" : "ConnectionResetError"',
    ):
        assert part in shown


@pytest.mark.parametrize("member", ["editor", "viewer"])
def test_successful_call_shows_no_error(acme: Cast, member: str) -> None:
    """Also if it is a second attempt: SDKs send the attempt with every call."""
    output = {"status": "ok", "data": {}, "meta": {"took_ms": 1, "attempt": 2}}
    page = signed_in(getattr(acme, member)).get(send(acme, output=output)).content.decode()
    assert "attempt 2" in text(page)
    assert 'class="error"' not in page
    assert "No error message." not in page


def test_violation_is_marked_at_its_value_with_the_original_value(acme: Cast) -> None:
    violation = {
        "path": "$.temperature",
        "severity": "error",
        "code": "COERCED",
        "expected": "number",
        "received": "string",
        "receivedValue": "72.5",
        "coercedValue": 72.5,
        "message": "",
        "llmMessage": "",
    }
    page = body(
        acme,
        send(
            acme,
            output={"status": "ok", "data": {"temperature": 72.5}, "meta": {"took_ms": 1}},
            guard={
                "strategy": "coerce-and-warn",
                "outcome": "coerced",
                "violations": [violation],
            },
        ),
    )
    assert '<mark class="j-mark is-error"><span class="j-number">72.5</span></mark>' in page
    assert '· was "72.5"' in text(page)
    assert "coerce-and-warn → coerced" in text(page)
    cell = text(page.split("<tbody>")[1].split("</tbody>")[0])
    assert cell == '$.temperature COERCED number string "72.5" → 72.5'


@pytest.mark.slow
def test_output_without_an_envelope_is_shown_unchanged(acme: Cast) -> None:
    for output in ("plain", {"status": "ok"}, {"status": "error", "error": "text"}, [1], None):
        page = text(body(acme, send(acme, output=output)))
        compact = page.replace(" ", "")
        assert json.dumps(output).replace(" ", "") in compact or output is None


def test_open_call_reports_the_missing_end(acme: Cast) -> None:
    shown = text(body(acme, send(acme, is_open=True, timeouts_ms=1_000)))
    assert "No end event yet, and the timeout has passed" in shown
    assert "overdue" in shown


def test_end_without_a_start_is_shown(acme: Cast) -> None:
    _, end = make_call()
    send_events(acme.tenant, [end])
    shown = text(body(acme, address(end)))
    assert "End #0" in shown
    assert "Arguments" not in shown


def test_erased_payload_leaves_the_indexed_values(acme: Cast) -> None:
    import os

    import psycopg

    where = send(acme, output=FAILED_OUTPUT)
    with psycopg.connect(os.environ["DATABASE_KEEPER_URL"]) as keeper:
        keeper.execute(f"SET LOCAL tooltrail.tenant_id = '{acme.tenant.id}'")
        keeper.execute("UPDATE batch SET payload = NULL WHERE tenant_id = %s", [acme.tenant.id])
    shown = text(body(acme, where))
    assert "Bad gateway" in shown
    assert "erased" in shown
    assert signed_in(acme.editor).get(f"{where}/start").status_code == 404


def test_raw_events_are_served_byte_for_byte(acme: Cast) -> None:
    start, end = make_call(args={"weird": '</pre><script>"\u202e'})
    send_events(acme.tenant, [start, end])
    client = signed_in(acme.editor)
    answer = client.get(f"{address(start)}/start")
    assert answer.content == json.dumps(start).encode()
    assert client.get(f"{address(start)}/end").content == json.dumps(end).encode()
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_large_output_is_truncated_with_a_link_to_the_raw_event(acme: Cast) -> None:
    where = send(acme, output=[{"n": n, "text": "x" * 90} for n in range(900)])
    page = body(acme, where)
    assert "Show the full raw event" in page
    assert len(page) < 100_000
    assert len(signed_in(acme.editor).get(f"{where}/end").content) > 90_000


def test_identical_calls_and_neighbouring_failures_are_linked(acme: Cast) -> None:
    when = datetime.now(UTC) - timedelta(minutes=1)
    events = [
        make_call(started_at=when + timedelta(seconds=n), output=FAILED_OUTPUT) for n in range(3)
    ]
    between = [
        make_call(started_at=when + timedelta(seconds=n + 0.5), call_id="another") for n in range(2)
    ]
    send_events(acme.tenant, [event for call in events + between for event in call])
    page = body(acme, address(events[1][0]))
    assert "2 identical calls" in text(page)
    before, after = events[0][0], events[2][0]
    identical = page.split('<ul class="alike">')[1].split("</ul>")[0]
    linked = re.findall(r'<a href="/traces/trace-123\?call=([^"#]*)#', identical)
    assert sorted(linked) == sorted([before["invocation_id"], after["invocation_id"]])
    failures = page.split('<nav class="beside"')[1].split("</nav>")[0]
    assert re.findall(r'hx-get="([^"]*)"', failures) == [address(before), address(after)]


def test_many_identical_calls_are_linked_through_a_list(acme: Cast) -> None:
    events = [make_call(call_id="same one") for _ in range(22)]
    send_events(acme.tenant, [event for call in events for event in call])
    page = body(acme, address(events[0][0]))
    assert "20+ identical calls" in text(page)
    link = re.search(r'<a href="([^"]*)">Show all</a>', page)
    assert link is not None
    assert body(acme, unescape(link[1])).count('<tr id="r-') == 22


def test_version_links_to_the_registry_if_the_tool_is_registered(acme: Cast) -> None:
    contract = ToolContract.model_validate(make_contract(name="get weather&x"))
    with tenant_scope(acme.tenant.id):
        register_contracts(acme.tenant, [contract], Publisher(key_id="key"))
    client = signed_in(acme.editor)
    page = body(acme, send(acme, tool_name="get weather&x", tool_version="1"))
    link = re.search(r'href="(/tools/find[^"]*)"[^>]*>v1</a>', page)
    assert link is not None
    answer = client.get(unescape(link[1]))
    assert re.fullmatch(r"/tools/[0-9a-f-]{36}/1", answer.headers["Location"])
    unknown = body(acme, send(acme, tool_name="unknown", tool_version="1"))
    assert "/tools/find" not in unknown
    assert "This tool is not registered" in unknown


def test_shared_context_values_link_to_matching_calls(acme: Cast) -> None:
    other = send(acme, tool_name="other", run_id='run "7" ü')
    page = body(acme, send(acme, run_id='run "7" ü', producer_id="web-1", locale="de-CH"))
    link = re.search(r'<dt>Run</dt><dd class="mono free"><a href="([^"]*)"', page)
    assert link is not None
    listed = body(acme, unescape(link[1]))
    assert other in listed
    assert listed.count('<tr id="r-') == 2
    assert re.search(r'<dt>Producer</dt><dd class="mono free"><a href="[^"]*producer', page)
    assert '<dt>Locale</dt><dd class="mono free">de-CH</dd>' in page


def test_htmx_request_gets_only_the_panel(acme: Cast) -> None:
    where = send(acme, guard=VIOLATED_GUARD)
    part = signed_in(acme.editor).get(where, headers=PARTIAL).content.decode()
    assert part.strip().startswith('<section class="card panel" id="call-panel"')
    assert "<html" not in part


@pytest.mark.parametrize(
    "where",
    [
        f"/calls/{DAY}/{uuid.UUID(int=7)}",
        "/calls/2026-02-30/{}",
        "/calls/yesterday/{}",
        f"/calls/{DAY - timedelta(days=1)}/{{}}",
        f"/calls/{DAY}/nonsense",
        f"/calls/{DAY}/{{}}/middle",
    ],
)
def test_invalid_url_is_not_found(acme: Cast, where: str) -> None:
    known = send(acme).rpartition("/")[2]
    client = signed_in(acme.editor)
    assert client.get(where.format(known)).status_code == 404
    part = client.get(where.format(known), headers=PARTIAL)
    assert (part.status_code, b"<html" in part.content) == (404, False)


def test_call_is_not_found_for_another_tenant(acme: Cast, globex: Cast) -> None:
    where = send(acme)
    client = signed_in(globex.admin)
    for path in (where, f"{where}/start", f"{where}/end"):
        assert client.get(path).status_code == 404


def test_anonymous_user_is_redirected_to_sign_in(acme: Cast) -> None:
    where = send(acme)
    assert Client().get(where).headers["Location"] == f"/login?next={where}"
    assert "HX-Redirect" in Client().get(where, headers=PARTIAL).headers


def test_panel_uses_a_fixed_number_of_statements(acme: Cast) -> None:
    where = send(acme, guard=VIOLATED_GUARD)
    client = signed_in(acme.editor)
    # Call, parent span, violations, identical calls, neighbours, log, holds, registered tool,
    # decisions, definitions in force, the recorded view, notes.
    with statements(FRAME + 12):
        client.get(where)
