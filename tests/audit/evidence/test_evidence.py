"""Evidence bundles from any log verify, and only the permitted roles get them."""

import base64
import io
import json
import random
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import uuid_utils.compat
from django.test import Client
from django.utils import timezone
from tooltrail.evidence import Archive, Verdict, verify
from tooltrail.ledger import Kind
from tooltrail.tools.digest import tool_digest

from audit.events.batch_ids import BatchId
from audit.events.body import Line
from audit.evidence.bundling import Wanted, bundle
from audit.evidence.ledger_range import NotSignedError, ledger_range_of
from audit.ledger.actions import enter_actions
from audit.ledger.baseline import enter_baseline
from audit.ledger.entries import append_entry
from audit.models import LedgerCheckpoint
from audit.queries.call_query import parse
from audit.queries.definitions import ToolFilter, served_tools
from audit.queries.time_range import TimeRange
from audit.reports.stored import create_report, of_one_moment
from audit.retention.erasure import confirm_erasure, start_erasure
from audit.retention.erasure import run_slice as run_erasure
from audit.retention.retention import run_slice
from audit.tasks.requested import erase_calls
from tenants.keys import create_key
from tenants.models import Action, Scope, Tenant, TenantSetting
from tenants.scope import tenant_scope
from tests.support.batches import record_batch
from tests.support.erasures import confirm_erasure as confirm_previewed
from tests.support.erasures import preview_erasure
from tests.support.factories import (
    Cast,
    make_call,
    make_definition,
    make_definitions,
    make_ingest_key,
    send_events,
)
from tests.support.ledger_log import as_owner, give_key, keep
from tests.support.old_verifier import OLD_BUNDLES, old_code, old_verify
from tests.support.pages import signed_in

NOW = timezone.now()
HOUR = timedelta(hours=1)
ALL = TimeRange(NOW - timedelta(days=300), NOW + timedelta(days=1), UTC)
CONTRACT = {
    "name": "search",
    "description": "Looks things up.",
    "input_schema": {"type": "object", "properties": {"z": {}, "a": {"const": 1.5}}},
    "output_schema": {"type": "array"},
}
_LATER = iter(range(1, 10_000))


@pytest.fixture(autouse=True)
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A worker for this test, with a key of its own."""
    give_key(monkeypatch, tmp_path)
    yield


def sign(tenant: Tenant) -> LedgerCheckpoint:
    """Let the worker sign all entries, and return the newest checkpoint."""
    keep(tenant, NOW + timedelta(minutes=next(_LATER)))
    with tenant_scope(tenant.id):
        return LedgerCheckpoint.objects.for_tenant(tenant.id).latest("size")


def make(tenant: Tenant, of: TimeRange = ALL, *previous: int) -> bytes:
    """The bytes of a bundle."""
    with tenant_scope(tenant.id):
        ledger_range = ledger_range_of(of)
    return b"".join(bundle(Wanted(tenant, ledger_range, of, "ada", NOW, previous=previous)))


def judge(data: bytes, folder: Path, *previous: bytes) -> Verdict:
    """The verifier's verdict on a bundle."""
    path = folder / "evidence.zip"
    path.write_bytes(data)
    with Archive(path) as archive:
        return verify(archive, previous=previous)


def verdict_text(verdict: Verdict) -> str:
    """The verdict as text, for assertion messages."""
    return "\n".join(verdict.lines())


