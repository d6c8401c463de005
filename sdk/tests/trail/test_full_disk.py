"""A full disk, then a killed process: each finished call is delivered or declared lost."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tooltrail import Trail
from tooltrail.spool.home import make_root
from tooltrail.spool.segments import SegmentSpool

from sdk.tests.support.ingest_key import KEY
from sdk.tests.support.ingest_server import Server
from sdk.tests.support.spools import abandon_spool, adopt_segments, spooled_event, spooled_events

EVENTS = 5000  # two for each call
HOST = """
import logging, os, resource, sys
from tooltrail import Trail
limit = int(sys.argv[1])
if limit:  # a disk that takes so many bytes a file
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
trail = Trail()
@trail.tool(version="1")
def search(n, filler):
    return {"n": n, "filler": filler[: n % 700]}
for n in range(2500):
    search(n, "x" * (n % 1500))
stats = trail.stats()
print(stats.emitted, stats.written, stats.in_memory, sum(stats.dropped.values()), flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system; the limit on a file's size covers this")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"this machine mounts no tmpfs: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def run_host(server: Server, spool_dir: Path, file_limit: int = 0) -> tuple[int, int, int, int]:
    """Run 2,500 calls and be killed: what its stats said just before."""
    process = subprocess.run(
        [sys.executable, "-c", HOST, str(file_limit)],
        env={
            **os.environ,
            "TOOLTRAIL_URL": server.url,
            "TOOLTRAIL_API_KEY": KEY,
            "TOOLTRAIL_SPOOL_DIR": str(spool_dir),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == -9, process.stderr
    emitted, written, in_memory, dropped = map(int, process.stdout.split())
    return emitted, written, in_memory, dropped


def of_the_dead(server: Server) -> tuple[list[int], list[int]]:
    """The numbers of the killed process that are stored, and those declared lost, sorted."""
    stored: dict[str, list[int]] = {}
    for each in server.events:
        if each["tool_name"] == "search":
            stored.setdefault(each["producer_id"], []).append(each["producer_seq"])
    declared = {
        (gap["producer_id"], number)
        for gap in server.gaps.values()
        for number in range(gap["from_seq"], gap["to_seq"] + 1)
    }
    [producer] = {producer for producer, _ in declared} | stored.keys()
    return sorted(stored.get(producer, [])), sorted(number for _, number in declared)


def check_every_call(server: Server, counts: tuple[int, int, int, int]) -> None:
    emitted, written, in_memory, dropped = counts
    assert emitted == EVENTS == written + in_memory + dropped
    stored, declared = of_the_dead(server)
    assert sorted(stored + declared) == list(range(EVENTS)), "each once, stored or declared"
    assert len(stored) == written, "what counts as written is in a file"
    assert in_memory > 0


@pytest.mark.sampled("executor on a full disk", 2)
@pytest.mark.slow
def test_events_lost_in_memory_on_a_full_disk_and_a_kill_are_declared(
    server: Server, make_trail: Callable[..., Trail], small_disk: Path
) -> None:
    server.plan = lambda request: (503, {}, {})
    counts = run_host(server, small_disk)
    server.plan = lambda request: None
    adopt_from(server, make_trail, small_disk)  # the disk is as full as it was
    check_every_call(server, counts)
    assert {gap["reason"] for gap in server.gaps.values()} == {"no-space-left-on-device"}
    assert not list(small_disk.glob("*/*/*")), "nothing is declared a second time"


@pytest.mark.sampled("executor on a full disk", 2)
@pytest.mark.slow
@pytest.mark.parametrize("limit", [8 * 1024, 300_000])
def test_events_lost_in_memory_under_a_file_size_limit_and_a_kill_are_declared(
    server: Server, make_trail: Callable[..., Trail], tmp_path: Path, limit: int
) -> None:
    server.plan = lambda request: (503, {}, {})
    counts = run_host(server, tmp_path, limit)
    server.plan = lambda request: None
    adopt_segments(server, make_trail)
    check_every_call(server, counts)


@pytest.mark.sampled("executor on a full disk", 2)
@pytest.mark.slow
def test_status_reports_events_a_killed_process_had_in_memory(
    server: Server, tmp_path: Path
) -> None:
    server.plan = lambda request: (503, {}, {})
    _, _, in_memory, _ = run_host(server, tmp_path, 8 * 1024)
    status = subprocess.run(
        [sys.executable, "-m", "tooltrail", "status", "--spool-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert status.returncode == 1
    assert f"{in_memory} events lost: in memory only when their process was killed" in status.stdout


def adopt_from(server: Server, make_trail: Callable[..., Trail], folder: Path) -> None:
    trail = Trail(server.url, KEY, spool_dir=folder)
    trail.tool(name="hello", version="1")(lambda: None)()
    server.wait(lambda: any(gap["reason"] for gap in server.gaps.values()))
    assert trail.flush(20)
    trail.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path, "http://tooltrail", KEY)


@pytest.fixture
def is_full(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether files take no more bytes, as its only member. Bytes they have can be changed."""
    write, write_bytes, full = os.write, Path.write_bytes, [False]

    def refuse(call: Any) -> Any:
        def checked(*args: Any) -> Any:
            if full[0]:
                raise OSError(28, "No space left on device")
            return call(*args)

        return checked

    monkeypatch.setattr(os, "write", refuse(write))
    monkeypatch.setattr(Path, "write_bytes", refuse(write_bytes))
    return full


def gaps_and_numbers(spool: SegmentSpool) -> tuple[list[tuple[str, int, int]], list[int]]:
    events = spooled_events(spool)
    gaps = [
        (each["producer_id"], each["from_seq"], each["to_seq"])
        for each in events
        if each["type"] == "gap"
    ]
    return gaps, sorted(each["producer_seq"] for each in events if each["type"] != "gap")


def test_events_without_disk_and_memory_are_declared_by_the_next_process(
    root: Path, is_full: list[bool]
) -> None:
    spool = SegmentSpool(root, 1_000_000, lambda: None, spill_bytes=300)
    for n in range(20):
        is_full[0] = n >= 5
        spool.append(spooled_event(n))
    counts = spool.snapshot()
    assert (counts["emitted"], counts["written"]) == (20, 5)
    abandon_spool(spool)
    is_full[0] = False
    heir = SegmentSpool(root, 1_000_000, lambda: None)
    heir.adopt()
    assert gaps_and_numbers(heir) == ([(spool.producer_id, 5, 19)], list(range(5)))
    assert heir.snapshot()["dropped"] == {"no-space-left-on-device": 15}
    heir.close()


def test_events_on_disk_between_lost_events_are_not_declared(
    root: Path, is_full: list[bool]
) -> None:
    spool = SegmentSpool(root, 1_000_000, lambda: None, spill_bytes=10_000)
    for n in range(20):
        is_full[0] = n % 4 == 3
        spool.append(spooled_event(n))
    abandon_spool(spool)
    is_full[0] = False
    heir = SegmentSpool(root, 1_000_000, lambda: None)
    heir.adopt()
    gaps, stored = gaps_and_numbers(heir)
    assert gaps == [(spool.producer_id, n, n) for n in (3, 7, 11, 15, 19)]
    assert stored == [n for n in range(20) if n % 4 != 3]
    heir.close()


def test_events_written_later_or_acknowledged_are_not_declared(
    root: Path, is_full: list[bool]
) -> None:
    spool = SegmentSpool(root, 1_000_000, lambda: None, spill_bytes=10_000)
    is_full[0] = True
    for n in range(5):
        spool.append(spooled_event(n))
    spool.seal()
    spool.discard(spool.batches()[0])  # sent from memory
    for n in range(5, 10):
        spool.append(spooled_event(n))
    assert spool.snapshot()["in_memory"] == 5
    is_full[0] = False
    spool.adopt()  # the shipper's housekeeping
    counts = spool.snapshot()
    assert (counts["written"], counts["in_memory"]) == (5, 0)
    abandon_spool(spool)
    heir = SegmentSpool(root, 1_000_000, lambda: None)
    heir.adopt()
    assert gaps_and_numbers(heir) == ([], list(range(5, 10)))
    heir.close()


def test_next_process_on_a_full_disk_sends_first_and_declares_later(
    root: Path, is_full: list[bool]
) -> None:
    spool = SegmentSpool(root, 1_000_000, lambda: None, spill_bytes=10_000)
    for n in range(10):
        is_full[0] = n >= 5
        spool.append(spooled_event(n))
    abandon_spool(spool)
    heir = SegmentSpool(root, 1_000_000, lambda: None)
    heir.adopt()
    heir.adopt()
    assert [batch.count for batch in heir.batches()] == [5]
    assert heir.snapshot()["dropped"] == {}
    abandon_spool(heir)  # killed in turn: the files have moved, the first note has not
    is_full[0] = False
    last = SegmentSpool(root, 1_000_000, lambda: None)
    last.adopt()
    assert gaps_and_numbers(last) == ([(spool.producer_id, 5, 9)], list(range(5)))
    last.close()


def test_unwritten_events_at_process_exit_are_declared_by_the_next_process(
    root: Path, is_full: list[bool]
) -> None:
    spool = SegmentSpool(root, 1_000_000, lambda: None, spill_bytes=10_000)
    for n in range(10):
        is_full[0] = n >= 5
        spool.append(spooled_event(n))
    spool.close()
    assert spool.snapshot()["dropped"] == {"no-file": 5}
    is_full[0] = False
    heir = SegmentSpool(root, 1_000_000, lambda: None)
    heir.adopt()
    gaps, stored = gaps_and_numbers(heir)
    assert stored == list(range(5))
    assert gaps == [(spool.producer_id, 5, 9)]
    heir.close()


def test_loss_of_another_producer_survives_a_kill_on_a_full_disk(
    root: Path, is_full: list[bool]
) -> None:
    first = SegmentSpool(root, 1_000_000, lambda: None)
    for n in range(3):
        first.append(spooled_event(n))
    abandon_spool(first)
    second = SegmentSpool(root, 1_000_000, lambda: None)
    second.append(spooled_event(0))
    second.adopt()
    [adopted] = second.batches()
    is_full[0] = True
    second.park(adopted, "400")
    abandon_spool(second)
    is_full[0] = False
    heir = SegmentSpool(root, 1_000_000, lambda: None)
    heir.adopt()
    gaps, _ = gaps_and_numbers(heir)
    assert gaps == [(first.producer_id, 0, 2)]
    heir.close()
