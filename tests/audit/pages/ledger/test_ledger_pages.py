"""The ledger's pages: its state, proofs, and checks; and which roles see them."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from uuid import UUID

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob
from scitt_cose import extract_receipts
from tooltrail.ledger import ProofFile, VerifierKey, leaf_of

from audit.ledger import checks, keys
from audit.models import LedgerCheck
from tenants.models import Action
from tenants.scope import tenant_scope
from tenants.slices import JobState
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import (
    append,
    as_owner,
    keep,
    leaves,
    own_folder,
)
from tests.support.pages import signed_in

NOW = datetime(2026, 11, 20, tzinfo=UTC)
LATER = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The signer's folder of this test's worker."""
    yield own_folder(tmp_path, monkeypatch)


def shown(cast: Cast, address: str = "/ledger/") -> str:
    answer = signed_in(cast.viewer).get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_empty_ledger_is_explained(acme: Cast) -> None:
    page = shown(acme)
    assert "Nothing recorded yet" in page
    assert "Idle" in page
    assert "No witness signs these checkpoints" in page


def test_signed_and_unsigned_entries_are_shown(acme: Cast) -> None:
    append(acme.tenant, leaves(1_234))
    assert "Not signed yet" in shown(acme)
    keep(acme.tenant, datetime.now(UTC))
    append(acme.tenant, leaves(66))
    page = shown(acme)
    assert "1,300" in page
    assert "66 unsigned" in page
    assert f"localhost/log/{acme.tenant.id}" in page
    assert re.search(r"Signer</dt><dd>.*active", page)


def test_late_or_refusing_signer_is_reported(acme: Cast) -> None:
    append(acme.tenant, leaves(3))
    keep(acme.tenant, NOW)
    append(acme.tenant, leaves(3))
    scope = [acme.tenant.id]
    as_owner("UPDATE batch SET received_at = now() - interval '5 min' WHERE tenant_id = %s", scope)
    assert "Entries have been unsigned for 5" in shown(acme)
    as_owner("UPDATE ledger_head SET size = 2 WHERE tenant_id = %s", scope)
    keep(acme.tenant, NOW + LATER)
    assert "the log has 2 entries, but 3 were signed" in shown(acme)
    as_owner("UPDATE ledger_head SET size = 6 WHERE tenant_id = %s", scope)
    keep(acme.tenant, NOW + 2 * LATER)


@pytest.mark.slow
def test_checkpoints_are_paged_and_downloadable(acme: Cast) -> None:
    for minute in range(30):
        append(acme.tenant, leaves(7))
        keep(acme.tenant, NOW + minute * LATER)
    page = shown(acme)
    match = re.search(r'rel="next" href="(\?before=0-\d+)"', page)
    assert match is not None
    assert page.count(">+7<") == 25
    older = shown(acme, f"/ledger/{match[1]}")
    assert older.count(">consistency<") == 5
    assert "No older checkpoint" in shown(acme, "/ledger/?before=0-1")
    for wrong in ("x", "1", "-", "99999999999999999999-1", "0-x"):
        assert "Checkpoints" in shown(acme, f"/ledger/?before={wrong}")
    note = signed_in(acme.viewer).get("/ledger/checkpoints/0/210")
    assert note.content.decode().startswith(f"localhost/log/{acme.tenant.id}\n210\n")
    assert "attachment" in note.headers["Content-Disposition"]
    assert signed_in(acme.viewer).get("/ledger/checkpoints/0/209").status_code == 404


@pytest.mark.slow
def test_pages_of_sorted_checkpoints_have_each_once(acme: Cast) -> None:
    counts = [n * 37 % 31 + 1 for n in range(30)]
    for minute, count in enumerate(counts):
        append(acme.tenant, leaves(count))
        keep(acme.tenant, NOW + minute * LATER)
    address, added = "?sort-checkpoints=added", []
    while address:
        page = shown(acme, f"/ledger/{address}")
        assert 'aria-sort="descending"><a id="sort-checkpoints-added"' in page
        added += [int(one) for one in re.findall(r">\+(\d+)<", page)]
        older = re.search(r'rel="next"\s+href="([^"]*)"', page)
        address = unescape(older[1]) if older else ""
    assert added == sorted(counts[1:], reverse=True)


def test_call_panel_links_to_the_proof_of_each_event(acme: Cast) -> None:
    call = make_call()
    send_events(acme.tenant, call)
    keep(acme.tenant, NOW)
    at = datetime.fromisoformat(call[0]["started_at"]).astimezone(UTC)
    panel = shown(acme, f"/calls/{at:%Y-%m-%d}/{call[0]['invocation_id']}")
    assert '"/ledger/entries/0"' in panel
    assert '"/ledger/entries/1"' in panel
    page = shown(acme, "/ledger/entries/1")
    assert re.search(r"Inclusion proof</dt><dd>.{0,200}valid", page)
    assert f"/calls/{at:%Y-%m-%d}/{call[0]['invocation_id']}" in page
    member = signed_in(acme.viewer)
    file = ProofFile.parse(member.get("/ledger/entries/1.tlog-proof").content)
    vkeys = member.get("/ledger/keys").content.decode().split()
    assert file.extra is not None
    origin = f"localhost/log/{acme.tenant.id}"
    checkpoint = file.verify(leaf_of(file.extra), origin, map(VerifierKey.parse, vkeys))
    assert checkpoint.size == 2
    assert '"/ledger/entries/1.cose"' in page
    (receipt,) = extract_receipts(member.get("/ledger/entries/1.cose").content)
    keys = member.get("/ledger/keys.jwks").json()["keys"]
    assert len(receipt) > 64
    assert {key["signs"] for key in keys} == {"receipts", "statements"}


