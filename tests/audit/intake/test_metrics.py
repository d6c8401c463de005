"""`/metrics`: the counters, their sums over processes, and who may read them."""

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client, override_settings

from audit.deliveries.outbox import enqueue
from audit.intake.metrics import (
    LAGS_S,
    Counters,
    counters,
    totals,
)
from audit.models import AlertDelivery, ChannelKind
from audit.queries import all_tenants
from config import health
from config.health import METRICS_TYPE
from config.instance import BASE_DIR
from config.version import VERSION
from tenants.scope import tenant_scope
from tests.support.deliveries import deliveries, make_channel, make_message
from tests.support.event_requests import lines, post
from tests.support.factories import Cast, make_call, make_ingest_key

AGES = (-timedelta(hours=1), timedelta(minutes=2), timedelta(hours=2), timedelta(days=3))


def read(**headers: str) -> dict[str, float]:
    answer = Client().get("/metrics", headers=headers)
    assert answer.status_code == HTTPStatus.OK
    assert answer.headers["Content-Type"] == METRICS_TYPE
    metrics = answer.content.decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in metrics if line[0] != "#")
    }


def test_pages_and_api_are_counted_by_status_and_time(acme: Cast) -> None:
    before = read()
    paths = ["/login", "/nowhere", "/api/v1/calls", "/static/nothing.css", "/healthz"]
    statuses = [Client().get(path).status_code for path in paths]
    assert statuses == [200, 404, 401, 404, 200]
    post(make_ingest_key(acme.tenant), lines(make_call()))
    grown = {name: value - before[name] for name, value in read().items()}
    counted = {
        name: value
        for name, value in grown.items()
        if value and re.match("tooltrail_(page|api)", name)
    }
    seconds = {name: counted.pop(name) for name in list(counted) if "seconds" in name}
    assert counted == {
        'tooltrail_page_requests_total{status="2xx"}': 1,
        'tooltrail_page_requests_total{status="4xx"}': 1,
        'tooltrail_api_requests_total{status="4xx"}': 1,
    }
    assert seconds["tooltrail_page_request_seconds_count"] == 2
    assert seconds['tooltrail_api_request_seconds_bucket{le="+Inf"}'] == 1
    assert 0 < seconds["tooltrail_api_request_seconds_sum"] < 60


@pytest.mark.slow
def test_requests_events_and_stages_are_counted(acme: Cast) -> None:
    key = make_ingest_key(acme.tenant)
    before = read()
    body = lines(make_call())
    assert post(key, body + b"{}\n").status_code == HTTPStatus.OK
    assert post(key, body).status_code == HTTPStatus.OK
    assert post(key, b"\n").status_code == HTTPStatus.BAD_REQUEST
    grown = {name: value - before[name] for name, value in read().items()}
    assert grown['tooltrail_requests_total{status="200"}'] == 2
    assert grown['tooltrail_requests_total{status="400"}'] == 1
    assert grown['tooltrail_events_total{outcome="accepted"}'] == 2
    assert grown['tooltrail_events_total{outcome="duplicates"}'] == 2
    assert grown['tooltrail_events_total{outcome="rejected"}'] == 1
    assert grown["tooltrail_inflated_bytes_total"] == 2 * len(body) + 3
    assert grown['tooltrail_request_seconds_bucket{le="+Inf"}'] == 2
    assert grown["tooltrail_request_seconds_count"] == 2
    assert grown['tooltrail_stage_seconds_count{stage="store"}'] == 2
    assert grown["tooltrail_request_seconds_sum"] >= sum(
        grown[f'tooltrail_stage_seconds_sum{{stage="{stage}"}}'] for stage in ("wait", "store")
    )
    assert grown['tooltrail_request_seconds_bucket{le="0.1"}'] <= 2