def member(data: bytes, name: str) -> bytes:
    """The content of a file in a bundle."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(name)


def arrive(tenant: Tenant, at: datetime, calls: int = 1, **members: Any) -> list[bytes]:
    """Store calls as one request that arrived at this instant; return the raw events."""
    events = [event for _ in range(calls) for event in make_call(started_at=at, **members)]
    raws = [json.dumps(event).encode() for event in events]
    lines = [Line(number, raw) for number, raw in enumerate(raws, 1)]
    record_batch(tenant.id, b"\n".join(raws), lines, BatchId(uuid_utils.compat.uuid7()), at)
    return raws


def adk_event(kind: str, n: int) -> dict[str, Any]:
    """An event without an id. Events with the same `n` are identical."""
    event: dict[str, Any] = {
        "type": f"toolExecution{kind}",
        "turnId": f"turn-{n}",
        "callId": "same",
        "toolName": "echo",
        "startedAt": NOW.isoformat(),
    }
    ending = {"endedAt": NOW.isoformat(), "durationMs": 1, "isError": False}
    return event | ({"args": {}} if kind == "Start" else ending)


@pytest.mark.slow
def test_bundle_contains_everything_received_and_is_genuine(acme: Cast, tmp_path: Path) -> None:
    """Events without ids between rejected lines, duplicates, gaps, and the server's events."""
    rng = random.Random(3)
    for _ in range(8):
        lines = [json.dumps(adk_event(rng.choice(["Start", "End"]), n % 3)) for n in range(9)]
        lines += [json.dumps(event) for event in make_call()] * 2
        nameless = make_call()
        lines += [json.dumps({**event, "event_id": None}) for event in nameless]
        lines += ["not an event", '{"type":"gap"}', "{}", '{"type":"toolExecutionStart"}'] * 2
        lines += [json.dumps(adk_event("Start", 1) | {"startedAt": "2999-01-01T00:00:00Z"})] * 2
        gap = {"type": "gap", "producer_id": "p", "from_seq": 1, "to_seq": 3, "reason": "full"}
        lines.append(json.dumps(gap | {"count": 3}))
        rng.shuffle(lines)
        answer = Client().post(
            "/api/v1/events",
            data="\n\n".join(lines).encode(),
            content_type="application/x-ndjson",
            headers={
                "Authorization": f"Bearer {make_ingest_key(acme.tenant)}",
                "Idempotency-Key": str(uuid_utils.compat.uuid7()),
            },
        )
        assert answer.status_code == 200
    with tenant_scope(acme.tenant.id):
        append_entry(acme.tenant.id, Kind.ACTION, {"user": "ada"}, NOW)
    newest = sign(acme.tenant)
    verdict = judge(make(acme.tenant), tmp_path)
    assert verdict.is_genuine, verdict_text(verdict)
    assert verdict.events == newest.size > 100


def test_bundle_contains_the_events_unchanged(acme: Cast, tmp_path: Path) -> None:
    raws = arrive(acme.tenant, NOW - HOUR, calls=3)
    sign(acme.tenant)
    data = make(acme.tenant)
    assert member(data, "events/000000.ndjson").splitlines() == raws
    assert b"tooltrail verify" in member(data, "README.txt")
    assert judge(data, tmp_path).is_genuine


@pytest.mark.parametrize("minutes", [(-70, -40, -50, -10), (-70, -30, -40, -10)])
def test_range_is_verified_when_requests_were_stored_out_of_order(
    acme: Cast, tmp_path: Path, minutes: tuple[int, ...]
) -> None:
    """Simultaneous requests may be stored in either order; that is no alteration."""
    for minute in minutes:
        arrive(acme.tenant, NOW + timedelta(minutes=minute))
    sign(acme.tenant)
    of = TimeRange(NOW - timedelta(minutes=45), NOW - timedelta(minutes=35), UTC)
    verdict = judge(make(acme.tenant, of), tmp_path)
    assert verdict.is_genuine, verdict_text(verdict)
    assert {check.name: check.result for check in verdict.checks}["range"] == "verified"


def test_range_contains_its_arrivals_and_the_events_of_its_calls(
    acme: Cast, tmp_path: Path
) -> None:
    for hour in range(10):
        arrive(acme.tenant, NOW - timedelta(hours=10 - hour))
        sign(acme.tenant)
    of = TimeRange(NOW - timedelta(hours=7, minutes=1), NOW - timedelta(hours=5, minutes=1), UTC)
    verdict = judge(make(acme.tenant, of), tmp_path)
    assert verdict.is_genuine, verdict_text(verdict)
    # Of 20 entries: those of two hours, and one on either side.
    assert (verdict.first_index, verdict.end_index) == (5, 11)
    assert {check.name: check.result for check in verdict.checks}["range"] == "verified"
    # A call that began in the range and ended later than all others.
    began = of.start + timedelta(minutes=5)
    arrive(acme.tenant, NOW - timedelta(minutes=1))
    start, end = make_call(started_at=began)
    send_events(acme.tenant, [start, end])
    sign(acme.tenant)
    verdict = judge(make(acme.tenant, of), tmp_path)
    assert verdict.is_genuine, verdict_text(verdict)
    assert (verdict.first_index, verdict.end_index) == (5, 24)


