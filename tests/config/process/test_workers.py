"""Workers by kind: which queues there are, and that signing waits for no other task."""

import os
import subprocess
import sys
import time
import uuid

import pytest
from procrastinate.contrib.django import app

from config.instance import BASE_DIR, QUEUES
from tests.support.factories import make_call
from tests.support.installation import clean_environment, until
from tests.support.installation_requests import post_events
from tests.support.management_commands import manage
from tests.support.many_hosts import ManyHosts, kill, many_hosts

REPLAY = (
    "from audit.tasks.requested import replay_calls;"
    " replay_calls.defer(tenant_id={!r}, replay_id={!r})"
)
SIGNED_S = 12.0


def test_every_task_is_in_a_known_queue() -> None:
    app.perform_import_paths()  # type: ignore[no-untyped-call]  # it has no types
    assert {task.queue for task in app.tasks.values()} - {"builtin"} == QUEUES


def test_a_task_of_audit_keeps_its_name_wherever_it_lies() -> None:
    """Workers of two versions run each other's jobs, and code defers some tasks by name."""
    app.perform_import_paths()  # type: ignore[no-untyped-call]  # it has no types
    ours = [t for t in app.tasks.values() if t.func.__module__.startswith("audit.tasks.")]
    assert len(ours) > 30
    assert {t.name for t in ours} == {f"audit.tasks.{t.func.__name__}" for t in ours}


@pytest.mark.parametrize(
    ("value", "workers"),
    [
        ("", [["default", "deliveries", "ledger", "reports", "streams"]]),
        ("ledger default,reports", [["ledger"], ["default", "reports"]]),
    ],
)
def test_workers_are_those_of_the_variable(value: str, workers: list[list[str]]) -> None:
    code = "from config.instance import WORKERS; print(WORKERS)"
    out = subprocess.check_output(
        [sys.executable, "-c", code],
        cwd=BASE_DIR,
        env=clean_environment(TOOLTRAIL_WORKERS=value),
        text=True,
    )
    assert out.strip() == str(workers)


@pytest.mark.slow
def test_queue_that_does_not_exist_is_an_error() -> None:
    completed = manage("check", TOOLTRAIL_WORKERS="ledger,replays")
    assert completed.returncode != 0
    assert "TOOLTRAIL_WORKERS: there is no queue 'replays'" in completed.stderr
    database = {name: value for name, value in os.environ.items() if name.startswith("DATABASE_")}
    completed = manage("procrastinate", "worker", "--queues", "ledgers", **database)
    assert completed.returncode != 0
    assert "there is no queue 'ledgers'" in completed.stderr


@pytest.mark.slow
@pytest.mark.sampled("hosts that come and go", 1)
def test_signing_does_not_wait_for_a_replay() -> None:
    """A replay occupies the worker for minutes: it waits for its table."""
    with many_hosts() as site:
        host = site.add("one")
        facts = site.tenant("acme") | {"url": host.web()}
        with site.superuser() as other:
            other.execute("LOCK TABLE tool_replay")
            replay = REPLAY.format(facts["tenant_id"], str(uuid.uuid4()))
            host.manage("shell", "--command", replay)
            everything = host.worker()
            until(lambda: _waits_for_lock(site))
            assert post_events(facts, make_call()) == 200
            time.sleep(SIGNED_S)
            assert _signed(site) == 0, "one worker signs nothing meanwhile"
            kill(everything)
            host.manage("shell", "--command", replay)
            host.worker("--queues", "default,reports")
            until(lambda: _waits_for_lock(site))
            host.worker("--queues", "ledger")
            until(lambda: _signed(site) > 0)


def _signed(site: ManyHosts) -> int:
    with site.superuser() as superuser:
        row = superuser.execute("SELECT count(*) FROM ledger_checkpoint").fetchone()
    assert row is not None
    return int(row[0])


def _waits_for_lock(site: ManyHosts) -> bool:
    waiting = "SELECT FROM pg_locks WHERE relation = 'tool_replay'::regclass AND NOT granted"
    with site.superuser() as superuser:
        return superuser.execute(waiting).fetchone() is not None