def test_unprovable_entries_are_explained(acme: Cast) -> None:
    member = signed_in(acme.viewer)
    send_events(acme.tenant, make_call())
    assert "not signed yet" in shown(acme, "/ledger/entries/0")
    assert member.get("/ledger/entries/0.tlog-proof").status_code == 404
    assert member.get("/ledger/entries/0.cose").status_code == 404
    for index in (2, 10**18, 10**40):
        assert member.get(f"/ledger/entries/{index}").status_code == 404
    keep(acme.tenant, NOW)
    as_owner(
        "UPDATE batch SET leaves = sha256('x') || sha256('y') WHERE tenant_id = %s",
        [acme.tenant.id],
    )
    page = shown(acme, "/ledger/entries/0")
    assert "This entry was altered" in page
    assert "differs from the signed one" in page
    as_owner("UPDATE batch SET payload = NULL WHERE tenant_id = %s", [acme.tenant.id])
    assert "The payload was erased" in shown(acme, "/ledger/entries/0")


def test_entry_search_redirects_by_number(acme: Cast) -> None:
    answer = signed_in(acme.viewer).get("/ledger/?entry=%231,234")
    assert answer.headers["Location"] == "/ledger/entries/1234"
    assert "Ledger" in shown(acme, "/ledger/?entry=x")


def test_consistency_of_two_checkpoints_is_shown(acme: Cast) -> None:
    assert "Choose two checkpoints" in shown(acme, "/ledger/consistency")
    for minute in range(3):
        append(acme.tenant, leaves(40, bytes([minute])))
        keep(acme.tenant, NOW + minute * LATER)
    assert "begins with the 40 entries" in shown(acme, "/ledger/consistency?old=40")
    assert "begins with the 40 entries" in shown(acme, "/ledger/consistency?old=40&new=80")
    assert "both checkpoints are the same" in shown(acme, "/ledger/consistency?old=80&new=80")
    assert "No signed checkpoint has 41 entries" in shown(acme, "/ledger/consistency?old=41")
    as_owner(
        "UPDATE ledger_checkpoint SET root = sha256('x') WHERE tenant_id = %s AND size = 40",
        [acme.tenant.id],
    )
    assert "differs from what was signed" in shown(acme, "/ledger/consistency?old=40")


def test_auditor_starts_a_check_once(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    keep(acme.tenant, NOW)
    assert signed_in(acme.viewer).post("/ledger/check").status_code == 403
    auditor = signed_in(acme.auditor)
    assert auditor.post("/ledger/check").headers["Location"] == "/ledger/"
    with tenant_scope(acme.tenant.id):
        check = LedgerCheck.objects.for_tenant(acme.tenant.id).get()
        verbs = Action.objects.filter(tenant_id=acme.tenant.id).values_list("verb", flat=True)
        assert list(verbs) == ["ledger.check"]
    (job,) = ProcrastinateJob.objects.filter(args__check_id=str(check.id))
    assert job.task_name == "audit.tasks.check_ledger"
    assert "waiting" in auditor.get("/ledger/").content.decode()
    auditor.post("/ledger/check")
    assert ProcrastinateJob.objects.filter(args__tenant_id=str(acme.tenant.id)).count() == 1
    part = auditor.get(f"/ledger/check/{check.id}", headers={"HX-Request": "true"}).content.decode()
    assert part.lstrip().startswith('<div id="ledger-check"')
    assert "every 1s" in part
    assert not checks.run_slice(acme.tenant.id, check.id)
    assert "passed" in auditor.get(f"/ledger/check/{check.id}").content.decode()
    assert "every 1s" not in shown(acme)


def test_auditor_cancels_a_check(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    keep(acme.tenant, NOW)
    auditor = signed_in(acme.auditor)
    auditor.post("/ledger/check")
    with tenant_scope(acme.tenant.id):
        check = LedgerCheck.objects.for_tenant(acme.tenant.id).get()
    assert signed_in(acme.viewer).post(f"/ledger/check/{check.id}/cancel").status_code == 403
    for _ in range(2):  # the second one has nothing to cancel
        assert auditor.post(f"/ledger/check/{check.id}/cancel").status_code == 302
    assert "cancelled" in shown(acme)
    with tenant_scope(acme.tenant.id):
        actions = Action.objects.filter(tenant=acme.tenant, verb="ledger.cancel-check")
        assert actions.get().user_name == acme.auditor.get_username()
    assert auditor.post(f"/ledger/check/{UUID(int=7)}/cancel").status_code == 404


def test_hostile_findings_and_refusals_are_escaped(acme: Cast) -> None:
    append(acme.tenant, leaves(3))
    keep(acme.tenant, NOW)
    as_owner(
        "INSERT INTO ledger_signer VALUES (%s, %s, now())"
        " ON CONFLICT (tenant_id) DO UPDATE SET refusal = excluded.refusal",
        [acme.tenant.id, "<script>alert(1)</script>"],
    )
    with tenant_scope(acme.tenant.id):
        check = checks.start_check("auditor", NOW)
        assert check is not None
        check.state, check.finding_count = JobState.FAILED, 1
        check.findings = ["<script>alert(2)</script>"]
        check.save()
    page = shown(acme)
    assert "&lt;script&gt;alert(1)" in page
    assert "&lt;script&gt;alert(2)" in page
    assert "<script>alert" not in page


def test_no_page_reads_the_private_key(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    send_events(acme.tenant, make_call())
    keep(acme.tenant, NOW)

    def refuse() -> None:
        raise AssertionError("a web process read the private key")

    monkeypatch.setattr(keys, "load", refuse)
    for address in ("", "keys", "entries/0", "entries/0.tlog-proof", "consistency?old=2"):
        assert signed_in(acme.admin).get(f"/ledger/{address}").status_code == 200
