"""Retention: expired data is deleted and declared, the rest stays, the ledger verifies."""

import io
import json
from datetime import UTC, date, datetime
from itertools import count
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import pytest
import uuid_utils.compat
from django.core.management import call_command
from django.db import connections
from django.utils import timezone
from tooltrail.ledger import Kind

from audit import sql
from audit.index import partitions
from audit.index.partitions import PARTITIONED_TABLES
from audit.log.payload import read_events
from audit.models import Batch, Invocation, RejectedEvent, TenantQuerySet
from audit.retention import retention
from audit.retention.event_removal import declare, remove_events
from audit.retention.retention import CannotExpireError, limits, run_slice
from audit.tasks.tenants import expire, keep_to_retention
from tenants.models import TenantSetting
from tenants.scope import tenant_scope
from tests.support.event_requests import post
from tests.support.factories import (
    Cast,
    make_ingest_key,
    send_events,
)
from tests.support.ledger_log import as_owner
from tests.support.pages import signed_in
from tests.support.query_plans import days_read
from tests.support.retention import (
    DAY,
    apply_retention,
    index_agrees_with_log,
    recorded_actions,
    rows_until,
    send_old_calls,
    send_violating_calls,
    set_retention,
    tenant_setting,
)


def executors_batches(cast: Cast) -> TenantQuerySet[Batch]:
    """The batches of executors: the log without the server's own."""
    return Batch.objects.for_tenant(cast.tenant.id).filter(is_own=False)


def payloads(cast: Cast) -> list[bool]:
    """Whether each batch of executors has its payload, in the order of the log."""
    with tenant_scope(cast.tenant.id):
        batches = executors_batches(cast).order_by("first_index")
        return [batch.payload is not None for batch in batches]


def speed_up_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second pass between any two readings of retention's clock."""
    ticks = count()
    monkeypatch.setattr(retention, "time", Mock(monotonic=lambda: float(next(ticks))))


def calls_of(cast: Cast) -> int:
    with tenant_scope(cast.tenant.id):
        return Invocation.objects.for_tenant(cast.tenant.id).count()


@pytest.mark.slow
def test_expired_payloads_are_erased_and_declared_and_leaves_are_kept(
    acme: Cast, globex: Cast
) -> None:
    for cast in (acme, globex):
        for age in (30, 9, 1):
            send_old_calls(cast, age * DAY)
    set_retention(acme, payload_days=10)
    with tenant_scope(acme.tenant.id):
        before = [bytes(each.leaves) for each in Batch.objects.for_tenant(acme.tenant.id)]
    apply_retention(acme)
    assert payloads(acme) == [False, True, True]
    assert payloads(globex) == [True, True, True]
    with tenant_scope(acme.tenant.id):
        batches = list(executors_batches(acme))
        assert [bytes(each.leaves) for each in batches] == before
        first = min(batches, key=lambda each: each.first_index)
        (event,) = read_events(acme.tenant.id, [(first.batch_id, 0)]).values()
    assert (event.raw, event.salt, event.ledger_index) == (None, None, 0)
    assert tenant_setting(acme).erased_to == 2
    assert index_agrees_with_log(acme)
    (action,) = recorded_actions(acme, "retention.payloads")
    assert action["by"] == "Tooltrail"
    assert (action["first_index"], action["end_index"], action["events"]) == (0, 2, 2)
    apply_retention(acme)
    assert len(recorded_actions(acme, "retention.payloads")) == 1, "nothing expired, so no action"


def test_damaged_payload_next_to_an_erased_one_is_erased(acme: Cast) -> None:
    """After an erasure each batch is read before it is erased; this one is unreadable."""
    for age in (9, 8, 7):
        send_old_calls(acme, age * DAY)
    now = timezone.now()
    with tenant_scope(acme.tenant.id, using="keeper"):
        batch_id = executors_batches(acme).using("keeper").get(first_index=0).batch_id
        gone = remove_events(acme.tenant.id, [batch_id], lambda *_: (), using="keeper")
        declare(acme.tenant.id, Kind.ERASURE, gone.ranges, "asked", "ada", now, using="keeper")
    as_owner(
        "UPDATE batch SET payload = '\\x00' WHERE tenant_id = %s AND first_index = 2",
        [acme.tenant.id],
    )
    set_retention(acme, payload_days=1)
    apply_retention(acme)
    assert payloads(acme) == [False, False, False]
    (action,) = recorded_actions(acme, "retention.payloads")
    assert (action["first_index"], action["end_index"], action["events"]) == (2, 6, 4)


