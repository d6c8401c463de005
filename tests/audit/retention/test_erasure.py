"""Erasure by query: exactly the matching calls, declared, and the ledger still verifies."""

import json
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from audit.intake import arrival
from audit.log.payload import read_events
from audit.models import (
    Batch,
    Erasure,
    ErasureState,
    Invocation,
    PayloadHit,
    RejectedEvent,
    Violation,
)
from audit.queries.call_query import MAX_LENGTH, parse
from audit.retention import erasure as job
from audit.retention import erasure_chunk
from audit.tasks.requested import erase_calls
from audit.work.payload_search import run_slice as run_search
from config.postgresql.aliases import KEEPER
from tenants.scope import tenant_scope
from tests.support.arrival_checks import VIOLATING_OUTPUT, register_checked_tool
from tests.support.erasures import (
    all_stored_text,
    confirm_erasure,
    erase,
    preview_erasure,
    read_erasure,
    run_erasure,
)
from tests.support.event_requests import post
from tests.support.factories import (
    Cast,
    make_call,
    make_ingest_key,
    send_events,
)
from tests.support.ledger_log import as_owner
from tests.support.legal_holds import event_texts, missing_in_ledger, set_hold
from tests.support.pages import signed_in
from tests.support.retention import (
    apply_retention,
    index_agrees_with_log,
    recorded_actions,
    set_retention,
)

SECRET = "Ada Lovelace"
VIOLATION = {"path": "$.a", "code": "WRONG_TYPE", "expected": SECRET, "received": SECRET}


def call_of(case: str, **members: Any) -> list[dict[str, Any]]:
    """A failed call with a personal text in every member that can hold one."""
    return make_call(
        case_id=case,
        call_id=f"hash of {SECRET}",
        idempotency_key=f"for {SECRET}",
        args={"who": SECRET},
        is_error=True,
        output={"status": "error", "error": {"type": "FATAL", "message": SECRET}},
        guard={"strategy": "throw", "outcome": "failed", "violations": [VIOLATION]},
        **members,
    )


@pytest.mark.slow
def test_erasure_removes_all_texts_of_matching_calls_only(acme: Cast) -> None:
    mine, other = call_of("mine"), make_call(case_id="theirs")
    send_events(acme.tenant, [mine[0], *other, mine[1]])
    send_events(acme.tenant, call_of("mine"))
    one = preview_erasure(acme)
    assert (one.state, one.call_count, one.event_count) == (ErasureState.COUNTED, 2, 4)
    assert one.byte_count == sum(len(raw) for raw in event_texts(acme) if b"mine" in raw)
    assert SECRET in all_stored_text(acme), "a preview changes nothing"
    confirm_erasure(acme, one.id)
    run_erasure(acme, one.id)
    one = read_erasure(acme, one.id)
    assert (one.state, one.erased_calls, one.erased_events) == (ErasureState.DONE, 2, 4)
    assert one.erased_bytes == one.byte_count
    assert SECRET not in all_stored_text(acme)
    assert [bool(each) for each in event_texts(acme)] == [False, True, True, False, False, False]
    with tenant_scope(acme.tenant.id):
        calls = Invocation.objects.for_tenant(acme.tenant.id)
        ids = set(calls.filter(case_id="mine").values_list("call_id", flat=True))
        assert len(ids) == 2, "they must not look like identical calls"
        assert calls.get(case_id="theirs").call_id == "c" * 64
        assert Violation.objects.for_tenant(acme.tenant.id).count() == 2
    assert index_agrees_with_log(acme)
    assert missing_in_ledger(acme) == []
    (action,) = recorded_actions(acme, "erasure.done")
    assert (action["calls"], action["events"]) == (2, 4)


@pytest.mark.slow
def test_erasure_removes_payload_search_matches_of_erased_calls_only(acme: Cast) -> None:
    for case, trace in (("mine", "free"), ("mine", "held"), ("theirs", "free")):
        send_events(acme.tenant, call_of(case, trace_id=trace))
    set_hold(acme, trace_id="held")
    client = signed_in(acme.editor)
    answer = client.post("/calls/search", {"text": SECRET})
    run_search(acme.tenant.id, UUID(answer["Location"].rpartition("/")[2]))

    def matches() -> list[tuple[str | None, str]]:
        with tenant_scope(acme.tenant.id):
            hits = PayloadHit.objects.for_tenant(acme.tenant.id)
            ids = list(hits.values_list("invocation_id", flat=True))
            calls = Invocation.objects.for_tenant(acme.tenant.id).filter(invocation_id__in=ids)
            assert len(ids) == 2 * len(calls)
            return sorted((call.case_id, call.trace_id) for call in calls)

    assert matches() == [("mine", "free"), ("mine", "held"), ("theirs", "free")]
    erase(acme)
    assert matches() == [("mine", "held"), ("theirs", "free")]