def test_event_lag_is_measured_from_the_end_of_a_call(acme: Cast) -> None:
    key = make_ingest_key(acme.tenant)
    before = read()
    now = datetime.now(UTC)
    calls = [make_call(started_at=now - age, duration_ms=0) for age in AGES]
    assert post(key, lines(event for call in calls for event in call)).status_code == 200
    grown = {name: value - before[name] for name, value in read().items()}
    bucket = 'tooltrail_event_lag_seconds_bucket{{le="{}"}}'
    assert [grown[bucket.format(bound)] for bound in (*LAGS_S, "+Inf")] == (
        [1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4]
    )
    assert grown["tooltrail_event_lag_seconds_count"] == 4
    assert grown["tooltrail_event_lag_seconds_sum"] >= sum(
        age.total_seconds() for age in AGES if age > timedelta()
    )
    assert grown["tooltrail_events_ahead_total"] == 1


def read_at_once(monkeypatch: pytest.MonkeyPatch, *casts: Cast) -> None:
    """Let each read of the metrics sum up these tenants only: other tests have thousands."""
    monkeypatch.setattr(all_tenants, "_tenant_ids", lambda: [cast.tenant.id for cast in casts])
    monkeypatch.setattr(health, "_KNOWN_S", 0.0)
    monkeypatch.setattr(health, "_KNOWN_TIMES", 0)
    monkeypatch.setattr(health, "_ALL_TENANTS", health._Known(health._all_tenants))