def test_call_with_an_expired_payload_is_explained(acme: Cast) -> None:
    (start, _) = send_old_calls(acme, 3 * DAY)
    set_retention(acme, payload_days=1)
    apply_retention(acme)
    day = datetime.fromisoformat(start["started_at"]).astimezone(UTC).date()
    address = f"/calls/{day}/{start['invocation_id']}"
    page = signed_in(acme.admin).get(address)
    assert page.status_code == 200
    assert "The payload was erased" in page.content.decode()
    assert "London" not in page.content.decode()
    assert "London" not in signed_in(acme.admin).get(address + "/start").content.decode()


def test_resent_event_of_an_erased_payload_is_a_duplicate(acme: Cast) -> None:
    events = send_old_calls(acme, 3 * DAY)
    set_retention(acme, payload_days=1)
    apply_retention(acme)
    assert send_events(acme.tenant, events)["duplicates"] == 2


@pytest.mark.one_node
def test_counters_of_expired_days_are_deleted_without_reading_later_days(acme: Cast) -> None:
    """Of ten million calls, reading them all took minutes, while erasures waited."""
    before = timezone.now().date() - 20 * DAY
    statement = sql.QUERIES["delete_expired_rollups"]
    with tenant_scope(acme.tenant.id, using="owner"), connections["owner"].cursor() as cursor:
        cursor.execute(f"EXPLAIN {statement}", {"tenant_id": acme.tenant.id, "before": before})
        plan = "\n".join(row[0] for row in cursor.fetchall())
    days = days_read(plan)
    assert days
    assert max(days) < before


