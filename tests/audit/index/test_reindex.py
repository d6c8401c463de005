"""Reindexing detects every difference between index and log, and repairs it."""

import io
import json
import random
import threading
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.utils import timezone

from audit.index import partitions
from audit.index.reindex import Report, reindex
from audit.index.shadow import KEYS, Shadow
from audit.index.window import INDEX_DAYS
from audit.ledger.actions import enter_actions
from audit.ledger.baseline import enter_baseline
from audit.log.payload import pack, unpack, without
from audit.management.commands import reindex as reindex_command
from audit.models import Batch, Invocation, RejectedEvent
from tenants.models import Tenant, TenantSetting
from tenants.scope import tenant_scope
from tests.support.call_histories import MIDNIGHT, some_call, some_decision
from tests.support.concurrent_writers import random_batches, sender_in_process, write_at_once
from tests.support.erasures import erase
from tests.support.event_requests import lines, new_batch_id, post
from tests.support.factories import (
    Cast,
    make_call,
    make_cast,
    make_decision,
    make_ingest_key,
    send_events,
)
from tests.support.recount import assert_consistent
from tests.support.retention import apply_retention, set_retention, tenant_setting

WRITERS = 3
START, END = 0, 1


def ingest_anything(cast: Cast, seed: int = 0, calls: int = 60) -> None:
    """Several writers at once: duplicates, both orders, conflicts, gaps, ADK, rejected events."""
    rng = random.Random(seed)
    history = [some_call(rng, number) for number in range(calls)]
    events = [event for call in history for event in call]
    at_odds = rng.sample(history, calls // 6)
    events += [call[-1] | {"tool_name": "another"} for call in at_odds]
    decided = [some_decision(rng) for _ in range(calls // 3)]
    events += [*decided, *rng.sample(decided, 5), decided[0] | {"reason": "another"}]
    for number in range(4):
        gap = {"type": "gap", "producer_id": f"p{number % 2}", "reason": "full", "count": number}
        events += [gap | {"from_seq": 9_000 + number, "to_seq": 9_010}] * 2
    for start, end in ([*make_call(started_at=MIDNIGHT)] for _ in range(5)):
        # The end moves the call to the other side of midnight.
        before = (MIDNIGHT - timedelta(seconds=1)).isoformat()
        send_events(cast.tenant, [start])
        send_events(cast.tenant, [end | {"started_at": before}])
    shares = [random_batches(rng, events) for _ in range(WRITERS)]
    answers = write_at_once([(sender_in_process(cast), share) for share in shares])
    assert {answer.status_code for each in answers.values() for answer in each} == {200}
    adk = [adk_event(kind, number // 2) for kind in ("Start", "End") for number in range(6)]
    post(make_ingest_key(cast.tenant), lines(rng.sample(adk, len(adk))) + b"{ no JSON\n")


def adk_event(kind: str, number: int) -> dict[str, Any]:
    """One of several identical parallel calls of an agent, without an id."""
    event: dict[str, Any] = {
        "type": f"toolExecution{kind}",
        "turnId": f"turn-{number}",
        "callId": "same",
        "toolName": "echo",
        "startedAt": MIDNIGHT.isoformat(),
    }
    ending = {"endedAt": MIDNIGHT.isoformat(), "durationMs": 1, "isError": False}
    return event | ({"args": {}} if kind == "Start" else ending)


def check(cast: Cast) -> Report:
    return reindex(cast.tenant.id, repair=False, progress=lambda done, size: None)


def repair(cast: Cast) -> Report:
    return reindex(cast.tenant.id, repair=True, progress=lambda done, size: None)


def tamper(cast: Cast, statement: str) -> None:
    """Change rows of the tenant directly in the database; at least one must change."""
    with connections["owner"].cursor() as cursor:
        cursor.execute(statement, {"tenant_id": cast.tenant.id})
        assert cursor.rowcount > 0


def whole_index(cast: Cast) -> dict[str, list[str]]:
    """Every row of the index as text."""
    with connections["owner"].cursor() as cursor:
        rows: dict[str, list[str]] = {}
        for table in KEYS:
            cursor.execute(
                f"SELECT t::text FROM {table} t WHERE tenant_id = %s ORDER BY 1",
                [cast.tenant.id],
            )
            rows[table] = [text for (text,) in cursor.fetchall()]
        return rows


def command(*arguments: str) -> str:
    out = io.StringIO()
    call_command("reindex", *arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def failing_command(*arguments: str) -> str:
    out = io.StringIO()
    with pytest.raises(CommandError) as raised:
        call_command("reindex", *arguments, stdout=out, stderr=io.StringIO())
    assert raised.value.returncode == 1
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.generated(1)
@pytest.mark.parametrize("seed", range(3))
def test_index_agrees_with_the_log_after_arbitrary_input(acme: Cast, seed: int) -> None:
    ingest_anything(acme, seed)
    report = check(acme)
    assert report.is_clean, report
    assert report.index_faults == []
    with tenant_scope(acme.tenant.id):
        assert report.calls == Invocation.objects.for_tenant(acme.tenant.id).count() > 60
        assert RejectedEvent.objects.for_tenant(acme.tenant.id).filter(code="conflict").exists()
        batches = Batch.objects.for_tenant(acme.tenant.id)
        assert report.events == sum(batches.values_list("event_count", flat=True))
    assert not repair(acme).is_repaired


@pytest.fixture(scope="module")
def history() -> Iterator[tuple[Cast, dict[str, list[str]]]]:
    """A tenant whose index agrees with its log, and the rows of the index to restore."""
    cast = make_cast("reindexed")
    ingest_anything(cast, calls=30)
    assert check(cast).is_clean
    yield cast, whole_index(cast)
    assert check(cast).is_clean
    assert_consistent(cast.tenant)


ANOTHER = "jsonb_populate_record(i, jsonb_build_object('invocation_id', gen_random_uuid()))"
TAMPERING = {
    "invocation": [
        "UPDATE invocation SET state = 'ok', error_type = '' WHERE state = 'failed' AND",
        "UPDATE invocation SET started_at = started_at + interval '1 us' WHERE",
        "DELETE FROM invocation WHERE state = 'open' AND",
        f"INSERT INTO invocation SELECT ({ANOTHER}).* FROM invocation i WHERE state = 'open' AND",
    ],
    "decision": [
        "UPDATE decision SET reason = NULL, codes = '{OTHER}' WHERE",
        "DELETE FROM decision WHERE decision = 'denied' AND",
    ],
    "violation": [
        "UPDATE violation SET code = 'MISSING' WHERE",
        "DELETE FROM violation WHERE ordinal = 0 AND",
    ],
    "violation_day": [
        "UPDATE violation_day SET call_count = call_count + 1 WHERE",
        "DELETE FROM violation_day WHERE",
    ],
    "trace": ["UPDATE trace SET failed_count = 0 WHERE", "DELETE FROM trace WHERE"],
    "quarter_rollup": [
        "UPDATE quarter_rollup SET cache_hit_count = cache_hit_count + 1 WHERE",
        "UPDATE quarter_rollup SET histogram = histogram + 1 WHERE",
        "DELETE FROM quarter_rollup WHERE failed_count > 0 AND",
    ],
    "rollup": [
        "UPDATE rollup SET failed_count = failed_count + 1 WHERE",
        "UPDATE rollup SET histogram = histogram + 1 WHERE",
        "DELETE FROM rollup WHERE failed_count > 0 AND",
    ],
    "error_rollup": [
        "UPDATE error_rollup SET call_count = call_count + 1 WHERE",
        "DELETE FROM error_rollup WHERE",
    ],
    "producer": ["UPDATE producer SET event_count = 0, first_seq = NULL WHERE"],
    "gap": ["DELETE FROM gap WHERE", "UPDATE gap SET lost_count = 0 WHERE"],
}


@pytest.mark.generated(9, kind="table")
@pytest.mark.parametrize(
    ("table", "statement"),
    [
        pytest.param(table, statement, marks=[pytest.mark.slow] if number else [])
        for table, statements in TAMPERING.items()
        for number, statement in enumerate(statements)
    ],
)
def test_tampered_rows_are_reported_and_repaired(
    history: tuple[Cast, dict[str, list[str]]], table: str, statement: str
) -> None:
    cast, before = history
    tamper(cast, f"{statement} tenant_id = %(tenant_id)s")
    changed = whole_index(cast)
    report = check(cast)
    assert not report.is_clean
    assert {name for name, count in report.comparison.counts.items() if count} == {table}
    assert {each.table for each in report.comparison.examples} == {table}
    assert whole_index(cast) == changed
    assert repair(cast).is_repaired
    assert whole_index(cast) == before


@pytest.mark.slow
def test_deleted_index_is_rebuilt(history: tuple[Cast, dict[str, list[str]]], globex: Cast) -> None:
    ingest_anything(globex, calls=30)
    cast, before = history
    others = whole_index(globex)
    for table in KEYS:
        tamper(cast, f"DELETE FROM {table} WHERE tenant_id = %(tenant_id)s")
    assert check(cast).comparison.counts == {name: len(rows) for name, rows in before.items()}
    repair(cast)
    assert whole_index(cast) == before
    assert whole_index(globex) == others


@pytest.mark.slow
def test_command_reports_differences_and_exits_with_one(acme: Cast) -> None:
    send_events(acme.tenant, make_call(tool_name="\x1b[31mred"))
    slug = acme.tenant.slug
    assert command("--check", "--tenant", slug) == (
        f"{slug}: 2 events in 1 batches, 1 calls: index and log agree\n"
    )
    tamper(acme, "UPDATE invocation SET state = 'failed' WHERE tenant_id = %(tenant_id)s")
    output = failing_command("--check", "--tenant", slug)
    assert "1 rows differ" in output
    assert 'index: {"state": "failed"}\n    log:   {"state": "ok"}' in output
    document = json.loads(failing_command("--check", "--json", "--tenant", slug))[slug]
    assert (document["agrees"], document["differing_rows"]["invocation"]) == (False, 1)
    assert document["differences"][0]["index"] == {"state": "failed"}
    assert "1 rows repaired" in command("--tenant", slug)
    tamper(acme, "UPDATE trace SET first_tool_name = 'x' WHERE tenant_id = %(tenant_id)s")
    output = failing_command("--check", "--tenant", slug)
    assert "\\u001b[31mred" in output
    assert "\x1b" not in output


@pytest.mark.slow
def test_reindex_covers_every_tenant_unless_one_is_named(
    acme: Cast, globex: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[UUID] = []

    def reindex_own(tenant_id: UUID, **options: Any) -> Report:
        """Reindex this tenant only: other tests may have left hundreds."""
        read.append(tenant_id)
        own = (acme.tenant.id, globex.tenant.id)
        return reindex(tenant_id, **options) if tenant_id in own else Report()

    monkeypatch.setattr(reindex_command, "reindex", reindex_own)
    send_events(acme.tenant, make_call())
    send_events(globex.tenant, make_call())
    tamper(globex, "DELETE FROM trace WHERE tenant_id = %(tenant_id)s")
    output = failing_command("--check")
    assert f"\n{acme.tenant.slug}: 2 events in 1 batches, 1 calls: index and log agree\n" in (
        f"\n{output}"
    )
    assert f"\n{globex.tenant.slug}: 2 events in 1 batches, 1 calls: 1 rows differ\n" in output
    assert sorted(read) == sorted(Tenant.objects.values_list("id", flat=True))
    read.clear()
    with pytest.raises(CommandError, match="unknown tenant 'nobody'"):
        call_command("reindex", "--tenant", "nobody")
    command("--check", "--tenant", acme.tenant.slug)
    command("--tenant", globex.tenant.slug)
    assert read == [acme.tenant.id, globex.tenant.id]
    assert check(globex).is_clean


def test_empty_log_agrees_with_empty_index(acme: Cast) -> None:
    report = check(acme)
    assert report.is_clean
    assert (report.events, report.calls) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("gone", [0, 1])
def test_one_of_two_identical_adk_calls_is_kept_after_erasure(acme: Cast, gone: int) -> None:
    events = [adk_event(kind, 0) for kind in ("Start", "End") for _ in range(2)]
    send_events(acme.tenant, events)
    before = whole_index(acme)
    with tenant_scope(acme.tenant.id):
        batch = Batch.objects.for_tenant(acme.tenant.id).get()
    left = pack(without(unpack(bytes(batch.payload or b"")), {gone, gone + 2}))
    with connections["owner"].cursor() as cursor:
        cursor.execute("UPDATE batch SET payload = %s WHERE tenant_id = %s", [left, acme.tenant.id])
    report = check(acme)
    assert report.is_clean, report
    assert (report.erased, report.kept_calls) == (2, 1)
    tamper(acme, "DELETE FROM rollup WHERE tenant_id = %(tenant_id)s")
    repair(acme)
    assert whole_index(acme) == before


@pytest.mark.slow
@pytest.mark.parametrize("part", ["batch", "event"])
def test_rows_of_erased_events_are_kept_from_the_index(acme: Cast, part: str) -> None:
    """If a call's start is erased, only its row still has the values of the start."""
    erased, other = make_call(trace_id="erased", run_id="r1"), make_call(trace_id="whole")
    send_events(acme.tenant, [erased[START], other[START]])
    send_events(acme.tenant, [erased[END], other[END]])
    before = whole_index(acme)
    with tenant_scope(acme.tenant.id):
        batch = Batch.objects.for_tenant(acme.tenant.id).earliest("first_index")
    kept = pack([(b"", b""), (b"s" * 32, json.dumps(other[START]).encode())])
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "UPDATE batch SET payload = %s WHERE tenant_id = %s AND batch_id = %s",
            [kept if part == "event" else None, acme.tenant.id, batch.batch_id],
        )
    report = check(acme)
    assert report.is_clean, report
    assert report.erased == report.kept_calls == (1 if part == "event" else 2)
    for table in ("trace", "rollup"):
        tamper(acme, f"DELETE FROM {table} WHERE tenant_id = %(tenant_id)s")
    repair(acme)
    assert whole_index(acme) == before


def three_producers(cast: Cast) -> list[UUID]:
    """Two calls of each of three producers, and a gap; each producer's events are one batch."""
    batches = []
    for number in range(3):
        producer = {"producer_id": f"p{number}"}
        gap = {"type": "gap", "from_seq": 9, "to_seq": 10, "reason": "full", "count": 2}
        calls = [[each | producer for each in make_call(case_id=f"c{n}")] for n in range(2)]
        events = [*calls[0], *calls[1], gap | producer]
        for seq, event in enumerate(events[:4], 1):
            event["producer_seq"] = seq
        batches.append(UUID(send_events(cast.tenant, events)["batch_id"]))
    return batches


LOSSES = {
    "DELETE FROM gap WHERE producer_id = 'p2' AND": {"gap": 1},
    "UPDATE gap SET lost_count = 1 WHERE producer_id = 'p1' AND": {"gap": 1},
    "DELETE FROM producer WHERE producer_id = 'p1' AND": {"producer": 1},
    "UPDATE producer SET last_seq = 2 WHERE producer_id = 'p2' AND": {"producer": 1},
    "UPDATE producer SET event_count = 1 WHERE producer_id = 'p0' AND": {"producer": 1},
    "UPDATE producer SET event_count = event_count + 9 WHERE": "the producers count",
    "UPDATE producer SET last_heard_at = '2020-01-01' WHERE producer_id = 'p1' AND": {
        "producer": 1
    },
}
"""Changes of what producers lost, and what is found of them after events were erased."""


@pytest.mark.slow
def test_losses_are_compared_after_an_erasure(acme: Cast) -> None:
    """What the readable events say, producers and gaps must say, too."""
    three_producers(acme)
    erase(acme, "case:c0")
    assert (check(acme).erased, check(acme).is_clean) == (6, True)
    for statement, expected in LOSSES.items():
        before = whole_index(acme)
        tamper(acme, f"{statement} tenant_id = %(tenant_id)s")
        report = check(acme)
        if isinstance(expected, str):
            assert expected in report.index_faults[0], statement
            tamper(acme, "UPDATE producer SET event_count = 5 WHERE tenant_id = %(tenant_id)s")
            continue
        differing = {table: count for table, count in report.comparison.counts.items() if count}
        assert differing == expected, statement
        repair(acme)
        assert check(acme).is_clean, statement
        if "producer" not in expected:
            assert whole_index(acme) == before, statement
    tamper(acme, "INSERT INTO gap VALUES (%(tenant_id)s, 'p1', 50, 60, 'made up', 11, now())")
    assert check(acme).comparison.counts["gap"] == 1


@pytest.mark.slow
@pytest.mark.one_node
def test_gaps_that_can_be_read_are_compared_after_retention(acme: Cast) -> None:
    three_producers(acme)
    tamper(
        acme,
        "UPDATE batch SET received_at = received_at - interval '9 days'"
        " WHERE first_index < 5 AND tenant_id = %(tenant_id)s",
    )
    set_retention(acme, payload_days=2)
    apply_retention(acme)
    assert (check(acme).erased, check(acme).index_faults) == (5, [])
    before = check(acme).comparison.counts
    tamper(acme, "DELETE FROM gap WHERE producer_id = 'p1' AND tenant_id = %(tenant_id)s")
    assert check(acme).comparison.counts == before | {"gap": before["gap"] + 1}


def expire_before(cast: Cast, day: date) -> None:
    """Say by SQL that the index is kept from a day on."""
    tamper(
        cast,
        f"UPDATE tenant_setting SET index_from = '{day}' WHERE tenant_id = %(tenant_id)s",
    )


@pytest.mark.slow
def test_forged_day_hides_nothing(acme: Cast) -> None:
    """By SQL somebody says that all calls have expired, and changes them."""
    send_events(acme.tenant, make_call())
    set_retention(acme, index_days=partitions.DAYS_BACK)
    assert enter_baseline(acme.tenant.id, timezone.now())
    apply_retention(acme)  # moves the day, and leaves an action
    enter_actions(acme.tenant.id, timezone.now())
    report = check(acme)
    assert (report.is_clean, report.index_from) == (True, tenant_setting(acme).index_from)
    expire_before(acme, timezone.now().date() + timedelta(days=1))
    tamper(acme, "UPDATE invocation SET tool_name = 'x' WHERE tenant_id = %(tenant_id)s")
    report = check(acme)
    assert report.index_from is None
    (fault,) = report.index_faults
    assert "settings of the tenant" in fault and "no day is believed expired" in fault
    assert report.comparison.counts["invocation"] == 1
    assert not repair(acme).is_repaired, "it could restore what has expired"
    output = failing_command("--tenant", acme.tenant.slug)
    assert f"  index: {fault}" in output


@pytest.mark.slow
def test_calls_that_are_left_of_expired_days_are_compared(acme: Cast) -> None:
    """A hold keeps calls of expired days: they must be what the log says."""
    gone = make_call()
    send_events(acme.tenant, [*gone, *make_call(), make_decision()])
    set_retention(acme, index_days=99)
    expire_before(acme, timezone.now().date() + timedelta(days=1))
    tamper(
        acme,
        f"DELETE FROM invocation WHERE invocation_id = '{gone[START]['invocation_id']}'"
        " AND tenant_id = %(tenant_id)s",
    )
    assert check(acme).is_clean, "retention may have deleted it"
    tamper(acme, "UPDATE invocation SET tool_name = 'x' WHERE tenant_id = %(tenant_id)s")
    tamper(acme, "UPDATE decision SET tool_name = 'x' WHERE tenant_id = %(tenant_id)s")
    counts = check(acme).comparison.counts
    assert (counts["invocation"], counts["decision"]) == (1, 1)
    repair(acme)
    assert check(acme).is_clean


@pytest.mark.slow
def test_damaged_log_is_reported_and_nothing_is_deleted(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    before = whole_index(acme)
    tamper(acme, "UPDATE batch SET payload = 'no zstd' WHERE tenant_id = %(tenant_id)s")
    output = failing_command("--tenant", acme.tenant.slug)
    assert "log: the payload of batch" in output
    assert "cannot be decompressed" in output
    assert whole_index(acme) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE ledger_head SET size = size + 1 WHERE", "the ledger's head says 5"),
        ("UPDATE batch SET first_index = first_index + 7 WHERE first_index = 2 AND", "begins at 9"),
        ("UPDATE batch SET event_count = 3 WHERE first_index = 2 AND", "holds 2 events, not 3"),
    ],
)
def test_gap_in_the_log_is_reported(acme: Cast, statement: str, fault: str) -> None:
    for _ in range(2):
        send_events(acme.tenant, make_call())
    tamper(acme, f"{statement} tenant_id = %(tenant_id)s")
    assert any(fault in each for each in check(acme).log_faults)


@pytest.mark.slow
@pytest.mark.parametrize("is_expired", [True, False])
def test_calls_of_dropped_partitions_are_missing_unless_they_expired(
    acme: Cast, is_expired: bool
) -> None:
    """Their rows are gone, and the log still has the events."""
    long_ago = MIDNIGHT - timedelta(days=partitions.DAYS_BACK + 30)
    created = [
        partitions.Partition(long_ago.date(), table) for table in partitions.PARTITIONED_TABLES
    ]
    partitions.apply(created)
    INDEX_DAYS.refresh()
    try:
        sent = [*make_call(started_at=long_ago, trace_id="gone"), *make_call()]
        assert send_events(acme.tenant, sent)["accepted"] == 4
        assert check(acme).is_clean
    finally:
        with connections["owner"].cursor() as cursor:
            for partition in created:
                cursor.execute(f"DROP TABLE {partition.name}")
        INDEX_DAYS.refresh()
    before = whole_index(acme)
    assert not any("gone" in row for rows in before.values() for row in rows)
    if is_expired:
        with tenant_scope(acme.tenant.id):
            day = long_ago.date() + timedelta(days=1)
            TenantSetting.objects.create(tenant=acme.tenant, index_from=day)
        assert check(acme).is_clean
    else:
        (fault,) = check(acme).index_faults
        assert fault == f"the index has no partition for {long_ago.date()}: 1 calls are gone"
    tamper(acme, "DELETE FROM trace WHERE tenant_id = %(tenant_id)s")
    repair(acme)
    assert whole_index(acme) == before


@pytest.mark.slow
def test_events_can_be_stored_during_check_and_repair(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches that arrive between the two passes, or while writers wait, are in log and index."""
    ingest_anything(acme, calls=30)
    tamper(acme, "UPDATE trace SET failed_count = 99 WHERE tenant_id = %(tenant_id)s")
    tamper(acme, "DELETE FROM rollup WHERE tenant_id = %(tenant_id)s")
    send = sender_in_process(acme)
    rng = random.Random(9)

    def a_batch() -> None:
        calls = [some_call(rng, number) for number in range(8)]
        events = [event for call in calls for event in call]
        assert send((new_batch_id(), lines(events), len(events))).status_code == 200
        connections["default"].close()

    def in_a_thread() -> threading.Thread:
        thread = threading.Thread(target=a_batch)
        thread.start()
        return thread

    waiting: list[threading.Thread] = []
    compare, repair_rows = Shadow.compare, Shadow.repair

    def compare_and_receive(self: Shadow, *args: Any) -> Any:
        in_a_thread().join()  # not in the snapshot, and without waiting for a lock
        return compare(self, *args)

    def repair_and_receive(self: Shadow, *args: Any) -> None:
        waiting.append(in_a_thread())
        repair_rows(self, *args)

    monkeypatch.setattr(Shadow, "compare", compare_and_receive)
    monkeypatch.setattr(Shadow, "repair", repair_and_receive)
    assert repair(acme).is_repaired
    for thread in waiting:
        thread.join()
    monkeypatch.undo()
    assert len(waiting) == 1
    assert check(acme).is_clean
    assert_consistent(acme.tenant)


def test_no_temporary_table_remains(acme: Cast) -> None:
    send_events(acme.tenant, make_call())
    check(acme)
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relpersistence = 't'")
        assert cursor.fetchall() == []


def test_progress_is_reported(acme: Cast) -> None:
    for _ in range(3):
        send_events(acme.tenant, make_call())
    progress_calls: list[tuple[int, int]] = []
    reindex(
        acme.tenant.id,
        repair=False,
        progress=lambda done, size: progress_calls.append((done, size)),
    )
    assert progress_calls == [(2, 6), (4, 6), (6, 6)]