@pytest.mark.parametrize("stored", ["case:mine nope:1", ""])
def test_unreadable_stored_query_erases_nothing(acme: Cast, stored: str) -> None:
    """The valid rest of a query may match the opposite of the whole."""
    send_events(acme.tenant, make_call(case_id="mine"))
    with tenant_scope(acme.tenant.id):
        one = job.start_erasure(acme.tenant, acme.admin, parse("case:mine"), timezone.now())
        Erasure.objects.for_tenant(acme.tenant.id).filter(id=one.id).update(query=stored)
    run_erasure(acme, one.id)
    failed = read_erasure(acme, one.id)
    assert (failed.state, failed.call_count) == ("failed", 0)
    assert failed.problem.startswith("Invalid query. Nothing was searched.")


def test_erasure_changes_only_payloads_of_the_log(acme: Cast) -> None:
    send_events(acme.tenant, [*call_of("mine"), *make_call()])
    with tenant_scope(acme.tenant.id):
        batches = Batch.objects.for_tenant(acme.tenant.id).filter(is_own=False)
        columns = ("batch_id", "received_at", "first_index", "event_count", "leaves", "answer")
        before = list(batches.values(*columns))
    erase(acme)
    with tenant_scope(acme.tenant.id):
        assert list(batches.values(*columns)) == before


def test_ledger_entry_declares_exactly_the_erased_ranges(acme: Cast) -> None:
    mine = call_of("mine")
    send_events(acme.tenant, [mine[0], *make_call(), mine[1]])
    one = erase(acme)
    with tenant_scope(acme.tenant.id):
        own = Batch.objects.for_tenant(acme.tenant.id).filter(is_own=True)
        raws = [
            event.raw or b"{}"
            for batch in own
            for event in read_events(acme.tenant.id, [(batch.batch_id, 0)]).values()
        ]
    (entry,) = (json.loads(raw) for raw in raws if b'"type":"erasure"' in raw)
    assert entry["ranges"] == [[0, 1], [3, 4]]
    assert (entry["reason"], entry["actor"]) == ("asked to", acme.admin.get_username())
    assert entry["erasure"] == str(one.id)


@pytest.mark.slow
def test_undeclared_payload_removal_is_detected(acme: Cast) -> None:
    send_events(acme.tenant, call_of("mine"))
    send_events(acme.tenant, make_call())
    erase(acme)
    as_owner(
        "UPDATE batch SET payload = NULL WHERE tenant_id = %s AND first_index = 2", [acme.tenant.id]
    )
    assert missing_in_ledger(acme) == [
        "entries 2 to 3: the payloads are missing, and no entry declares them erased"
    ]


@pytest.mark.slow
def test_every_copy_of_a_resent_event_is_erased(acme: Cast) -> None:
    mine = call_of("mine")
    send_events(acme.tenant, mine)
    assert send_events(acme.tenant, [*make_call(), *mine])["duplicates"] == 2
    one = erase(acme)
    assert (one.event_count, one.erased_events) == (4, 4)
    assert SECRET not in all_stored_text(acme)
    assert index_agrees_with_log(acme)
    assert missing_in_ledger(acme) == []


@pytest.mark.slow
def test_rejected_events_of_matching_calls_are_erased(acme: Cast) -> None:
    start, end = call_of("mine")
    send_events(acme.tenant, [start, end])
    send_events(acme.tenant, [{**end, "event_id": str(uuid.uuid4()), "duration_ms": 99.5}])
    broken = json.dumps({**start, "tool_name": 7}).encode()
    post(make_ingest_key(acme.tenant), broken + b"\n{ of somebody else\n")
    one = preview_erasure(acme)
    assert one.line_count == 2
    confirm_erasure(acme, one.id)
    run_erasure(acme, one.id)
    assert read_erasure(acme, one.id).erased_lines == 2
    with tenant_scope(acme.tenant.id):
        left = {bytes(each.raw) for each in RejectedEvent.objects.for_tenant(acme.tenant.id)}
    assert left == {b"", b"{ of somebody else"}
    assert SECRET not in all_stored_text(acme)


