"""Calls that did not run: in lists, timelines, on their page and over the API."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from audit.work.sightings import note_tools
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, make_decision, send_events
from tests.support.pages import signed_in, text
from tests.support.registered_tools import register_tool

pytestmark = pytest.mark.usefixtures("clear_principals")

NOW = datetime.now(UTC)
REFUSED: dict[str, Any] = {
    "trace_id": "t",
    "tool_name": "refund",
    "by": {"kind": "policy", "id": "no-refunds", "name": "No refunds"},
    "reason": "the reason is secret",
    "violations": [{"path": "$.amount", "code": "WRONG_TYPE", "expected": "number"}] * 2,
    "args": {"amount": "the arguments are secret"},
}


def approval(by: str, requested_by: str = "ada") -> list[dict[str, Any]]:
    """An approval after three minutes, of a call that then ran."""
    pk = str(uuid.uuid4())
    shared: dict[str, Any] = {"invocation_id": pk, "trace_id": "t", "tool_name": "refund"}
    begun, done = NOW - timedelta(minutes=9), NOW - timedelta(minutes=6)
    return [
        make_decision("awaiting", decided_at=begun, requested_by=requested_by, **shared),
        make_decision("approved", decided_at=done, by={"kind": "person", "id": by}, **shared),
        *make_call(started_at=done + timedelta(seconds=1), **shared),
    ]


def address(event: dict[str, Any]) -> str:
    day = datetime.fromisoformat(event["decided_at"]).astimezone(UTC).date()
    return f"/calls/{day}/{event['invocation_id']}"


def page(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return text(answer.content.decode())


@pytest.mark.slow
def test_list_names_what_was_decided(acme: Cast) -> None:
    send_events(acme.tenant, [make_decision(**REFUSED), *make_call(tool_name="echo")])
    client = signed_in(acme.editor)
    shown = page(client, "/calls/?q=state:refused")
    reason = "denied by No refunds · the reason is secret"
    assert f"{reason} · $.amount WRONG_TYPE +1" in shown
    assert "echo" not in shown
    assert "refund" not in page(client, "/calls/")
    hint = "Calls that did not run are found with state:refused"
    assert hint in page(client, "/calls/?q=tool:refund")
    for query in ("tool:echo", "state:failed", "state:awaiting"):
        assert hint not in page(client, f"/calls/?q={query}")
    hidden = page(signed_in(acme.viewer), "/calls/?q=state:refused")
    assert "denied by No refunds · $.amount WRONG_TYPE +1" in hidden
    assert "secret" not in hidden


@pytest.mark.slow
def test_trace_of_decisions_alone_has_a_timeline(acme: Cast) -> None:
    event = make_decision(**REFUSED)
    send_events(acme.tenant, [event])
    client = signed_in(acme.editor)
    assert "1 decision" in page(client, "/traces/")
    shown = page(client, "/traces/t")
    assert "1 refused" in shown
    assert "denied by No refunds" in shown
    assert "all ok" not in shown
    copied = client.get("/traces/t/text").content.decode()
    assert "0 calls, 1 refused" in copied
    assert "refund" in copied and "denied by No refunds" in copied
    assert "secret" not in page(signed_in(acme.viewer), "/traces/t")


def test_timeline_shows_calls_that_ran_and_calls_that_did_not(acme: Cast) -> None:
    waiting = make_decision("awaiting", trace_id="t", decided_at=NOW - timedelta(minutes=1))
    send_events(acme.tenant, [*approval("bob"), make_decision(**REFUSED), waiting])
    shown = page(signed_in(acme.editor), "/traces/t")
    assert "1 refused" in shown and "1 awaiting" in shown
    assert "1 across" in shown, "calls that did not run are not counted as calls"


@pytest.mark.slow
def test_call_page_shows_arguments_only_to_those_who_may_see_them(acme: Cast) -> None:
    event = make_decision(**REFUSED)
    send_events(acme.tenant, [event])
    shown = page(signed_in(acme.editor), address(event))
    for expected in ("denied", "No refunds", "policy", "$.amount", "expected number"):
        assert expected in shown
    assert "the arguments are secret" in shown and "the reason is secret" in shown
    assert "Decided" in shown and "Decision #" in shown
    assert "Started" not in shown and "Start #" not in shown, "it did not run"
    for member in (acme.viewer, acme.auditor):
        assert "secret" not in page(signed_in(member), address(event))
    auditor = signed_in(acme.auditor)
    answer = auditor.post(f"{address(event)}/reveal", {"reason": "a complaint"})
    assert answer.status_code == 302
    assert "the arguments are secret" in page(auditor, address(event))
    raw = auditor.get(f"{address(event)}/start")
    assert raw.status_code == 200 and b"the arguments are secret" in raw.content


def test_call_page_shows_who_approved_and_how_long_it_waited(acme: Cast) -> None:
    for by, is_flagged in (("bob", False), ("ada", True)):
        events = approval(by)
        send_events(acme.tenant, events)
        shown = page(signed_in(acme.editor), address(events[1]))
        assert "awaiting approval" in shown and "approved" in shown
        assert "after 3.0 min" in shown or "after 3 min" in shown
        assert ("self-approved" in shown) is is_flagged


def test_address_of_a_decision_leads_to_the_call_that_ran(acme: Cast) -> None:
    pk = str(uuid.uuid4())
    request = make_decision("awaiting", invocation_id=pk, decided_at=NOW - timedelta(days=3))
    send_events(acme.tenant, [request])
    client = signed_in(acme.editor)
    assert client.get(address(request)).status_code == 200
    send_events(acme.tenant, make_call(invocation_id=pk))
    answer = client.get(address(request))
    assert answer.status_code == 302
    assert client.get(answer.headers["Location"]).status_code == 200


@pytest.mark.slow
def test_api_has_decisions_and_states(acme: Cast) -> None:
    event = make_decision(**REFUSED)
    events = approval("ada")
    send_events(acme.tenant, [event, *events])
    for scopes, is_withheld in (([Scope.READ], True), ([Scope.READ, Scope.PAYLOADS], False)):
        key = create_key(acme.tenant, "reader", scopes)[1]
        headers = {"authorization": f"Bearer {key}"}

        def get(path: str, headers: dict[str, str] = headers) -> Any:
            answer = Client().get(f"/api/v1/{path}", headers=headers)
            assert answer.status_code == 200, answer.content
            return answer.json()

        (call,) = get("calls?q=state:refused")["calls"]
        assert (call["state"], call["invocation_id"]) == ("refused", event["invocation_id"])
        one = get(f"calls/{event['invocation_id']}")
        (decision,) = one["decisions"]
        assert (decision["decision"], decision["by_name"]) == ("denied", "No refunds")
        assert decision["paths"] == ["$.amount"] * 2
        assert (decision["reason"] is None) is is_withheld
        assert (one["start"]["event"] is None) is is_withheld
        assert one["end"] is None
        ran = get(f"calls/{events[0]['invocation_id']}")
        assert ran["state"] == "ok"
        assert [step["decision"] for step in ran["decisions"]] == ["awaiting", "approved"]
        assert ran["decisions"][1]["waited_ms"] == 180_000
        assert ran["decisions"][1]["is_self_approved"]
        trace = get("traces/t")
        assert trace["calls_started"] == 1
        assert sorted(each["state"] for each in trace["calls"]) == ["ok", "refused"]


def test_export_has_calls_that_did_not_run(acme: Cast) -> None:
    send_events(acme.tenant, [make_decision(**REFUSED)])
    answer = signed_in(acme.editor).get("/calls/export.csv?q=state:refused")
    content = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]  # it streams
    assert content.count("refused") == 1
    assert "refund" in content


@pytest.mark.slow
def test_hostile_text_in_a_decision_is_text(acme: Cast) -> None:
    hostile = "<script>alert(1)</script>\u202e"
    event = make_decision(
        trace_id="t",
        tool_name=hostile,
        by={"kind": "person", "id": hostile, "name": hostile},
        requested_by=hostile,
        reason=hostile,
        definition_digest=hostile,
        violations=[{"path": f"$.{hostile}", "code": "WRONG_TYPE", "expected": hostile}],
    )
    send_events(acme.tenant, [event])
    client = signed_in(acme.editor)
    for path in ("/calls/?q=state:refused", "/traces/t", address(event)):
        content = client.get(path).content.decode()
        assert "<script>alert" not in content
        assert "\u202e" not in content


@pytest.mark.slow
@pytest.mark.parametrize("ran", [False, True])
def test_decision_with_required_members_alone_is_shown(acme: Cast, ran: bool) -> None:
    """No reason, no decider, no digest: each of them is optional."""
    event = make_decision("approved", trace_id="t")
    started = make_call(invocation_id=event["invocation_id"], trace_id="t") if ran else []
    send_events(acme.tenant, [event, *started])
    day = event["decided_at"][:10]
    for member in (acme.editor, acme.viewer):
        for path in (f"/calls/{day}/{event['invocation_id']}", "/traces/t"):
            answer = signed_in(member).get(path)
            assert answer.status_code == 200, path
            assert "approved" in text(answer.content.decode())


@pytest.mark.parametrize("state", ["refused", "awaiting", "approved"])
def test_api_answers_about_calls_that_did_not_run(acme: Cast, state: str) -> None:
    event = make_decision("denied" if state == "refused" else state, trace_id="t")
    send_events(acme.tenant, [event])
    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    headers = {"authorization": f"Bearer {key}"}
    for path in (f"calls?q=state:{state}", "traces/t"):
        answer = Client().get(f"/api/v1/{path}", headers=headers)
        assert answer.status_code == 200, (path, answer.content)
        assert [call["state"] for call in answer.json()["calls"]] == [state]


def test_tool_pages_say_how_many_calls_were_refused_of_those_asked_for(acme: Cast) -> None:
    tool = register_tool(acme)
    at = NOW - timedelta(hours=2)
    send_events(
        acme.tenant,
        [
            *(event for _ in range(3) for event in make_call(started_at=at)),
            make_decision("denied", decided_at=at),
            make_decision("awaiting", decided_at=at),
        ],
    )
    client = signed_in(acme.viewer)
    (row,) = client.get("/tools/").context["tools"]
    assert (row.called.calls, row.unrun.refused, row.unrun.asked_for) == (3, 1, 5)
    assert "1 refused" in page(client, "/tools/")
    shown = page(client, f"/tools/{tool.pk}")
    assert "5 asked for · 3 started · 1 refused (20.0 %) · 1 awaiting approval" in shown


def test_report_counts_calls_that_did_not_run(acme: Cast) -> None:
    send_events(acme.tenant, [*make_call(), make_decision("denied"), make_decision("approved")])
    client = signed_in(acme.editor)
    answer = client.post("/reports/create", {"kind": "range", "range": "1h"}, follow=True)
    shown = text(answer.content.decode())
    assert "Calls that did not run" in shown
    assert "Calls asked for 3" in shown and "Refusal rate 33.3" in shown


def test_traces_with_decisions_can_be_listed(acme: Cast) -> None:
    send_events(
        acme.tenant,
        [
            make_decision(trace_id="refused-alone"),
            *approval("bob"),
            *make_call(trace_id="without"),
        ],
    )
    shown = page(signed_in(acme.viewer), "/traces/?state=decided")
    assert "refused-alone" in shown and "without" not in shown
    key = create_key(acme.tenant, "reader", [Scope.READ])[1]
    headers = {"authorization": f"Bearer {key}"}
    answer = Client().get("/api/v1/traces?state=decided", headers=headers)
    assert {one["trace_id"] for one in answer.json()["traces"]} == {"refused-alone", "t"}


def test_approved_is_a_quick_filter(acme: Cast) -> None:
    send_events(acme.tenant, [make_decision("approved")])
    page = signed_in(acme.viewer).get("/calls/").content.decode()
    states = page.split('aria-label="State"')[1].split("</div>")[0]
    assert "?q=state%3Aapproved" in states
    assert states.index("Awaiting") < states.index("Approved") < states.index("Waiting")


def test_tools_that_were_only_refused_are_observed(acme: Cast) -> None:
    send_events(acme.tenant, [make_decision(tool_name="never-ran"), *make_call(tool_name="ran")])
    with tenant_scope(acme.tenant.id):
        note_tools(datetime.now(UTC))
    page = text(signed_in(acme.viewer).get("/tools/?state=observed").content.decode())
    assert "never-ran" in page and "ran" in page