@pytest.mark.parametrize("hours", [(20, 15), (9.5, 9.4), (0, -1)])
def test_range_without_entries_is_genuine(
    hours: tuple[float, float], acme: Cast, tmp_path: Path
) -> None:
    for hour in range(10):
        arrive(acme.tenant, NOW - timedelta(hours=10 - hour))
    sign(acme.tenant)
    start, end = (NOW - timedelta(hours=each) for each in hours)
    verdict = judge(make(acme.tenant, TimeRange(start, end, UTC)), tmp_path)
    assert verdict.is_genuine, verdict_text(verdict)
    assert verdict.events <= 2


def test_unsigned_entries_are_not_in_the_bundle(acme: Cast, tmp_path: Path) -> None:
    arrive(acme.tenant, NOW - HOUR)
    sign(acme.tenant)
    arrive(acme.tenant, NOW)
    verdict = judge(make(acme.tenant), tmp_path)
    assert verdict.is_genuine, verdict_text(verdict)
    assert verdict.events == 2


@pytest.mark.slow
def test_bundle_continues_from_a_requested_checkpoint(acme: Cast, tmp_path: Path) -> None:
    notes = []
    for hour in range(9):
        arrive(acme.tenant, NOW - timedelta(hours=10 - hour))
        notes.append(sign(acme.tenant))
    of = TimeRange(NOW - timedelta(hours=5, minutes=1), NOW - timedelta(hours=4), UTC)
    early = notes[1]
    assert judge(make(acme.tenant, of), tmp_path, early.note.encode()).is_undecided
    verdict = judge(make(acme.tenant, of, early.size, 9_999), tmp_path, early.note.encode())
    assert verdict.is_genuine, verdict_text(verdict)
    assert not verdict.is_undecided


def test_entries_erased_by_retention_are_declared(acme: Cast, tmp_path: Path) -> None:
    for age in (30, 20, 1):
        arrive(acme.tenant, NOW - timedelta(days=age))
    with tenant_scope(acme.tenant.id):
        TenantSetting.objects.create(tenant=acme.tenant, payload_days=10)
    sign(acme.tenant)
    while run_slice(acme.tenant.id, NOW):
        pass
    sign(acme.tenant)
    verdict = judge(make(acme.tenant), tmp_path)
    assert verdict.is_genuine, verdict_text(verdict)
    assert (verdict.events, verdict.erased) == (7, 4)
    (line,) = member(make(acme.tenant), "erasures.ndjson").splitlines()
    assert json.loads(line)["entry"]["index"] == 6


@pytest.mark.slow
def test_entries_erased_by_filter_are_declared_and_other_losses_fail(
    acme: Cast, tmp_path: Path
) -> None:
    for case in ("mine", "theirs", "mine"):
        arrive(acme.tenant, NOW - HOUR, case_id=case)
    with tenant_scope(acme.tenant.id):
        one = start_erasure(acme.tenant, acme.admin, parse("case:mine"), NOW + HOUR)
    for is_wanted in (False, True):
        if is_wanted:
            with tenant_scope(acme.tenant.id):
                assert confirm_erasure(acme.tenant, acme.admin, one.id, "asked to", NOW)
        while run_erasure(acme.tenant.id, one.id):
            pass
    sign(acme.tenant)
    verdict = judge(make(acme.tenant), tmp_path)
    assert verdict.is_genuine, verdict_text(verdict)
    assert verdict.erased == 4
    as_owner(
        "UPDATE batch SET payload = NULL WHERE tenant_id = %s AND first_index = 2", [acme.tenant.id]
    )
    verdict = judge(make(acme.tenant), tmp_path)
    assert not verdict.is_genuine
    assert "entries 2 to 3 is missing" in verdict_text(verdict)


