"""Hosts of two versions on one database: the schema is changed in two steps, senders never stop."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import pytest

from config.postgresql.processes import BEAT_S, HEARD_S
from config.process.supervise import worker_command
from tests.support.citus import CITUS, citus_nodes
from tests.support.faults.load import Load
from tests.support.installation import until
from tests.support.installation_requests import status_code
from tests.support.many_hosts import Host, ManyHosts, many_hosts
from tests.support.newer_version import CONTRACT, EXPAND, VERSION, newer_version

pytestmark = pytest.mark.slow
MORE = 10  # batches of each sender, before the next step


@pytest.mark.sampled("hosts of two versions", 0)  # three minutes
def test_senders_notice_nothing_of_a_change_in_two_steps(tmp_path: Path) -> None:
    with many_hosts() as site:
        upgrade(site, newer_version(tmp_path))


@pytest.mark.sampled("cluster", 0)  # three minutes
def test_the_same_on_a_cluster(tmp_path: Path) -> None:
    if not (CITUS / "cluster.py").exists():
        pytest.skip(f"NOTHING IS TRIED ON A CLUSTER: {CITUS}/cluster.py is missing")
    with citus_nodes() as nodes, many_hosts(nodes) as site:
        upgrade(site, newer_version(tmp_path))


def upgrade(site: ManyHosts, code: Path) -> None:
    """Replace two hosts by one of a newer version, while senders go on."""
    older, new = [site.add("one"), site.add("two")], site.add("new", code=code)
    key = site.tenant("acme")["api_key"]
    urls = [host.web() for host in older]
    older[0].worker()
    with sending([Load(url, key) for url in urls]) as loads:
        # The first step is applied, and everybody serves.
        completed = new.completed("migrate", "--database", "owner")
        assert completed.returncode == 0, completed.stderr
        assert applied(site) == {EXPAND}
        waits = [line for line in completed.stderr.splitlines() if CONTRACT in line]
        assert len(waits) == 1
        assert waits[0].startswith(f"audit.{CONTRACT} waits until older processes have ended: web")
        assert waits[0].count("web ") == 2
        assert waits[0].count("worker ") == 1
        asked = new.completed("migrate", "audit", CONTRACT, "--database", "owner")
        assert asked.returncode == 1
        assert "waits until older processes have ended" in asked.stderr
        url = new.web()
        for load in loads:
            load.wait_for(MORE)
        assert all(status_code(f"{each}/readyz") == HTTPStatus.OK for each in (*urls, url))

        # One host after the other is taken out of service. The second step still waits.
        loads[0].url = url
        stop(older[0])
        new.start(worker_command())
        time.sleep(HEARD_S / 2)
        assert applied(site) == {EXPAND}
        loads[1].url = url
        stop(older[1])
        stopped_at = time.monotonic()
        until(lambda: applied(site) == {EXPAND, CONTRACT})
        assert time.monotonic() - stopped_at > HEARD_S - 2 * BEAT_S, "it was heard until then"
        for load in loads:
            load.wait_for(MORE)

    assert {status for load in loads for status in load.statuses} <= {200, 503}
    assert sum(load.broken for load in loads) == 0
    acknowledged = set[str]().union(*(load.acknowledged for load in loads))
    with site.superuser() as superuser:
        batches = superuser.execute(
            "SELECT batch_id, source FROM batch WHERE NOT is_own"
        ).fetchall()
        known = superuser.execute("SELECT DISTINCT version FROM server_process").fetchall()
    assert {str(batch_id) for batch_id, _ in batches} == acknowledged
    assert {source for _, source in batches} == {"older", "senders"}
    assert sum(version.startswith(VERSION) for (version,) in known) == 1
    new.manage("reindex", "--check")
    refused = older[0].completed("reindex", "--check")
    assert f"does not know: audit.{EXPAND}" in refused.stderr or CONTRACT in refused.stderr


@contextmanager
def sending(loads: list[Load]) -> Iterator[list[Load]]:
    """Each sends in a thread of its own until the block ends."""
    threads = [threading.Thread(target=load.run) for load in loads]
    for thread in threads:
        thread.start()
    try:
        for load in loads:
            load.wait_for(MORE)
        yield loads
    finally:
        for load in loads:
            load.stop.set()
        for thread in threads:
            thread.join()


def stop(host: Host) -> None:
    """End a host's processes, once the last request to it was answered."""
    time.sleep(2)
    for process in host.processes:
        process.send_signal(signal.SIGTERM)
    for process in host.processes:
        process.wait()


def applied(site: ManyHosts) -> set[str]:
    """Which of the later version's migrations are applied."""
    with site.superuser() as superuser:
        rows = superuser.execute(
            "SELECT name FROM django_migrations WHERE name = ANY(%s)", [[EXPAND, CONTRACT]]
        ).fetchall()
    return {name for (name,) in rows}