@pytest.mark.slow
def test_waiting_events_of_all_inboxes_are_counted(
    acme: Cast, globex: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_at_once(monkeypatch, acme, globex)
    before = read()["tooltrail_inbox_open"]
    for cast, count in ((acme, 1), (globex, 2)):
        post(make_ingest_key(cast.tenant), lines(make_call(is_open=True)) + b"{}\n" * count)
    assert read()["tooltrail_inbox_open"] - before == 3


@pytest.mark.slow
def test_messages_of_alerts_that_wait_and_that_were_given_up_are_counted(
    acme: Cast, globex: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_at_once(monkeypatch, acme, globex)
    before = read()
    for cast in (acme, globex):
        channel, _ = make_channel(cast, ChannelKind.WEBHOOK, url="https://alerts.example/")
        with tenant_scope(cast.tenant.id):
            for _ in range(3):
                enqueue(cast.tenant.id, make_message(), [channel.id])
    first, second = deliveries(acme)[:2]
    now = datetime.now(UTC)
    with tenant_scope(acme.tenant.id):
        rows = AlertDelivery.objects.for_tenant(acme.tenant.id)
        rows.filter(id=first.id).update(state="failed", finished_at=now)
        rows.filter(id=second.id).update(created_at=now - timedelta(days=1000))
    grown = {name: value - before[name] for name, value in read().items()}
    assert grown["tooltrail_deliveries_waiting"] == 5
    assert grown["tooltrail_deliveries_dead"] == 1
    assert read()["tooltrail_deliveries_waiting_seconds"] >= 1000 * 86_400
    with tenant_scope(acme.tenant.id):
        rows.filter(id=first.id).update(finished_at=now - timedelta(hours=25))
        rows.filter(id=second.id).update(created_at=now)
    assert read()["tooltrail_deliveries_dead"] == before["tooltrail_deliveries_dead"]


def test_output_is_valid_prometheus_format(acme: Cast) -> None:
    """Each family is declared once, counters end in _total, times are in seconds."""
    post(make_ingest_key(acme.tenant), lines(make_call()))
    metrics = Client().get("/metrics").content.decode()
    assert metrics.endswith("\n")
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", metrics, re.M))
    assert len(kinds) == metrics.count("# TYPE ") == metrics.count("# HELP ")
    for line in metrics.splitlines():
        if line[0] == "#":
            continue
        sample = re.fullmatch(r'(tooltrail_\w+)(\{\w+="[^"]*"\})? (\d\S*)', line)
        assert sample is not None, line
        family = re.sub(r"_(bucket|sum|count)$", "", sample[1])
        assert sample[1] in kinds or kinds[family] in ("histogram", "summary"), line
    for name, kind in kinds.items():
        assert name.endswith("_total") == (kind == "counter")
        assert not name.endswith("_ms")
        if kind == "histogram":
            values = [
                float(each) for each in re.findall(rf"^{name}_bucket.* (\S+)$", metrics, re.M)
            ]
            (count,) = re.findall(rf"^{name}_count (\S+)$", metrics, re.M)
            assert values == sorted(values)
            assert values[-1] == float(count)


@pytest.mark.slow
def test_gauges_report_partitions_and_due_jobs() -> None:
    metrics = read()
    assert metrics["tooltrail_database_up"] == 1
    assert metrics[f'tooltrail_build_info{{version="{VERSION}"}}'] == 1
    assert metrics["tooltrail_partition_days_ahead"] == 14
    assert metrics["tooltrail_jobs_due"] >= 0
    assert metrics["tooltrail_database_connections"] >= 1
    assert metrics["tooltrail_database_connections_busy"] >= 1  # the one that asks
    assert metrics["tooltrail_processes"] >= 1
    assert metrics["tooltrail_processes_memory_bytes"] > 10_000_000


@pytest.mark.slow
def test_processes_heard_lately_are_counted_by_kind() -> None:
    before = read()
    with connection.cursor() as cursor:
        for kind, seconds in (("worker", 1), ("worker", 2), ("web", 3), ("gRPC", 4), ("web", 60)):
            cursor.execute(
                "INSERT INTO server_process"
                " (id, host, pid, kind, version, known_migrations, heard_at)"
                " VALUES (gen_random_uuid(), 'far', 1, %s, '0', '{}', now() - %s * interval '1 s')",
                [kind, seconds],
            )
    after = read()
    try:
        heard = {name: after[name] - before[name] for name in after if name.endswith("_heard")}
        assert heard == {"tooltrail_workers_heard": 2, "tooltrail_servers_heard": 2}
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM server_process WHERE host = 'far'")


def test_counters_of_all_processes_are_summed_including_dead_ones(tmp_path: Path) -> None:
    line = 'tooltrail_requests_total{status="200"}'
    Counters(tmp_path / "1").add({line: 2})
    code = f"""
from pathlib import Path
from audit.intake.metrics import Counters
Counters(Path({str(tmp_path / "2")!r})).add({{{line!r}: 3}})
import os; os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], cwd=BASE_DIR, check=False)
    (tmp_path / "3").write_bytes(b"half")
    assert sum(totals(tmp_path)) == 5
    Counters(tmp_path / "1").add(
        {line: 1}
    )  # a process id that is used again continues its counters
    assert totals(tmp_path)[0] == 6


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full here")
def test_full_disk_does_not_raise() -> None:
    Counters(Path("/dev/full")).add({'tooltrail_requests_total{status="200"}': 1})


@pytest.mark.parametrize("header", ["x_forwarded_for", "forwarded", "via"])
def test_proxied_requests_are_not_local(header: str) -> None:
    answer = Client().get("/metrics", headers={header.replace("_", "-"): "127.0.0.1"})
    assert answer.status_code == HTTPStatus.FORBIDDEN


def test_remote_requests_need_the_token() -> None:
    assert Client().get("/metrics", REMOTE_ADDR="10.0.0.7").status_code == HTTPStatus.FORBIDDEN
    assert Client().get("/metrics", REMOTE_ADDR="").status_code == HTTPStatus.FORBIDDEN
    with override_settings(METRICS_TOKEN="s3cret"):
        assert Client().get("/metrics").status_code == HTTPStatus.FORBIDDEN
        wrong = {"authorization": "Bearer é"}
        assert Client().get("/metrics", headers=wrong).status_code == HTTPStatus.FORBIDDEN
        right = {"authorization": "Bearer s3cret"}
        there = Client().get("/metrics", headers=right, REMOTE_ADDR="10.0.0.7")
        assert there.status_code == HTTPStatus.OK


def test_unknown_counter_name_is_rejected() -> None:
    with pytest.raises(KeyError):
        counters().add({"tooltrail_unheard_of": 1})