def test_failed_slice_is_rolled_back_and_counted_once(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        send_old_calls(acme, 3 * DAY)
    set_retention(acme, payload_days=1)
    monkeypatch.setattr(retention, "_BATCHES", 2)
    with monkeypatch.context() as patched:
        patched.setattr(retention, "declare", lambda *arguments, **named: 1 / 0)
        with pytest.raises(ZeroDivisionError):  # killed between erasing and declaring
            run_slice(acme.tenant.id, timezone.now())
    assert payloads(acme) == [True] * 5
    assert tenant_setting(acme).erased_to == 0
    apply_retention(acme)
    assert payloads(acme) == [False] * 5
    assert sum(action["events"] for action in recorded_actions(acme, "retention.payloads")) == 10


def test_short_slice_reports_remaining_work(acme: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        send_old_calls(acme, 3 * DAY)
    set_retention(acme, payload_days=1)
    monkeypatch.setattr(retention, "_BATCHES", 1)
    speed_up_clock(monkeypatch)
    assert run_slice(acme.tenant.id, timezone.now(), seconds=1.5)
    assert payloads(acme) == [False, True, True]


def test_rejected_events_lose_their_text_at_the_same_age(acme: Cast) -> None:
    post(make_ingest_key(acme.tenant), b"{ secret of today\n")
    then = timezone.now() - 5 * DAY
    old_id = UUID(int=(int(then.timestamp() * 1000) << 80) | (7 << 76) | (2 << 62) | 1)
    with tenant_scope(acme.tenant.id):
        new = RejectedEvent.objects.for_tenant(acme.tenant.id).get()
        RejectedEvent.objects.create(
            tenant_id=acme.tenant.id,
            id=old_id,
            received_at=then,
            batch_id=uuid_utils.compat.uuid7(),
            line=1,
            code="not_json",
            message="expected value",
            raw=b"{ secret of then",
            raw_length=16,
        )
    set_retention(acme, payload_days=2)
    apply_retention(acme)
    with tenant_scope(acme.tenant.id):
        refused = RejectedEvent.objects.for_tenant(acme.tenant.id)
        left = {each.id: bytes(each.raw) for each in refused}
    assert left == {old_id: b"", new.id: b"{ secret of today"}
    assert [action["lines"] for action in recorded_actions(acme, "retention.inbox")] == [1]
    page = signed_in(acme.admin).get(f"/inbox/{old_id}").content.decode()
    assert "erased, by retention" in page
    assert "Resend unchanged" not in page


@pytest.mark.slow
def test_index_expires_per_tenant(
    acme: Cast, globex: Cast, long_ago: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cast in (acme, globex):
        send_violating_calls(cast, long_ago)
        send_old_calls(cast, DAY)
    set_retention(acme, index_days=40)
    monkeypatch.setattr(retention, "_ROWS", 2)
    rows_of_globex = rows_until(globex, long_ago)
    assert all(count for table, count in rows_of_globex.items() if table != "otlp_span")
    apply_retention(acme)
    assert set(rows_until(acme, long_ago).values()) == {0}
    assert rows_until(globex, long_ago) == rows_of_globex
    assert (calls_of(acme), calls_of(globex)) == (1, 4)
    (action,) = recorded_actions(acme, "retention.index")
    assert action["calls"] == 3
    assert payloads(acme) == [True] * 4, "the log has its own retention"
    for cast in (acme, globex):
        assert index_agrees_with_log(cast)
    out = io.StringIO()
    call_command("reindex", "--check", "--tenant", acme.tenant.slug, stdout=out)
    first = tenant_setting(acme).index_from
    assert f"of days before {first} only calls that are left are compared" in out.getvalue()
    out = io.StringIO()
    call_command("reindex", "--check", "--json", "--tenant", acme.tenant.slug, stdout=out)
    assert json.loads(out.getvalue())[acme.tenant.slug]["index_from"] == str(
        tenant_setting(acme).index_from
    )
    apply_retention(acme)
    assert len(recorded_actions(acme, "retention.index")) == 1


@pytest.mark.slow
def test_interrupted_index_deletion_is_completed(
    acme: Cast, long_ago: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_violating_calls(acme, long_ago)
    set_retention(acme, index_days=40)
    monkeypatch.setattr(retention, "_ROWS", 1)
    speed_up_clock(monkeypatch)
    assert run_slice(acme.tenant.id, timezone.now(), seconds=2.5)
    assert sum(rows_until(acme, long_ago).values()) > 0
    assert index_agrees_with_log(acme), "rows of days being deleted may be missing"
    apply_retention(acme)
    assert set(rows_until(acme, long_ago).values()) == {0}
    assert [action["calls"] for action in recorded_actions(acme, "retention.index")] == [3]


def test_partition_is_dropped_only_when_expired_for_all_tenants(
    acme: Cast, long_ago: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_violating_calls(acme, long_ago)
    assert retention.drop_empty_days() == [], "other tenants keep all data"
    kept_from = long_ago + DAY
    monkeypatch.setattr(retention, "_kept_from", lambda: kept_from)
    dropped = retention.drop_empty_days()
    assert {each.table for each in dropped} <= {"otlp_span"}, "other tables have rows"
    set_retention(acme, index_days=40)
    apply_retention(acme)
    dropped += retention.drop_empty_days()
    assert {each.table for each in dropped} >= set(PARTITIONED_TABLES)
    assert not [each for each in partitions.existing() if each.day == long_ago]
    assert not [each for each in dropped if each.day > long_ago]


@pytest.mark.parametrize(
    ("payload_days", "index_days", "payloads_before", "index_before"),
    [
        (None, None, None, None),
        (1, 35, datetime(2026, 3, 29, tzinfo=UTC), date(2026, 2, 23)),
        (30, None, datetime(2026, 2, 28, tzinfo=UTC), None),
    ],
)
def test_retention_limits_are_whole_days(
    payload_days: int | None, index_days: int | None, payloads_before: Any, index_before: Any
) -> None:
    setting = TenantSetting(payload_days=payload_days, index_days=index_days)
    over = limits(setting, datetime(2026, 3, 30, 23, 59, 59, tzinfo=UTC))
    assert (over.payloads, over.index) == (payloads_before, index_before)


def test_default_retention_keeps_everything(acme: Cast) -> None:
    send_old_calls(acme, 34 * DAY)
    assert not run_slice(acme.tenant.id, timezone.now())
    set_retention(acme, payload_days=None, index_days=None)
    assert not run_slice(acme.tenant.id, timezone.now() + 10_000 * DAY)
    assert payloads(acme) == [True]


def test_missing_keeper_connection_is_an_error_and_nothing_is_erased(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_old_calls(acme, 3 * DAY)
    set_retention(acme, payload_days=1)
    monkeypatch.setattr(retention, "KEEPER", "nobody")
    with pytest.raises(CannotExpireError, match="DATABASE_KEEPER_URL"):
        run_slice(acme.tenant.id, timezone.now())
    assert payloads(acme) == [True]


@pytest.mark.slow
def test_worker_schedules_one_retention_job_per_tenant(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("audit.tasks.tenants._tenant_ids", lambda: [acme.tenant.id])
    send_old_calls(acme, 3 * DAY)
    set_retention(acme, payload_days=1)
    keep_to_retention(0)
    keep_to_retention(0)  # waiting tasks are not deferred twice
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM procrastinate_jobs WHERE args->>'tenant_id' = %s",
            [str(acme.tenant.id)],
        )
        assert cursor.fetchone() == (1,)
    expire(str(acme.tenant.id))
    assert payloads(acme) == [False]
