"""Killed executors: their started calls are stored, whichever process sends them."""

import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.faults.site import Site, wait_until

pytestmark = pytest.mark.slow


@pytest.mark.sampled("executor in trouble", 2)
def test_random_kills_under_load_lose_no_returned_call(site: Site, full: bool) -> None:
    kills = 200 if full else 10
    for _ in range(kills):
        executor = site.start("alone", "--threads", "2", "--burst", "100", "--pause", "0.02")
        site.wait_for_calls(executor, random.randint(1, 600))
        executor.kill()
        executor.communicate()
    site.drain()
    balance = site.balance()
    assert balance.calls_lost == 0
    assert balance.lost <= kills, "at most the line each was writing"


@pytest.mark.sampled("executor in trouble", 2)
def test_killed_workers_of_a_preforked_application_lose_no_call(site: Site, full: bool) -> None:
    master = site.start("preforked", "--processes", "4", "--burst", "100", "--pause", "0.02")
    kills = 50 if full else 6
    for _ in range(kills):
        kill_one_of_four(site, master)
    wait_until(lambda: len(living_workers(site, master)) == 4)
    master.send_signal(signal.SIGTERM)
    site.finish(master)
    site.drain()
    balance = site.balance()
    assert balance.calls_lost == 0
    assert balance.lost <= kills, "at most the line each was writing"


def kill_one_of_four(site: Site, master: subprocess.Popen[str]) -> None:
    wait_until(lambda: len(living_workers(site, master)) == 4)
    victim = random.choice(living_workers(site, master))
    age = random.randint(0, 10_000)  # bytes of its journal
    wait_until(lambda: victim.stat().st_size >= age)
    os.kill(int(victim.name), signal.SIGKILL)
    wait_until(lambda: victim not in living_workers(site, master))


def living_workers(site: Site, master: subprocess.Popen[str]) -> list[Path]:
    """The journals of the workers that run and have begun to work."""
    pids = [int(path.name) for path in site.journals.iterdir()]
    return [site.journals / str(pid) for pid in pids if pid != master.pid and is_running(pid)]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_many_processes_share_one_spool_folder(site: Site, full: bool) -> None:
    processes, calls = (100, 200) if full else (20, 50)
    site.finish(site.start("swarm", "--processes", str(processes), "--calls", str(calls)))
    site.drain()
    balance = site.balance()
    assert (balance.lost, balance.emitted) == (0, 2 * processes * calls)
