"""The clause report: figures of a real record beside each clause, and never a verdict."""

import csv
import io
import json
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pypdf import PdfReader

from audit.reports.clauses.figures import NAMES
from audit.reports.clauses.texts import CLAUSES, LIMITS, SOURCES
from tenants.models import Action, Scope
from tenants.scope import tenant_scope
from tests.support.alerts import alert_of_stored_calls
from tests.support.api_client import program
from tests.support.factories import Cast, make_call, make_decision, send_events
from tests.support.incidents import make_incident
from tests.support.ledger_log import give_key
from tests.support.pages import signed_in, text
from tests.support.retention import set_retention
from tests.support.samples import sign_ledger, signed_sample


def busy(cast: Cast) -> None:
    """A tenant in which each figure can be counted by hand."""
    at = datetime.now(UTC) - timedelta(minutes=5)
    calls = [make_call(trace_id=f"t-{n}", started_at=at) for n in range(8)]
    failed = make_call(trace_id="theft", is_error=True, output=None, started_at=at)
    running = make_call(trace_id="open", is_open=True, started_at=at)
    orphan = make_call(trace_id="orphan", started_at=at)[1:]
    person = {"by": {"kind": "person", "id": "bob", "name": "Bob"}}
    one = {"invocation_id": failed[0]["invocation_id"], "trace_id": "theft"}
    second = timedelta(seconds=1)
    decisions = [
        make_decision("awaiting", decided_at=at - 3 * second, **one),
        make_decision("approved", decided_at=at - second, **one, **person),
        make_decision("denied", decided_at=at, **person),
    ]
    sent = [*(e for call in calls for e in call), *failed, *running, *orphan, *decisions]
    assert send_events(cast.tenant, sent)["rejected"] == []
    alert_of_stored_calls(cast)
    set_retention(cast, payload_days=200)
    signed_sample(cast, "tool:get_weather", size=2)
    make_incident(cast, "trace:theft")
    sign_ledger(cast)


def make(cast: Cast) -> UUID:
    """A clause report of the last hour and the next minutes, made on the page."""
    now = datetime.now(UTC)
    times = {"from": now - timedelta(hours=1), "to": now + timedelta(minutes=9)}
    form = {name: f"{at:%Y-%m-%dT%H:%M}" for name, at in times.items()}
    answer = signed_in(cast.auditor).post(
        "/reports/create", {"kind": "range", "clauses": "on", **form}
    )
    assert answer.status_code == 302 and answer["Location"].endswith("/clauses"), answer
    return UUID(answer["Location"].split("/")[2])


def figures_of(document: dict[str, Any]) -> dict[str, Any]:
    """The values of a document's figures by their ids."""
    return {one["id"]: one["value"] for clause in document["clauses"] for one in clause["shows"]}


