"""The state of all ledgers, as an operator's monitoring reads it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch
from uuid import UUID

import pytest
from django.db import OperationalError
from django.test import Client
from procrastinate.contrib.django import app

from audit.queries import all_tenants
from audit.queries.all_tenants import read_all_tenants
from audit.tasks.ledgers import keep_ledger, keep_ledgers
from tenants.actions import record_action
from tenants.scope import tenant_scope
from tests.support.factories import Cast
from tests.support.ledger_log import (
    append,
    as_owner,
    keep,
    leaves,
    own_folder,
    status_of,
)

NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The signer's folder of this test's worker."""
    yield own_folder(tmp_path, monkeypatch)


@pytest.mark.slow
def test_ledger_state_reports_refusals_and_unsigned_entries(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_tenants, "_tenant_ids", lambda: [acme.tenant.id])
    append(acme.tenant, leaves(3))
    keep(acme.tenant, NOW)
    before = read_all_tenants(NOW).refused_ledgers
    as_owner("UPDATE ledger_head SET size = 2 WHERE tenant_id = %s", [acme.tenant.id])
    keep(acme.tenant, NOW + timedelta(minutes=1))
    assert read_all_tenants(NOW).refused_ledgers == before + 1
    as_owner("UPDATE ledger_head SET size = 3 WHERE tenant_id = %s", [acme.tenant.id])
    keep(acme.tenant, NOW + timedelta(minutes=2))
    assert read_all_tenants(NOW).refused_ledgers == before
    append(acme.tenant, leaves(1))
    as_owner(
        "UPDATE batch SET received_at = now() - interval '10 years' WHERE tenant_id = %s",
        [acme.tenant.id],
    )
    assert read_all_tenants(NOW).unsigned_s > 300_000_000
    keep(acme.tenant, NOW + timedelta(minutes=3))


def test_lowered_log_is_refused_although_an_action_waits(
    acme: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The action would get an index that another one has."""
    monkeypatch.setattr(all_tenants, "_tenant_ids", lambda: [acme.tenant.id])
    lowered = "UPDATE ledger_head SET size = 0 WHERE tenant_id = %s"
    for minutes in (1, 2):
        with tenant_scope(acme.tenant.id):
            record_action(acme.tenant, acme.admin, "key.create", f"key {minutes}")
        if minutes == 2:
            as_owner(lowered, [acme.tenant.id])
        later = NOW + timedelta(minutes=minutes)
        with patch("audit.tasks.ledgers.timezone.now", return_value=later):
            keep_ledger(str(acme.tenant.id))
    assert read_all_tenants(NOW).refused_ledgers == 1


@pytest.mark.slow
def test_metrics_contain_the_ledger_state() -> None:
    metrics = Client().get("/metrics").content.decode()
    assert "\ntooltrail_ledger_refused " in metrics
    assert "\ntooltrail_ledger_unsigned_seconds " in metrics


def test_worker_task_signs_only_its_tenant(acme: Cast, globex: Cast) -> None:
    for cast in (acme, globex):
        append(cast.tenant, leaves(3))
    keep_ledger(str(acme.tenant.id))
    signed = [status_of(cast.tenant).signed_size for cast in (acme, globex)]
    assert signed == [4, None], "three leaves and the baseline"


def test_failure_for_one_tenant_does_not_stop_signing_for_others(
    acme: Cast, globex: Cast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept: list[UUID] = []

    def keep_one(tenant_id: UUID) -> None:
        if tenant_id == acme.tenant.id:
            raise ValueError("a defect of ours")
        kept.append(tenant_id)

    monkeypatch.setattr("audit.tasks.ledgers._keep_ledger", keep_one)
    keep_ledgers(0)
    assert globex.tenant.id in kept
    assert f"ledger of tenant {acme.tenant.id}: not signed" in caplog.text


def test_signing_stops_after_the_first_database_failure(
    acme: Cast, globex: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[UUID] = []

    def keep_one(tenant_id: UUID) -> None:
        tried.append(tenant_id)
        raise OperationalError("away")

    monkeypatch.setattr("audit.tasks.ledgers._keep_ledger", keep_one)
    with pytest.raises(OperationalError):
        keep_ledgers(0)
    assert len(tried) == 1


def test_signing_runs_every_ten_seconds() -> None:
    periodic = app.periodic_registry.periodic_tasks
    (crontab,) = [task.cron for task in periodic.values() if task.task.name == keep_ledgers.name]
    assert crontab == "* * * * * */10"
