"""`manage.py partitions plan|apply`: missing partitions are printed, created, and then used."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from io import StringIO

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.utils import timezone

from audit.index import partitions
from audit.index.partitions import (
    DAYS_AHEAD,
    DAYS_BACK,
    PARTITIONED_TABLES,
    Partition,
)
from audit.index.window import INDEX_DAYS
from audit.models import Invocation
from audit.tasks import installation
from tenants.scope import tenant_scope
from tests.support.event_requests import lines, post
from tests.support.factories import Cast, make_call, make_ingest_key


def run(*arguments: str) -> list[str]:
    out = StringIO()
    call_command("partitions", *arguments, stdout=out)
    return out.getvalue().splitlines()


@pytest.fixture
def tidied() -> Iterator[None]:
    """Restores the partitions after the test."""
    before = partitions.existing()
    yield
    with connections["owner"].cursor() as cursor:
        for partition in partitions.existing() - before:
            cursor.execute(f"DROP TABLE {partition.name}")
    partitions.apply(before - partitions.existing())
    INDEX_DAYS.refresh()


def drop_day(day: int) -> list[str]:
    """Drop the partitions of the day that many days after today; return their names."""
    dropped = [
        Partition(timezone.now().date() + timedelta(days=day), table).name
        for table in PARTITIONED_TABLES
    ]
    with connections["owner"].cursor() as cursor:
        for name in dropped:
            cursor.execute(f"DROP TABLE {name}")
    return dropped


def drop_imported() -> None:
    """Drop the partitions before those that are always there, which another test may have made."""
    first = timezone.now().date() - timedelta(days=DAYS_BACK)
    with connections["owner"].cursor() as cursor:
        for partition in partitions.existing():
            if partition.day < first:
                cursor.execute(f"DROP TABLE {partition.name}")
    INDEX_DAYS.refresh()


def in_thread[T](function: Callable[[], T]) -> T:
    try:
        return function()
    finally:
        connections.close_all()


@pytest.mark.slow
@pytest.mark.usefixtures("tidied")
def test_intake_does_not_wait_for_a_backup_that_blocks_partitions(
    acme: Cast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(partitions, "LOCK_TIMEOUT", "1s")
    dropped = drop_day(DAYS_AHEAD)
    key = make_ingest_key(acme.tenant)
    with ThreadPoolExecutor(2) as pool, psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as backup:
        backup.execute(
            "LOCK TABLE trace IN ACCESS SHARE MODE"
        )  # like pg_dump, which holds its lock until the end
        applied = pool.submit(in_thread, lambda: run("apply"))
        waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'trace'::regclass AND NOT granted"
        while not applied.done() and backup.execute(waiting).fetchone() == (0,):
            time.sleep(0.01)
        assert not applied.done()
        # The request queues behind `apply`, so it waits no longer than `apply` may wait.
        sent = pool.submit(in_thread, lambda: post(key, lines(make_call())))
        assert sent.result(timeout=30).status_code == HTTPStatus.OK
        with pytest.raises(CommandError, match="trace is in use"):
            applied.result()
        monkeypatch.setattr(partitions, "LOCK_TIMEOUT", "100ms")
        installation.keep_partitions_ahead(0)
        assert "trace is in use" in caplog.text
        assert post(key, lines(make_call())).status_code == HTTPStatus.OK
    assert run("apply") == [*dropped[2:], f"{len(dropped) - 2} created"]


@pytest.mark.usefixtures("tidied")
def test_missing_partitions_are_planned_and_created_once() -> None:
    assert run("plan") == ["0 missing"]
    dropped = drop_day(DAYS_AHEAD)
    assert run("plan") == [*dropped, f"{len(PARTITIONED_TABLES)} missing"]
    assert run("plan") == [*dropped, f"{len(PARTITIONED_TABLES)} missing"]
    assert run("apply") == [*dropped, f"{len(PARTITIONED_TABLES)} created"]
    assert run("apply") == ["0 created"]


@pytest.mark.usefixtures("tidied")
def test_worker_creates_missing_partitions() -> None:
    drop_day(DAYS_AHEAD)
    installation.keep_partitions_ahead(0)
    assert run("plan") == ["0 missing"]
    assert partitions.days_ahead(timezone.now().date()) == DAYS_AHEAD


@pytest.mark.slow
@pytest.mark.usefixtures("tidied")
def test_older_calls_are_rejected_until_an_import_creates_their_partitions(acme: Cast) -> None:
    drop_imported()
    key = make_ingest_key(acme.tenant)
    started_at = datetime.now(UTC) - timedelta(days=DAYS_BACK + 2)
    call = make_call(started_at=started_at)
    refused = post(key, lines(call)).json()
    assert [each["code"] for each in refused["rejected"]] == ["out_of_range"] * 2
    since = (started_at - timedelta(days=1)).date()
    planned = run("plan", "--import", str(since))
    assert planned[-1] == f"{3 * len(PARTITIONED_TABLES)} missing"
    assert planned[0] == f"invocation_{since:%Y%m%d}"
    assert run("apply", "--import", str(since))[-1] == f"{3 * len(PARTITIONED_TABLES)} created"
    INDEX_DAYS.refresh()  # each process checks again every ten seconds
    assert post(key, lines(call)).json()["accepted"] == 2
    with tenant_scope(acme.tenant.id):
        stored = Invocation.objects.for_tenant(acme.tenant.id).get()
    assert stored.started_at == started_at
    assert stored.started_on == started_at.date()


def test_import_range_is_limited_to_400_days() -> None:
    with pytest.raises(CommandError, match="at most 400 days"):
        run("plan", "--import", "2020-01-01")
