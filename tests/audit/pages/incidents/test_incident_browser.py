"""An incident in a real browser: from the button of a trace to a bundle that verifies."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect
from tooltrail.cli.main import main

from audit.incidents import making
from tests.support.accessibility import accessibility_findings
from tests.support.alerts import alert_of_stored_calls
from tests.support.browser_errors import complaints
from tests.support.browser_pages import shoot
from tests.support.factories import Cast, make_call, make_decision, send_events
from tests.support.ledger_log import give_key
from tests.support.samples import sign_ledger
from tests.support.sign_in import sign_in

SHOTS = os.environ.get("INCIDENT_SHOTS")
"""A folder for screenshots, to look at."""


@pytest.fixture(autouse=True)
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker for this test, with a key of its own."""
    give_key(monkeypatch, tmp_path)


def judge(page: Page) -> None:
    """Nobody is kept from reading the page: by its colours, its structure, or a narrow screen."""
    assert accessibility_findings(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.set_viewport_size({"width": 1440, "height": 900})


def send_theft(cast: Cast) -> None:
    """A trace in which a call was approved and one failed."""
    at, second = datetime.now(UTC) - timedelta(minutes=3), timedelta(seconds=1)
    violation = {"path": "$.rows[0].iban", "code": "WRONG_TYPE", "expected": "a", "received": "b"}
    guard = {"strategy": "warn", "outcome": "passed", "violations": [violation]}
    person = {"by": {"kind": "person", "id": "bob", "name": "Bob Meier"}}
    refund = make_call(trace_id="checkout-7", tool_name="refund", started_at=at, agent="planner")
    one = {"invocation_id": refund[0]["invocation_id"], "trace_id": "checkout-7"}
    one |= {"tool_name": "refund"}
    more: dict[str, Any] = {"trace_id": "checkout-7", "agent": "planner"}
    events = [
        make_decision("awaiting", decided_at=at - 9 * second, **one),
        make_decision("approved", decided_at=at - 2 * second, **one, **person),
        *refund,
        *make_call(tool_name="lookup_account", started_at=at + second, guard=guard, **more),
        *make_call(
            tool_name="send_money",
            started_at=at + 2 * second,
            output={
                "status": "error",
                "error": {"type": "UPSTREAM", "code": "503", "message": "no"},
            },
            **more,
        ),
    ]
    assert send_events(cast.tenant, events)["rejected"] == []
    alert_of_stored_calls(cast)


@pytest.mark.slow
def test_incident_from_a_trace_to_a_verified_bundle(
    acme: Cast, page: Page, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noted = complaints(page)
    send_theft(acme)
    sign_in(page, acme.auditor)
    page.goto("/traces/checkout-7")
    shoot(page, "trace", SHOTS)
    page.get_by_role("link", name="Incident", exact=True).click()
    expect(page.get_by_label("Calls", exact=True)).to_have_value("trace:checkout-7")
    page.get_by_label("Title").fill("Refund of checkout 7")
    page.get_by_label("Reason").fill("The customer says that nobody ordered this refund.")
    judge(page)
    shoot(page, "form", SHOTS)
    page.get_by_role("button", name="Hold and make evidence").click()
    expect(page.get_by_text("waiting", exact=True)).to_be_visible()
    shoot(page, "waiting", SHOTS)
    pk = UUID(page.url.rsplit("/", 1)[1])
    while making.run_slice(acme.tenant.id, pk):
        pass
    expect(page.get_by_text("Its entry is signed within a minute")).to_be_visible()  # by itself
    sign_ledger(acme)
    page.reload()
    expect(page.get_by_text("Call approved", exact=True)).to_be_visible()
    judge(page)
    shoot(page, "made", SHOTS)
    with page.expect_download() as started:
        page.get_by_role("link", name="Evidence").last.click()
    path = tmp_path / "incident.zip"
    started.value.save_as(path)
    assert main(["verify", str(path)]) == 0
    assert "timeline: the timeline is the one that was made" in capsys.readouterr().out
    page.goto("/incidents/")
    expect(page.get_by_role("link", name="Refund of checkout 7")).to_be_visible()
    shoot(page, "list", SHOTS)
    page.goto("/reports/")
    page.get_by_label("Period of the clause report").select_option("day")
    page.get_by_label("Any day of the period").fill(f"{datetime.now(UTC):%Y-%m-%d}")
    page.get_by_role("button", name="Create the clause report").click()
    expect(page.get_by_role("heading", name="Article 12(1)")).to_be_visible()
    expect(page.get_by_text("Whether the figures meet a clause")).to_be_visible()
    judge(page)
    shoot(page, "clauses", SHOTS)
    if SHOTS:
        answer = page.request.get(page.url.replace("/clauses", "/export.json"))
        Path(SHOTS, "report.json").write_text(answer.text())
    page.goto("/reports/")
    shoot(page, "reports", SHOTS)
    assert noted == []
    if SHOTS:
        import zipfile

        with zipfile.ZipFile(path) as bundle:
            file = Path(bundle.extract("timeline.html", SHOTS))
        page.goto(file.as_uri())
        shoot(page, "file", SHOTS)