@pytest.mark.slow
def test_figures_are_those_of_the_record(
    acme: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_key(monkeypatch, tmp_path)
    busy(acme)
    pk = make(acme)
    document = signed_in(acme.auditor).get(f"/reports/{pk}/clauses.json").json()
    shown = figures_of(document)
    assert (shown["started"], shown["calls"], shown["open"], shown["failed"]) == (11, 10, 1, 1)
    assert shown["recorded_whole"] == 9 / 11  # one runs, one has no start
    assert (shown["requests"], shown["approved"], shown["deciding_people"]) == (1, 1, 1)
    assert shown["waited"] == 2000.0
    assert (shown["alerts"], shown["rules"]) == (1, 1)
    kept = (shown["payload_days"], shown["index_days"], shown["floor_days"])
    assert kept == (200, None, None)
    assert (shown["samples"], shown["sampled_calls"], shown["incidents"]) == (1, 2, 1)
    assert (shown["held"], shown["holds_set"], shown["erased_calls"]) == (1, 1, 0)
    assert shown["signed"] and shown["oldest_payload"] and shown["oldest_call"]
    assert shown["checked"] is None and shown["witnessed"] == 0


@pytest.mark.slow
def test_every_clause_has_figures_limits_and_pages_that_open(acme: Cast) -> None:
    ids = [clause.id for clause in CLAUSES]
    assert len(set(ids)) == len(ids)
    assert {name for clause in CLAUSES for name in clause.shows} == NAMES
    assert all(clause.shows and clause.does_not_show for clause in CLAUSES)
    send_events(acme.tenant, make_call())
    pk = make(acme)
    admin = signed_in(acme.admin)
    document = admin.get(f"/reports/{pk}/clauses.json").json()
    pages = {one["page"] for clause in document["clauses"] for one in clause["shows"]}
    assert len(pages) > 15
    for page in pages - {""}:
        assert admin.get(page).status_code == 200, page


def test_without_the_extra_a_clause_report_has_no_pdf(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    pk = make(acme)
    client = signed_in(acme.auditor)
    monkeypatch.setitem(sys.modules, "typst", None)  # as if it were not installed
    page = client.get(f"/reports/{pk}/clauses").content.decode()
    [button] = re.findall(rf'<a[^>]*href="/reports/{pk}/clauses\.pdf"[^>]*>', page)
    assert "download" not in button
    answer = client.get(f"/reports/{pk}/clauses.pdf")
    assert answer.status_code == 501
    assert "uv sync --extra pdf" in text(answer.content.decode())
    assert client.get(f"/reports/{pk}/clauses.json").status_code == 200


@pytest.mark.slow
def test_page_and_files_say_the_same_and_give_no_verdict(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    pk = make(acme)
    client = signed_in(acme.auditor)
    page = client.get(f"/reports/{pk}/clauses").content.decode()
    pdf = client.get(f"/reports/{pk}/clauses.pdf").content
    table = client.get(f"/reports/{pk}/clauses.csv").content.decode()
    sheets = PdfReader(io.BytesIO(pdf)).pages
    words = " ".join(sheet.extract_text() for sheet in sheets)
    links = [note.get_object()["/A"]["/URI"] for s in sheets for note in s.get("/Annots", ())]
    assert any(one.startswith("http://testserver/calls/?q=since%3A") for one in links)
    plain = re.sub(r"\s+", " ", words.replace("\N{ZERO WIDTH SPACE}", ""))
    document = client.get(f"/reports/{pk}/clauses.json").json()
    *rows, last = csv.DictReader(io.StringIO(table))
    assert last["source"] == "# count"
    for clause in document["clauses"]:
        assert clause["reference"] in page and clause["reference"] in plain
        assert clause["reference"] in {row["reference"] for row in rows}
        for sentence in clause["does_not_show"]:
            assert sentence in {row["text"] for row in rows}
    assert len(rows) == sum(
        len(one["shows"]) + len(one["does_not_show"]) for one in document["clauses"]
    )
    for written in (text(page), plain, table, json.dumps(document)):
        assert not re.search(r"complian|conform", written, re.IGNORECASE)
    assert all(source in page for source in SOURCES) and all(one in page for one in LIMITS)
    with tenant_scope(acme.tenant.id):
        actions = Action.objects.filter(tenant=acme.tenant, verb__startswith="report.")
        recorded = list(actions.order_by("at").values_list("verb", "subject"))
    assert next(verb for verb, _ in recorded) == "report.create"
    assert ("report.export", "pdf") in recorded


@pytest.mark.slow
def test_who_may_and_which_reports_have_clauses(acme: Cast) -> None:
    editor = signed_in(acme.editor)
    form = {"kind": "range", "range": "1h"}
    assert editor.post("/reports/create", form | {"clauses": "on"}).status_code == 403
    plain = editor.post("/reports/create", form)["Location"]
    assert not plain.endswith("/clauses")
    auditor = signed_in(acme.auditor)
    assert auditor.get(f"{plain}/clauses").status_code == 404
    assert "Create with clauses" in auditor.get(plain).content.decode()
    assert "Create with clauses" not in editor.get(plain).content.decode()
    again = auditor.post(f"{plain}/again", {"clauses": "on"})["Location"]
    assert auditor.get(again).status_code == 200
    assert editor.get(again).status_code == 403
    reading = program(acme.tenant, Scope.READ)
    made = reading.do("reports", {"range": "1h", "clauses": True})
    read = reading.get(f"reports/{made['id']}/clauses")
    assert read["report"]["id"] == made["id"] and len(read["clauses"]) == len(CLAUSES)
    without = reading.do("reports", {"range": "1h"})["id"]
    assert reading.refused(f"reports/{without}/clauses", method="GET") == (404, "not_found")
