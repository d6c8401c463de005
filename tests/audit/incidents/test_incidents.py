"""An incident from one form to a bundle that verifies: held, told in order, and proved."""

import base64
import json
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.urls import reverse

from audit.incidents import making
from audit.incidents.timeline import in_order, words
from audit.models import Incident, LegalHold
from audit.retention.holds import release_hold
from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.alerts import alert_of_stored_calls
from tests.support.api_client import program
from tests.support.erasures import erase
from tests.support.factories import Cast, make_call, make_decision, send_events
from tests.support.incidents import (
    begin_incident,
    incident_bundle,
    make_incident,
    read_incident,
)
from tests.support.pages import signed_in
from tests.support.registered_tools import register_tool
from tests.support.retention import set_retention
from tests.support.samples import result_of, sign_ledger, verified

HOSTILE = "<script>alert(1)</script>\u202egnp"
type Members = dict[str, bytes]


def holds(cast: Cast) -> list[LegalHold]:
    """The tenant's holds, the oldest first."""
    with tenant_scope(cast.tenant.id):
        return list(LegalHold.objects.for_tenant(cast.tenant.id).order_by("id"))


def refused(cast: Cast, **data: str) -> str:
    """The page that answers a form which is not taken."""
    data = {"title": "Theft", "reason": "Case 7", "q": "trace:theft"} | data
    answer = signed_in(cast.auditor).post(reverse("incident_list"), data)
    assert answer.status_code == 422
    return answer.content.decode()


def rewritten(path: Path, edit: Callable[[Members], None]) -> Path:
    """A copy of a bundle with other members."""
    with zipfile.ZipFile(path) as bundle:
        members = {name: bundle.read(name) for name in bundle.namelist()}
    edit(members)
    copy = path.with_name(f"edited-{path.name}")
    with zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in members.items():
            bundle.writestr(name, data)
    return copy


@pytest.fixture
def theft(acme: Cast) -> Cast:
    """A trace with a call that was approved, one that failed, and much around it."""
    register_tool(acme)
    at = datetime.now(UTC) - timedelta(seconds=30)
    (start, end), second = make_call(trace_id="theft", started_at=at), timedelta(seconds=1)
    of_first = {"invocation_id": start["invocation_id"], "trace_id": "theft"}
    person = {"by": {"kind": "person", "id": "bob", "name": "Bob"}}
    events = [
        make_decision("awaiting", decided_at=at - 2 * second, **of_first),
        make_decision("approved", decided_at=at - second, **of_first, **person),
        *(start, end),
        *make_call(
            trace_id="theft", tool_name=HOSTILE, started_at=at + second, is_error=True, output=None
        ),
        *make_call(trace_id="other", started_at=at),
    ]
    send_events(acme.tenant, events)
    alert_of_stored_calls(acme)
    note = {"about": "trace", "trace_id": "theft", "text": "Bob was away.", "label": "odd"}
    program(acme.tenant).do("notes", note)
    return acme


def test_one_form_holds_tells_and_proves(theft: Cast, tmp_path: Path) -> None:
    pk = begin_incident(theft, "trace:theft")
    (hold,) = holds(theft)  # before the worker has run
    assert (hold.trace_id, hold.name, hold.reason) == ("theft", "Theft", "Case 7")
    while making.run_slice(theft.tenant.id, pk):
        pass
    auditor = signed_in(theft.auditor)
    address = reverse("incident_evidence", args=[pk])
    assert auditor.get(address).status_code == 302, "its entry is not signed yet"
    sign_ledger(theft)
    path = incident_bundle(theft, pk, tmp_path)
    verdict = verified(path)
    assert verdict.is_genuine and not verdict.is_undecided
    assert result_of(verdict, "timeline") == "verified: the timeline is the one that was made"
    with zipfile.ZipFile(path) as bundle:
        timeline = json.loads(bundle.read("timeline.json"))
        page = bundle.read("timeline.html").decode()
        statements = bundle.read("statements.ndjson").decode()
    kinds = [item["kind"] for item in timeline["items"]]
    assert kinds[:6] == ["decided", "decided", "started", "ended", "started", "ended"]
    assert {*kinds[6:]} >= {"fired", "noted", "held"}
    assert timeline["items"] == in_order(timeline["items"])
    (trace,) = timeline["traces"]
    assert (trace["calls"], trace["failed"], trace["decisions"]) == (2, 1, 2)
    assert "Bob was away." in page and "<script>" not in page and "\\u202e" in page
    assert len(statements.splitlines()) > 2  # of the holds and the incident, among others
    with tenant_scope(theft.tenant.id):
        verbs = Action.objects.filter(tenant=theft.tenant).values_list("verb", flat=True)
        assert {"hold.set", "incident.begin", "incident.timeline", "evidence.export"} <= {*verbs}
    shown = auditor.get(reverse("incident_detail", args=[pk])).content.decode()
    assert "Bob was away." in shown and "<script>alert" not in shown


def _edit_timeline(members: Members) -> None:
    document = json.loads(members["timeline.json"])
    document["items"] = document["items"][1:]
    members["timeline.json"] = json.dumps(document).encode()


def _edit_page(members: Members) -> None:
    members["timeline.html"] = members["timeline.html"].replace(b"Case 7", b"Case 8")


def _without_entry(members: Members) -> None:
    lines = [json.loads(line) for line in members["statements.ndjson"].splitlines()]
    kept = [line for line in lines if b"incident.timeline" not in _raw(line)]
    assert len(kept) < len(lines)
    members["statements.ndjson"] = b"".join(json.dumps(line).encode() + b"\n" for line in kept)