def test_erasure_signed_during_bundling_is_declared(acme: Cast, tmp_path: Path) -> None:
    arrive(acme.tenant, NOW - timedelta(days=30))
    with tenant_scope(acme.tenant.id):
        TenantSetting.objects.create(tenant=acme.tenant, payload_days=10)
    sign(acme.tenant)
    with tenant_scope(acme.tenant.id):
        ledger_range = ledger_range_of(ALL)
    pieces = bundle(Wanted(acme.tenant, ledger_range, ALL, "ada", NOW))
    begun = next(pieces)
    while run_slice(acme.tenant.id, NOW):
        pass
    sign(acme.tenant)
    verdict = judge(b"".join([begun, *pieces]), tmp_path)
    assert verdict.erased == 2
    assert verdict.size == 3
    assert {check.name: check.result for check in verdict.checks}["erasures"] == "verified"


@pytest.mark.parametrize("is_signed", [True, False])
def test_unsigned_erasure_is_waited_for(
    is_signed: bool, acme: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrive(acme.tenant, NOW - timedelta(days=30))
    with tenant_scope(acme.tenant.id):
        TenantSetting.objects.create(tenant=acme.tenant, payload_days=10)
    sign(acme.tenant)
    while run_slice(acme.tenant.id, NOW):
        pass
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if is_signed and len(waits) == 3:
            sign(acme.tenant)

    monkeypatch.setattr("audit.evidence.bundling.time.sleep", wait)
    if not is_signed:
        with pytest.raises(NotSignedError, match="not signed yet"):
            make(acme.tenant)
        assert 50 < sum(waits) < 70
        return
    verdict = judge(make(acme.tenant), tmp_path)
    assert len(waits) == 3
    assert verdict.is_genuine, verdict_text(verdict)
    assert verdict.erased == 2


def register(tenant: Tenant, **changes: Any) -> None:
    """Publish a version of the tool `search`."""
    key = create_key(tenant, "publisher", [Scope.REGISTRY])[1]
    answer = Client().post(
        "/api/v1/tools",
        data=json.dumps({"tools": [CONTRACT | changes]}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )
    assert answer.status_code == 200, answer.content


def test_bundle_contains_the_tool_versions_of_the_registry(acme: Cast, tmp_path: Path) -> None:
    register(acme.tenant)
    arrive(acme.tenant, NOW - HOUR)
    sign(acme.tenant)
    assert not member(make(acme.tenant), "registry.ndjson"), "its publication is not signed yet"
    enter_actions(acme.tenant.id, NOW)
    sign(acme.tenant)
    data = make(acme.tenant)
    (line,) = member(data, "registry.ndjson").splitlines()
    assert json.loads(line)["tool_name"] == "search"
    assert b"exceed the size limit" not in member(data, "README.txt")
    verdict = judge(data, tmp_path)
    assert {check.name: check.result for check in verdict.checks}["registry"] == "verified"


@pytest.mark.slow
def test_omitted_tool_versions_are_reported(
    acme: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("oldest", "older", "newest"):
        register(acme.tenant, name=name, description="what it does, at length; " * 20)
    arrive(acme.tenant, NOW - HOUR)
    enter_actions(acme.tenant.id, NOW)
    sign(acme.tenant)
    monkeypatch.setattr("audit.evidence.bundling._VERSION_BYTES", 1500)
    data = make(acme.tenant)
    versions = [json.loads(line) for line in member(data, "registry.ndjson").splitlines()]
    assert [each["tool_name"] for each in versions] == ["older", "newest"]
    assert b"without the 1 oldest" in member(data, "README.txt")
    assert judge(data, tmp_path).is_genuine


def download(cast: Cast, query: str = "", user: Any = None) -> Any:
    """The bundle behind the page's link."""
    return signed_in(user or cast.auditor).get(f"/evidence/bundle.zip?{query}")


def test_auditor_downloads_the_bundle_and_the_download_is_logged(
    acme: Cast, tmp_path: Path
) -> None:
    arrive(acme.tenant, timezone.now() - HOUR)
    sign(acme.tenant)
    page = signed_in(acme.auditor).get("/evidence/")
    assert b"tooltrail verify" in page.content
    answer = download(acme, "range=24h")
    assert answer["Content-Type"] == "application/zip"
    assert f"evidence-{acme.tenant.slug}-" in answer["Content-Disposition"]
    verdict = judge(b"".join(answer.streaming_content), tmp_path)
    assert verdict.is_genuine, verdict_text(verdict)
    assert verdict.events == 2
    with tenant_scope(acme.tenant.id):
        action = Action.objects.get(tenant=acme.tenant, verb="evidence.export")
    assert action.user_name == acme.auditor.username
    assert (action.details["first_index"], action.details["end_index"]) == (0, 2)
    for user in (acme.viewer, acme.editor):
        assert download(acme, user=user).status_code == 403


def test_evidence_of_a_report_contains_the_report(acme: Cast, globex: Cast, tmp_path: Path) -> None:
    arrive(acme.tenant, NOW - HOUR)
    sign(acme.tenant)
    with tenant_scope(acme.tenant.id):
        of_one_moment()
        of = TimeRange(NOW - 2 * HOUR, NOW, UTC)
        report = create_report("range", of, now=NOW, made_by="ada", made_as="person")
    assert report is not None
    assert (
        f"report={report.id}".encode()
        in signed_in(acme.auditor).get(f"/reports/{report.id}").content
    )
    data = b"".join(download(acme, f"report={report.id}").streaming_content)
    assert json.loads(member(data, "report.json"))["id"] == str(report.id)
    verdict = judge(data, tmp_path)
    assert verdict.is_genuine, verdict_text(verdict)
    assert any("figures of the report" in limit for limit in verdict.limits)
    sign(globex.tenant) if arrive(globex.tenant, NOW) else None
    assert download(globex, f"report={report.id}").status_code == 404
    assert download(globex, "report=nonsense").status_code == 404


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("range=24h&previous=abc", "Enter up to 20 checkpoint sizes"),
        ("range=forever", "Unknown range"),
        ("range=24h", "This ledger is not signed yet"),
    ],
)
def test_impossible_bundle_is_explained_on_the_page(query: str, expected: str, acme: Cast) -> None:
    client = signed_in(acme.auditor)
    answer = client.get(f"/evidence/bundle.zip?{query}", follow=True)
    assert answer.redirect_chain == [("/evidence/", 302)]
    assert expected in answer.content.decode()


def api_response(
    cast: Cast, query: str = "", *, scopes: tuple[Scope, ...] = (Scope.PAYLOADS,)
) -> Any:
    """The API's response to a key with these scopes."""
    key = create_key(cast.tenant, "auditor's script", list(scopes))[1]
    return Client().get(f"/api/v1/evidence?{query}", headers={"Authorization": f"Bearer {key}"})


def test_api_key_with_payloads_scope_downloads_the_bundle(acme: Cast, tmp_path: Path) -> None:
    arrive(acme.tenant, timezone.now() - HOUR)
    assert api_response(acme).json()["code"] == "unsigned"
    sign(acme.tenant)
    verdict = judge(
        b"".join(api_response(acme, "range=24h&previous=1").streaming_content), tmp_path
    )
    assert verdict.is_genuine, verdict_text(verdict)
    with tenant_scope(acme.tenant.id):
        action = Action.objects.get(tenant=acme.tenant, verb="evidence.export")
    assert action.user_name.startswith("API key auditor's script (")
    assert api_response(acme, scopes=(Scope.READ,)).json()["code"] == "missing_scope"
    assert api_response(acme, "rang=24h").json()["code"] == "parameter"
    assert api_response(acme, "previous=x").json()["code"] == "parameter"
    assert api_response(acme, "range=x").json()["code"] == "range"
    assert api_response(acme, f"report={uuid_utils.compat.uuid7()}").json()["code"] == "not_found"


def test_changes_of_definitions_and_approvals_are_proved(acme: Cast, tmp_path: Path) -> None:
    for age, description in ((50, "Before."), (40, "After.")):
        tool = make_definition(description=description)
        sighting = make_definitions(tool, seen_at=NOW - timedelta(seconds=age))
        send_events(acme.tenant, [sighting, *make_call()])
    with tenant_scope(acme.tenant.id):
        served = served_tools(ToolFilter(), size=1).tools[0].definition
    assert served is not None
    approved = signed_in(acme.editor).post(
        f"/definitions/{served.id}/approve", {"reason": "we asked them"}
    )
    assert approved.status_code == 302
    assert enter_actions(acme.tenant.id, NOW)
    sign(acme.tenant)
    data = make(acme.tenant)
    verdict = judge(data, tmp_path)
    assert verdict.is_genuine, verdict_text(verdict)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        text = b"".join(archive.read(name) for name in archive.namelist()).decode(errors="replace")
    assert text.count(f'"kind":{Kind.DEFINITION:d}') == 2
    assert "we asked them" in text
    altered = data_with(data, b"After.", b"Bofor.")
    assert not judge(altered, tmp_path).is_genuine


def data_with(data: bytes, old: bytes, new: bytes) -> bytes:
    """The bundle with other bytes in each of its files."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as before, zipfile.ZipFile(changed, "w") as after:
        for name in before.namelist():
            after.writestr(name, before.read(name).replace(old, new))
    return changed.getvalue()


def registry_problems(tenant: Tenant, folder: Path) -> list[str]:
    """What the verifier says of the registry in a bundle that the server makes now."""
    verdict = judge(make(tenant), folder)
    return next(check.problems for check in verdict.checks if check.name == "registry")


def test_registry_altered_in_the_database_fails_verification(acme: Cast, tmp_path: Path) -> None:
    """Each as an attacker would: with the digest that fits, and a date that looks right."""
    register(acme.tenant, name="older")
    arrive(acme.tenant, NOW - HOUR)
    enter_actions(acme.tenant.id, NOW)
    assert enter_baseline(acme.tenant.id, NOW)
    register(acme.tenant, name="newer")
    enter_actions(acme.tenant.id, NOW)
    sign(acme.tenant)
    assert registry_problems(acme.tenant, tmp_path) == []
    forged: dict[str, Any] = {**CONTRACT, "description": "Forged."}
    del forged["name"]
    scope = [acme.tenant.id]
    for name in ("older", "newer"):
        digest = tool_digest(**forged, name=name)
        as_owner(
            "UPDATE tool_version v SET description = 'Forged.', digest = %s FROM tool t"
            " WHERE v.tenant_id = %s AND t.id = v.tool_id AND t.name = %s",
            [digest, *scope, name],
        )
    assert registry_problems(acme.tenant, tmp_path) == [
        f"'{name}' version 1 is not the contract that was published" for name in ("older", "newer")
    ]
    as_owner("DELETE FROM tool_version WHERE tenant_id = %s", scope)
    assert registry_problems(acme.tenant, tmp_path) == [
        f"'{name}' version 1 was published and is missing" for name in ("older", "newer")
    ]


@pytest.mark.slow
def test_bundle_proves_who_confirmed_an_erasure(acme: Cast, tmp_path: Path) -> None:
    assert enter_baseline(acme.tenant.id, NOW)
    arrive(acme.tenant, timezone.now(), case_id="mine")
    one = preview_erasure(acme)
    confirm_previewed(acme, one.id)
    erase_calls(str(acme.tenant.id), str(one.id))
    sign(acme.tenant)
    data = make(acme.tenant)
    verdict = judge(data, tmp_path)
    assert verdict.is_genuine, verdict_text(verdict)
    assert verdict.erased == 2
    statements = [json.loads(line) for line in member(data, "statements.ndjson").splitlines()]
    raws = [base64.b64decode(line["raw"]) for line in statements]
    assert any(b'"verb":"erasure.confirm"' in raw for raw in raws)


@pytest.mark.slow
def test_verifier_of_format_1_rejects_a_new_bundle(acme: Cast, tmp_path: Path) -> None:
    """Its exit code is 2, not "not genuine". That it takes old bundles shows that it works here."""
    code, path = old_code(tmp_path), tmp_path / "evidence.zip"
    arrive(acme.tenant, NOW)
    sign(acme.tenant)
    path.write_bytes(data := make(acme.tenant))
    answer = old_verify(code, path, member(data, "keys.txt").decode().split()[0])
    assert answer.returncode == 2, answer
    assert "a member that belongs to no bundle: 'statements.ndjson'" in answer.stderr
    old = old_verify(code, OLD_BUNDLES / "plain.zip", str(OLD_BUNDLES / "key.txt"))
    assert old.returncode == 0, old