@pytest.mark.slow
def test_server_findings_are_erased_with_their_output(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrival, "BELIEVED_FOR", 0.0)
    register_checked_tool(acme.tenant)
    for case in ("mine", "theirs"):
        send_events(acme.tenant, make_call(case_id=case, output=VIOLATING_OUTPUT))
    one = erase(acme)
    assert (one.event_count, one.erased_events) == (3, 3)
    assert [bool(each) for each in event_texts(acme)] == [False] * 3 + [True] * 3
    assert index_agrees_with_log(acme)
    assert missing_in_ledger(acme) == []


@pytest.mark.slow
def test_adk_calls_without_invocation_ids_are_erased(acme: Cast) -> None:
    """None of their events contains their id."""
    at = timezone.now() - timedelta(minutes=5)
    for number in range(2):
        start, end = (
            {
                "callId": f"call-{number}",
                "turnId": "turn-1",
                "caseId": "mine" if number else "theirs",
                "toolName": "t",
                "startedAt": at.isoformat(),
                "type": kind,
            }
            for kind in ("toolExecutionStart", "toolExecutionEnd")
        )
        start["args"] = {"who": SECRET}  # type: ignore[assignment]  # events are typed by their first members
        end |= {"endedAt": at.isoformat(), "durationMs": 1, "isError": False}  # type: ignore[dict-item]  # events are typed by their first members
        for _ in range(2):
            send_events(acme.tenant, [start, end])
    one = erase(acme)
    assert (one.erased_calls, one.erased_events) == (1, 4)
    assert [SECRET.encode() in each for each in event_texts(acme)][::2] == [
        True,
        True,
        False,
        False,
    ]
    assert index_agrees_with_log(acme)


@pytest.mark.slow
def test_held_calls_are_excluded_and_listed(acme: Cast) -> None:
    for trace in ("held", "free"):
        send_events(acme.tenant, call_of("mine", trace_id=trace))
    set_hold(acme, trace_id="held")
    one = erase(acme)
    assert (one.call_count, one.held_count, one.erased_calls) == (1, 1, 1)
    assert [bool(each) for each in event_texts(acme)] == [True, True, False, False]
    page = signed_in(acme.auditor).get(reverse("erasure_detail", args=[one.id])).content.decode()
    assert "Held (excluded)" in page


@pytest.mark.slow
def test_hold_set_after_the_preview_is_respected(acme: Cast) -> None:
    mine = call_of("mine", trace_id="held")
    send_events(acme.tenant, mine)
    send_events(acme.tenant, mine)
    post(make_ingest_key(acme.tenant), json.dumps({**mine[0], "tool_name": 7}).encode())
    one = preview_erasure(acme)
    set_hold(acme, case_id="mine")
    confirm_erasure(acme, one.id)
    run_erasure(acme, one.id)
    one = read_erasure(acme, one.id)
    assert (one.state, one.erased_calls, one.erased_events) == (ErasureState.DONE, 0, 0)
    assert one.erased_lines == 0
    assert all(event_texts(acme))
    assert index_agrees_with_log(acme)


def test_calls_received_after_the_preview_are_kept(acme: Cast) -> None:
    send_events(acme.tenant, call_of("mine"))
    one = preview_erasure(acme)
    send_events(acme.tenant, call_of("mine"))
    confirm_erasure(acme, one.id)
    run_erasure(acme, one.id)
    assert [bool(each) for each in event_texts(acme)] == [False, False, True, True]


@pytest.mark.slow
def test_indexed_quotes_are_erased_after_retention_removed_the_payload(acme: Cast) -> None:
    send_events(acme.tenant, call_of("mine"))
    as_owner(
        "UPDATE batch SET received_at = now() - interval '5 days' WHERE tenant_id = %s",
        [acme.tenant.id],
    )
    set_retention(acme, payload_days=2)
    apply_retention(acme)
    one = erase(acme)
    assert (one.erased_calls, one.erased_events) == (1, 0)
    assert SECRET not in all_stored_text(acme)
    assert index_agrees_with_log(acme)


