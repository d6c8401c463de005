"""The server killed under load: acknowledged events are stored once, and it restarts."""

import contextlib
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from pathlib import Path

import psutil
import psycopg
import pytest
from tooltrail import Trail

from config.postgresql.database import with_database
from config.postgresql.roles import DATABASE
from tests.support.faults.load import TRANSIENT, Load, assert_kept
from tests.support.installation import (
    Installation,
    announcement,
    end,
    prepared_installation,
    until,
)
from tests.support.otlp.environment import frameworks_python, run_framework

pytestmark = pytest.mark.slow


@pytest.mark.sampled("killed server", 1)
def test_kills_of_web_processes_and_postgresql_lose_and_duplicate_nothing(full: bool) -> None:
    faults = ["web"] * (100 if full else 4) + ["database"] * (50 if full else 2)
    random.shuffle(faults)
    with prepared_installation() as installation:
        process = installation.up("--json", "--dev-tenant", "acme")
        facts = announcement(process)
        server = web_server(process.pid)
        load = Load(facts["url"], facts["api_key"])
        senders = [threading.Thread(target=load.run) for _ in range(4)]
        for sender in senders:
            sender.start()
        try:
            for fault in faults:
                load.wait_for(random.randint(4, 12))
                if fault == "web":
                    until(partial(kill_a_web_process, server))
                else:
                    stop_at_once(installation)
            load.wait_for(12)
        finally:
            load.stop.set()
            for sender in senders:
                sender.join()
        assert load.statuses <= {HTTPStatus.OK, *TRANSIENT}
        assert_kept(installation, load)
        assert web_server(process.pid) == server
        assert end(process) == 0


@pytest.mark.sampled("killed server", 1)
def test_sdk_and_otlp_events_are_stored_once_while_web_processes_are_killed(
    full: bool, tmp_path: Path
) -> None:
    frameworks_python()  # may be installed now: then all kills would be over before the first span
    with prepared_installation() as installation, ThreadPoolExecutor() as threads:
        process = installation.up("--json", "--dev-tenant", "acme")
        facts = announcement(process)
        server = web_server(process.pid)
        for_s = 60 if full else 8
        key = f"x-api-key={facts['api_key']}"
        by_otlp = threads.submit(run_framework, f"steady_otel.py {for_s}", facts["url"], key)
        trail = Trail(facts["url"], facts["api_key"], spool_dir=tmp_path)
        by_sdk = trail.tool(name="by_sdk")(lambda n: n)
        deadline = time.monotonic() + for_s
        sent = kills = 0
        while not by_otlp.done():
            sent += by_sdk(n=1)
            if sent % 30 == 0 and time.monotonic() < deadline:
                kills += kill_a_web_process(server)
            time.sleep(0.01)
        assert trail.close(timeout=60)
        url = with_database(installation.postgres.admin_url, DATABASE)
        with psycopg.connect(url) as connection:
            calls = "SELECT tool_name, count(*) FROM invocation WHERE state = 'ok' GROUP BY 1"
            stored: dict[str, int] = dict(connection.execute(calls).fetchall())
        assert stored == {"by_sdk": sent, "by_otlp": int(by_otlp.result())}
        assert kills > for_s
        # Each was replaced by the server itself, which was never restarted.
        assert web_server(process.pid) == server
        assert end(process) == 0


def kill_a_web_process(server: psutil.Process) -> bool:
    """Kill -9 one of those that serve or start to; says whether there was one."""
    for child in random.sample(children := server.children(), len(children)):
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
            return True
    return False


def web_server(supervisor: int) -> psutil.Process:
    """The parent of the web processes."""
    children = psutil.Process(supervisor).children()
    (server,) = [each for each in children if "config.process.web_server" in each.cmdline()]
    return server


def stop_at_once(installation: Installation) -> None:
    """What `pg_ctl stop -m immediate` does: as if the power had gone."""
    pid = until(installation.postgres.running_pid)
    assert pid is not None
    os.kill(pid, signal.SIGQUIT)
    until(lambda: installation.postgres.running_pid() != pid)