def _raw(line: dict[str, Any]) -> bytes:
    return base64.b64decode(line["raw"])


def test_altered_timeline_is_found(theft: Cast, tmp_path: Path) -> None:
    pk = make_incident(theft, "trace:theft")
    sign_ledger(theft)
    path = incident_bundle(theft, pk, tmp_path)
    for edit, problem in (
        (_edit_timeline, "timeline.json is not what was made"),
        (_edit_page, "timeline.html is not what was made"),
        (_without_entry, "no signed entry has a hash of this timeline"),
    ):
        verdict = verified(rewritten(path, edit))
        assert not verdict.is_genuine
        assert result_of(verdict, "timeline") == f"failed: {problem}"


@pytest.mark.slow
def test_query_holds_each_trace_and_refuses_what_it_cannot_hold(acme: Cast) -> None:
    many = [e for n in range(making.TRACES_MAX + 1) for e in make_call(trace_id=f"t-{n}")]
    some = [e for n in range(3) for e in make_call(trace_id=f"s-{n}", tool_name="refund")]
    send_events(acme.tenant, [*many, *some])
    assert "more than 50 traces" in refused(acme, q="tool:get_weather")
    assert "No call matches." in refused(acme, q="trace:nothing")
    assert "an empty one" in refused(acme, q="")
    assert "query-mistakes" in refused(acme, q="args.city:London")
    assert "This field is required." in refused(acme, reason=" ")
    assert holds(acme) == []
    pk = make_incident(acme, "tool:refund")
    assert {hold.trace_id for hold in holds(acme)} == {"s-0", "s-1", "s-2"}
    incident = read_incident(acme, pk)
    assert (incident.state, incident.call_count) == ("done", 3)


@pytest.mark.slow
def test_erasure_takes_the_timeline_and_retention_the_incident(acme: Cast) -> None:
    send_events(acme.tenant, make_call(trace_id="theft", case_id="mine"))
    pk = make_incident(acme, "trace:theft")
    erase(acme)  # it is held
    assert read_incident(acme, pk).timeline
    now = datetime.now(UTC)
    (hold,) = holds(acme)
    later = now + timedelta(days=8)
    set_retention(acme, payload_days=7)
    with tenant_scope(acme.tenant.id):
        making.forget_old(acme.tenant.id, later)
    assert read_incident(acme, pk)  # its hold is in force
    with tenant_scope(acme.tenant.id):
        release_hold(acme.tenant, acme.auditor, hold.id, "over", now)
    erase(acme)
    incident = read_incident(acme, pk)
    assert (incident.timeline, incident.page, incident.is_erased) == ("", "", True)
    answer = signed_in(acme.auditor).get(reverse("incident_evidence", args=[pk]), follow=True)
    assert "The timeline was erased" in answer.content.decode()
    with tenant_scope(acme.tenant.id):
        making.forget_old(acme.tenant.id, later)
        assert not Incident.objects.for_tenant(acme.tenant.id).filter(id=pk).exists()


def test_api_begins_reads_and_downloads(theft: Cast, globex: Cast, tmp_path: Path) -> None:
    holding = program(theft.tenant, Scope.HOLDS)
    body = {"title": "Theft", "reason": "Case 7", "q": "trace:theft"}
    begun = holding.do("incidents", body)
    pk = UUID(begun["id"])
    assert (begun["traces"], begun["state"]) == (1, "waiting")
    assert holding.refused("incidents", body | {"q": "trace:nothing"}) == (422, "query")
    assert holding.refused("incidents", body | {"reason": " "}) == (400, "malformed")
    exporting = program(theft.tenant, Scope.PAYLOADS)
    evidence = f"evidence?incident={pk}"
    assert exporting.refused(evidence, method="GET") == (409, "unsigned")
    while making.run_slice(theft.tenant.id, pk):
        pass
    sign_ledger(theft)
    read = holding.get(f"incidents/{pk}")
    assert (read["is_signed"], read["timeline"], read["withheld"]) == (True, None, True)
    both = program(theft.tenant, Scope.HOLDS, Scope.PAYLOADS).get(f"incidents/{pk}")
    assert both["timeline"]["title"] == "Theft"
    assert holding.get("incidents")["items"][0]["id"] == str(pk)
    answer = exporting.send("GET", evidence)
    path = tmp_path / "evidence.zip"
    path.write_bytes(b"".join(answer.streaming_content))
    assert verified(path).is_genuine
    assert program(globex.tenant).refused(f"incidents/{pk}", method="GET") == (404, "not_found")
    assert program(globex.tenant).refused(evidence, method="GET") == (404, "not_found")


def test_items_of_one_instant_follow_from_each_other() -> None:
    at = "2026-11-20T10:00:00Z"
    named = {"tool_name": "t", "tool_version": "", "trace_id": "a"}
    ended = {"at": at, "kind": "ended", **named, "state": "failed", "duration_ms": 1.5}
    ended |= {"error_type": "UPSTREAM", "error_code": "503", "violations": 2}
    later = {"at": "2026-11-20T10:00:00.000001Z", "kind": "held", "name": "h", "by": "ada"}
    started = {"at": at, "kind": "started", **named, "agent": "planner"}
    assert in_order([later, ended, started]) == [started, ended, later]
    assert words(ended).detail == "after 1.5\xa0ms, UPSTREAM 503, 2 violations"
    assert words(started)[1:3] == ("t", "by planner")
