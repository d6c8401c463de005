"""Old calls, retention periods, and the rows that remain after retention has run."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db import connections
from django.utils import timezone

from audit.index import partitions
from audit.index.partitions import PARTITIONED_TABLES, Partition
from audit.index.reindex import reindex
from audit.index.window import INDEX_DAYS
from audit.retention.retention import run_slice
from tenants.models import Action, TenantSetting
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, make_decision, send_events

DAY = timedelta(days=1)


def set_retention(cast: Cast, **days: int | None) -> TenantSetting:
    """Set the tenant's retention periods, in days."""
    with tenant_scope(cast.tenant.id):
        setting, _ = TenantSetting.objects.update_or_create(tenant=cast.tenant, defaults=days)
    return setting


def tenant_setting(cast: Cast) -> TenantSetting:
    """The tenant's settings as they are stored now."""
    with tenant_scope(cast.tenant.id):
        return TenantSetting.objects.get(tenant=cast.tenant)


def send_old_calls(cast: Cast, age: timedelta, calls: int = 1) -> list[dict[str, Any]]:
    """Send calls that started and arrived `age` ago; their events."""
    events = [
        event
        for _ in range(calls)
        for event in make_call(started_at=timezone.now() - age - timedelta(minutes=1))
    ]
    answer = send_events(cast.tenant, events)
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "UPDATE batch SET received_at = %s WHERE tenant_id = %s AND batch_id = %s",
            [timezone.now() - age, cast.tenant.id, answer["batch_id"]],
        )
    return events


def apply_retention(cast: Cast, slices: int = 1_000) -> None:
    """Run retention for the tenant until nothing is left to do."""
    while run_slice(cast.tenant.id, timezone.now()):
        slices -= 1
        assert slices


def recorded_actions(cast: Cast, verb: str) -> list[dict[str, Any]]:
    """The details of the tenant's actions of one verb, the oldest first."""
    with tenant_scope(cast.tenant.id):
        actions = Action.objects.filter(tenant=cast.tenant, verb=verb).order_by("at")
        return [{"by": each.user_name, **each.details} for each in actions]


def index_agrees_with_log(cast: Cast) -> bool:
    """Whether the index equals what the log yields when it is read again."""
    report = reindex(cast.tenant.id, repair=False, progress=lambda done, size: None)
    assert not report.log_faults
    assert not report.comparison.examples
    return report.is_clean


def rows_until(cast: Cast, day: date) -> dict[str, int]:
    """The number of the tenant's rows up to this day, by table."""
    counts = {}
    with tenant_scope(cast.tenant.id, using="owner"), connections["owner"].cursor() as cursor:
        for table in PARTITIONED_TABLES:
            cursor.execute(
                f"SELECT count(*) FROM {table} WHERE tenant_id = %s AND started_on <= %s",
                [cast.tenant.id, day],
            )
            counts[table] = cursor.fetchone()[0]
    return counts


@contextmanager
def partitions_long_ago() -> Iterator[date]:
    """Make partitions for a day two months ago; they are dropped when the block ends."""
    day = timezone.now().date() - 60 * DAY
    created = [Partition(day, table) for table in PARTITIONED_TABLES]
    partitions.apply(created)
    INDEX_DAYS.refresh()
    yield day
    with connections["owner"].cursor() as cursor:
        for partition in created:
            cursor.execute(f"DROP TABLE IF EXISTS {partition.name}")
    INDEX_DAYS.refresh()


def send_violating_calls(cast: Cast, day: date) -> None:
    """Send three calls with a violation and three refused ones, at noon of that day."""
    violation = {"path": "$.a", "code": "WRONG_TYPE", "received": "string"}
    guard = {"strategy": "throw", "outcome": "failed", "violations": [violation]}
    at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    for _ in range(3):
        call = make_call(started_at=at, guard=guard)
        send_events(cast.tenant, [*call, make_decision(decided_at=at)])
