"""Faulty hosts: full disks, clocks that jump, several tenants on one host."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.factories import Cast
from tests.support.faults.proxy import Fault, Proxy
from tests.support.faults.site import Site, site_of
from tests.support.server import LiveServer

pytestmark = pytest.mark.slow

TMPFS = 'mount -t tmpfs -o size=64m tmpfs "$0" && exec "$@"'


def small_disk(site: Site) -> tuple[str, ...]:
    """What to put before a command so that it finds its spool on a disk of 64 MiB.

    A mount namespace of its own: nothing of it is seen, or stays, outside. Skips the test
    where that is not allowed.
    """
    if shutil.which("unshare") is None:
        pytest.skip("no unshare(1) here, so no disk of 64 MiB can be made")
    site.spool_dir.mkdir()
    prefix = ("unshare", "--map-root-user", "--mount", "sh", "-c", TMPFS, str(site.spool_dir))
    probe = subprocess.run((*prefix, "true"), capture_output=True, text=True)
    if probe.returncode != 0:
        pytest.skip(f"this host lets us mount no tmpfs: {probe.stderr.strip()}")
    return prefix


@pytest.mark.sampled("executor in trouble", 2)
def test_full_disk_loses_nothing_while_the_server_is_reachable(site: Site, full: bool) -> None:
    calls = 2000 if full else 500
    executor = start_on_full_disk(site, calls, size=2000)
    stats = json.loads(site.finish(executor))
    assert stats["was_full"], "the disk was not full"
    assert stats["dropped"] == {}
    balance = site.balance()
    assert (balance.emitted, balance.lost) == (8 * calls, 0)


@pytest.mark.sampled("executor in trouble", 2)
def test_full_disk_without_a_server_loses_only_declared_events(
    far_site: Site, proxy: Proxy, full: bool
) -> None:
    proxy.go_away()
    calls = 5000 if full else 700
    executor = start_on_full_disk(far_site, calls, size=12_000)
    far_site.wait_for_calls(executor, 4 * calls)
    proxy.come_back()
    stats = json.loads(far_site.finish(executor))
    assert stats["dropped"]["no-space-left-on-device"] > 0, "the disk was not full"
    balance = far_site.balance()
    assert balance.emitted == 8 * calls == stats["emitted"]
    assert balance.lost == sum(stats["dropped"].values())


def start_on_full_disk(site: Site, calls: int, size: int) -> subprocess.Popen[str]:
    """Four times so many calls: before the disk is full, twice while it is, and after."""
    arguments = ("--calls", str(calls), "--threads", "4", "--size", str(size))
    return site.start("full-disk", *arguments, before=small_disk(site))


@pytest.mark.sampled("executor in trouble", 2)
def test_events_of_another_key_on_the_host_are_not_sent(
    site: Site, globex: Cast, live_server: LiveServer, tmp_path: Path
) -> None:
    with site_of(globex.tenant, live_server.url, tmp_path / "globex", site.spool_dir) as other:
        victim = other.start("alone")
        other.wait_for_calls(victim, 100)
        victim.kill()
        victim.communicate()
        left = sorted(path.name for path in site.spool_dir.glob("*/*/*.open"))
        neighbour = site.start("alone", "--calls", "500")
        site.finish(neighbour)
        site.drain()
        assert site.balance().lost == 0
        assert sorted(path.name for path in site.spool_dir.glob("*/*/*.open")) == left
        other.drain()
        assert other.balance().calls_lost == 0


@pytest.mark.sampled("executor in trouble", 2)
def test_jumping_clock_loses_no_events(far_site: Site, proxy: Proxy, full: bool) -> None:
    proxy.choose = lambda: random.choice([Fault.NONE, Fault.NONE, Fault.ANSWER_DROPPED])
    calls = 20_000 if full else 1500
    executor = far_site.start(
        "alone", "--jumping-clock", "0.1", "--calls", str(calls), "--burst", "50", "--pause", "0.02"
    )
    far_site.finish(executor)
    proxy.choose = lambda: Fault.NONE
    far_site.drain()
    balance = far_site.balance()
    assert balance.emitted == 2 * calls
    assert balance.lost == 0
    assert balance.inbox > 0, "calls of forty days ago cannot be placed"