@pytest.mark.slow
def test_retention_declares_only_events_left_by_an_erasure(acme: Cast) -> None:
    send_events(acme.tenant, [*call_of("mine"), *make_call()])
    erase(acme)
    as_owner(
        "UPDATE batch SET received_at = now() - interval '5 days'"
        " WHERE tenant_id = %s AND NOT is_own",
        [acme.tenant.id],
    )
    set_retention(acme, payload_days=2)
    apply_retention(acme)
    assert [action["events"] for action in recorded_actions(acme, "retention.payloads")] == [2]
    assert not any(event_texts(acme))
    assert missing_in_ledger(acme) == []


@pytest.mark.slow
def test_end_received_after_erasure_of_its_start_is_no_conflict(acme: Cast) -> None:
    start, end = call_of("mine")
    send_events(acme.tenant, [start])
    erase(acme)
    send_events(acme.tenant, [end])
    with tenant_scope(acme.tenant.id):
        call = Invocation.objects.for_tenant(acme.tenant.id).get()
    assert (call.state, call.pair_conflict) == ("failed", False)
    assert index_agrees_with_log(acme)


class Killed(BaseException):
    pass


@pytest.mark.generated(1)
@pytest.mark.slow
@pytest.mark.parametrize("step", ["calls", "log", "inbox"])
def test_erasure_resumes_after_a_worker_is_killed_at_any_step(
    acme: Cast, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(erasure_chunk, "_CALLS", 2)
    monkeypatch.setattr(erasure_chunk, "_BATCHES", 1)
    for _ in range(5):
        mine = call_of("mine")
        send_events(acme.tenant, mine)
        send_events(acme.tenant, mine)
    one = preview_erasure(acme)
    confirm_erasure(acme, one.id)
    saved, kills = Erasure.save, 0

    def killed(self: Erasure, *arguments: Any, **named: Any) -> None:
        saved(self, *arguments, **named)
        if self.step == step:
            raise Killed  # just before the commit

    while read_erasure(acme, one.id).state in job.UNDER_WAY:
        with monkeypatch.context() as patched, suppress(Killed):
            patched.setattr(Erasure, "save", killed)
            run_erasure(acme, one.id)
            break
        kills += 1
        assert missing_in_ledger(acme) == [], "every erased event must be declared"
        assert index_agrees_with_log(acme)
        job.run_slice(acme.tenant.id, one.id, seconds=0.0)
    assert kills
    run_erasure(acme, one.id)
    one = read_erasure(acme, one.id)
    assert (one.state, one.erased_calls, one.erased_events) == (ErasureState.DONE, 5, 20)
    assert SECRET not in all_stored_text(acme)
    assert missing_in_ledger(acme) == []
    assert index_agrees_with_log(acme)


def test_worker_overtaken_by_another_reads_the_whole_log(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = call_of("mine")
    send_events(acme.tenant, mine)
    send_events(acme.tenant, mine)
    one = preview_erasure(acme)
    confirm_erasure(acme, one.id)
    overtaken = False

    def overtaking(tenant_id: UUID, *, using: str = "default") -> Any:
        nonlocal overtaken
        if using == KEEPER and not overtaken:
            overtaken = True
            while read_erasure(acme, one.id).step == "calls":
                job.run_slice(acme.tenant.id, one.id, seconds=0.0)
        return tenant_scope(tenant_id, using=using)

    monkeypatch.setattr(job, "tenant_scope", overtaking)
    run_erasure(acme, one.id)
    assert overtaken
    one = read_erasure(acme, one.id)
    assert (one.state, one.erased_calls, one.erased_events) == (ErasureState.DONE, 1, 4)
    assert not any(event_texts(acme))


@pytest.mark.slow
def test_cancelled_erasure_reports_the_calls_already_erased(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure_chunk, "_CALLS", 2)
    for _ in range(5):
        send_events(acme.tenant, call_of("mine"))
    one = preview_erasure(acme)
    confirm_erasure(acme, one.id)
    assert job.run_slice(acme.tenant.id, one.id, seconds=0.0)
    signed_in(acme.admin).post(reverse("erasure_cancel", args=[one.id]))
    assert not job.run_slice(acme.tenant.id, one.id)
    one = read_erasure(acme, one.id)
    assert (one.state, one.erased_calls) == (ErasureState.CANCELLED, 2)
    assert missing_in_ledger(acme) == []
    assert index_agrees_with_log(acme)
    page = signed_in(acme.admin).get(reverse("erasure_detail", args=[one.id])).content.decode()
    assert "Data that was already erased" in page


def test_damaged_payload_is_kept_and_reported(acme: Cast) -> None:
    send_events(acme.tenant, call_of("mine"))
    send_events(acme.tenant, call_of("mine"))
    as_owner(
        "UPDATE batch SET payload = '\\x00' WHERE tenant_id = %s AND first_index = 0",
        [acme.tenant.id],
    )
    one = erase(acme)
    assert (one.state, one.erased_calls) == (ErasureState.DONE, 1)
    assert "is damaged" in one.problem


@pytest.mark.slow
def test_erasure_requires_a_reason_and_runs_once(acme: Cast) -> None:
    send_events(acme.tenant, call_of("mine"))
    one = preview_erasure(acme)
    address = reverse("erasure_confirm", args=[one.id])
    client = signed_in(acme.admin)
    assert "Enter a reason" in client.post(address, {"reason": ""}, follow=True).content.decode()
    confirm_erasure(acme, one.id)
    run_erasure(acme, one.id)
    confirm_erasure(acme, one.id)
    assert read_erasure(acme, one.id).state == ErasureState.DONE


@pytest.mark.parametrize("query", ["", "   ", "nonsense:1", "tool:"])
def test_empty_or_invalid_query_starts_no_erasure(acme: Cast, query: str) -> None:
    answer = signed_in(acme.admin).post(reverse("erasure_start"), {"q": query})
    assert answer.status_code == 200
    with tenant_scope(acme.tenant.id):
        assert not Erasure.objects.for_tenant(acme.tenant.id).exists()


def test_longest_query_erases_exactly_its_matches(acme: Cast) -> None:
    """With its time as an instant it was too long, and the stored query matched every call."""
    send_events(acme.tenant, [*make_call(case_id="mine"), *make_call(case_id="theirs")])
    text = f"since:1h case:mine NOT ({' OR '.join('x' * 390 for _ in range(5))} OR "
    counted = preview_erasure(acme, text + "x" * (MAX_LENGTH - 1 - len(text)) + ")")
    assert len(counted.query) > MAX_LENGTH
    assert (counted.state, counted.call_count) == ("counted", 1)
    confirm_erasure(acme, counted.id)
    run_erasure(acme, counted.id)
    one = read_erasure(acme, counted.id)
    assert (one.state, one.erased_calls, one.erased_events) == (ErasureState.DONE, 1, 2)
    assert [bool(each) for each in event_texts(acme)] == [False, False, True, True]


def test_too_many_calls_fail_the_preview(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "CALLS_MAX", 1)
    for _ in range(2):
        send_events(acme.tenant, call_of("mine"))
    one = preview_erasure(acme)
    assert one.state == ErasureState.FAILED
    assert "Narrow the query" in one.problem


@pytest.mark.parametrize("role", ["viewer", "editor", "auditor"])
def test_roles_other_than_admin_cannot_erase(acme: Cast, role: str) -> None:
    client: Client = signed_in(getattr(acme, role))
    one = preview_erasure(acme)
    for name in ("erasure_confirm", "erasure_cancel"):
        assert client.post(reverse(name, args=[one.id]), {"reason": "r"}).status_code == 403
    assert client.post(reverse("erasure_start"), {"q": "tool:a"}).status_code == 403
    seen = client.get(reverse("erasure_list")).status_code
    assert seen == (200 if role == "auditor" else 403)


@pytest.mark.slow
def test_erased_call_shows_user_and_reason(acme: Cast) -> None:
    (start, _) = call_of("mine")
    send_events(acme.tenant, [start])
    erase(acme)
    day = datetime.fromisoformat(start["started_at"]).astimezone(UTC).date()
    page = signed_in(acme.viewer).get(f"/calls/{day}/{start['invocation_id']}").content.decode()
    assert "asked to" in page
    assert acme.admin.get_username() in page
    assert "Backups keep them until they expire" in page


def test_calls_of_another_tenant_are_kept(acme: Cast, globex: Cast) -> None:
    for cast in (acme, globex):
        send_events(cast.tenant, call_of("mine"))
    one = erase(acme)
    assert all(event_texts(globex))
    erase_calls(str(globex.tenant.id), str(one.id))
    assert all(event_texts(globex))
