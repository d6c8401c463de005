"""The spool alone: full disks, torn and damaged files, kills at any moment."""

import errno
import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import uuid_utils
from tooltrail.spool.home import claimed, make_home, make_root, remove_home
from tooltrail.spool.lines import numbers, open_lines, salvage, seal_line
from tooltrail.spool.segments import SegmentSpool
from tooltrail.spool.slim import slim_line

from sdk.tests.support.spools import abandon_spool, spooled_event, spooled_events

KEY = "tt_0198c0de000070008000000000000001_key1_secret_crc"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path, "http://tooltrail", KEY)


@pytest.fixture
def spool(root: Path) -> Iterator[SegmentSpool]:
    spool = SegmentSpool(root, 1_000_000, lambda: None)
    yield spool
    spool.close()


def test_sealed_lines_round_trip() -> None:
    texts = [b'{"a":"\\t\\n"}', b"{}", '{"é":"😀"}'.encode()]
    data = b"".join(map(seal_line, texts))
    assert open_lines(data) == texts
    assert salvage(data, 0).lines == texts
    assert salvage(data, 0).lost == []


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [
        seal_line(b'{"producer_id":"p","producer_seq":%d}' % seq)
        for seq in range(start, start + count)
    ]


@pytest.mark.parametrize(
    ("damage", "kept", "lost"),
    [
        (lambda lines: lines[-1][:-7], [5, 6, 7, 8], [9]),
        (lambda lines: lines[-1][:1], [5, 6, 7, 8], [9]),
        (lambda lines: lines[-1].replace(b"p", b"q", 1), [5, 6, 7, 8], [9]),
        (lambda lines: b"\0" * 50, [5, 6, 7, 8], [9]),
        (lambda lines: b"", [5, 6, 7, 8], []),
    ],
)
def test_torn_tail_loses_only_its_own_line(damage: Any, kept: list[int], lost: list[int]) -> None:
    lines = numbered(5, start=5)
    salvaged = salvage(b"".join(lines[:-1]) + damage(lines), 5)
    assert numbers(salvaged.lines) == {"p": [range(kept[0], kept[-1] + 1)]}
    assert [seq for each in salvaged.lost for seq in each] == lost


def test_damage_in_the_middle_is_located_by_missing_numbers() -> None:
    lines = numbered(10)
    data = b"".join([*lines[:2], b"\0" * 200, *lines[5:8], b"rubbish\n", lines[9]])
    salvaged = salvage(data, 0)
    # The zeros have no line feed, so they took the line that follows with them.
    assert [list(each) for each in salvaged.lost] == [[2, 3, 4, 5], [8]]
    assert len(salvaged.lines) == 5


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes the disk still takes, as its only member; it can be changed."""
    write, room = os.write, [400]

    def short_write(fd: int, data: bytes) -> int:
        taken = min(len(data), room[0])
        room[0] -= taken
        if not taken:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[:taken])

    monkeypatch.setattr(os, "write", short_write)
    return room


def test_events_lost_to_a_full_disk_and_full_memory_are_declared(
    root: Path, room: list[int]
) -> None:
    spool = SegmentSpool(root, 1_000_000, lambda: None, spill_bytes=300)
    kept = [spool.append(spooled_event(n)) for n in range(20)]
    assert kept == [True] * kept.count(True) + [False] * kept.count(False)
    assert 0 < kept.count(True) < 20
    room[0] = 10_000
    assert spool.append(spooled_event(20))
    events = spooled_events(spool)
    [gap] = [each for each in events if each["type"] == "gap"]
    stored = [each["producer_seq"] for each in events if each["type"] != "gap"]
    assert sorted(stored) == [*range(kept.count(True)), 20]
    assert (gap["from_seq"], gap["to_seq"]) == (kept.count(True), 19)
    assert gap["reason"] == "no-space-left-on-device"
    assert gap["count"] == 20 - kept.count(True)
    assert spool.snapshot()["dropped"] == {"no-space-left-on-device": gap["count"]}
    spool.close()


def test_events_wait_in_memory_on_a_full_disk_and_reach_the_disk_later(
    root: Path, spool: SegmentSpool, room: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(700):
        assert spool.append(spooled_event(n))
    assert caplog.text.count("events are kept in memory") == 1
    spool.seal()
    assert spool.snapshot()["waiting"] == 700
    ids = {batch.id for batch in spool.batches()}
    spool.adopt()  # the shipper's housekeeping
    assert {batch.id for batch in spool.batches()} == ids, "an id given once stays"
    spool.close()
    room[0] = 1_000_000
    heir = SegmentSpool(root, 1_000_000, lambda: None)
    heir.adopt()
    assert sorted(each["n"] for each in spooled_events(heir)) == list(range(700))
    heir.close()


def test_append_fails_on_a_full_disk_without_memory_spill(root: Path, room: list[int]) -> None:
    spool = SegmentSpool(root, 1_000_000, lambda: None, spill_bytes=0)
    assert [spool.append(spooled_event(n)) for n in range(10)][-1] is False
    spool.close()


def test_removed_folder_is_recreated_and_the_loss_declared(spool: SegmentSpool, root: Path) -> None:
    assert spool.append(spooled_event(0))
    for path in (root / spool.producer_id).iterdir():
        path.unlink()
    (root / spool.producer_id).rmdir()
    spool.seal()
    assert spool.append(spooled_event(1))
    gap, last = spooled_events(spool)
    assert (gap["from_seq"], gap["to_seq"], last["producer_seq"]) == (0, 0, 1)


def test_spool_of_a_dead_process_is_adopted_completely_and_once(
    root: Path, spool: SegmentSpool
) -> None:
    dead = SegmentSpool(root, 1_000_000, lambda: None)
    for n in range(3):
        dead.append(spooled_event(n))
    dead.seal()
    sealed = dead.batches()[0].id
    dead.append(spooled_event(3))
    abandon_spool(dead)
    spool.adopt()
    spool.adopt()
    assert [each["n"] for each in spooled_events(spool)] == [0, 1, 2, 3]
    assert spool.batches()[0].id == sealed, "an id given once stays: it may have been sent"
    assert not (root / dead.producer_id).exists()


def test_spool_of_a_live_process_is_not_adopted(root: Path, spool: SegmentSpool) -> None:
    living = SegmentSpool(root, 1_000_000, lambda: None)
    living.append(spooled_event(0))
    spool.adopt()
    assert spooled_events(spool) == []
    assert len(spooled_events(living)) == 1
    living.close()


def test_damaged_segment_is_adopted_and_its_damaged_lines_declared(
    root: Path, spool: SegmentSpool
) -> None:
    dead = SegmentSpool(root, 1_000_000, lambda: None)
    for n in range(3):
        dead.append(spooled_event(n))
    abandon_spool(dead)
    [segment] = (root / dead.producer_id).glob("*.open")
    segment.write_bytes(segment.read_bytes()[:-20])
    spool.adopt()
    events = spooled_events(spool)
    assert [each.get("n") for each in events] == [0, 1, None]
    gap = events[-1]
    assert (gap["producer_id"], gap["from_seq"], gap["to_seq"]) == (dead.producer_id, 2, 2)
    assert gap["reason"] == "damaged"


def test_segment_truncated_at_a_line_end_is_detected_by_its_name(
    root: Path, spool: SegmentSpool
) -> None:
    dead = SegmentSpool(root, 1_000_000, lambda: None)
    for n in range(10):
        dead.append(spooled_event(n))
        if n in (4, 9):
            dead.seal()
    abandon_spool(dead)
    first, second = sorted((root / dead.producer_id).glob("*.batch"))
    first.write_bytes(b"".join(first.read_bytes().splitlines(keepends=True)[:3]))
    second.write_bytes(b"")  # as a power cut leaves it
    spool.adopt()
    *kept, gap, other = spooled_events(spool)
    assert [each["n"] for each in kept] == [0, 1, 2]
    assert (gap["producer_id"], gap["from_seq"], gap["to_seq"]) == (dead.producer_id, 3, 4)
    assert (other["from_seq"], other["to_seq"]) == (5, 9)


def test_damage_after_adoption_is_declared_for_the_original_producer(
    root: Path, spool: SegmentSpool
) -> None:
    first = SegmentSpool(root, 1_000_000, lambda: None)
    for n in range(3):
        first.append(spooled_event(n))
    abandon_spool(first)
    second = SegmentSpool(root, 1_000_000, lambda: None)
    second.append(spooled_event(9))
    second.adopt()
    abandon_spool(second)
    [batch] = (root / second.producer_id).glob("*.batch")
    batch.write_bytes(batch.read_bytes()[:-20])
    spool.adopt()
    [gap] = [each for each in spooled_events(spool) if each["type"] == "gap"]
    assert (gap["producer_id"], gap["from_seq"], gap["to_seq"]) == (first.producer_id, 2, 2)


def test_unreadable_file_does_not_block_the_others(
    root: Path, spool: SegmentSpool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = SegmentSpool(root, 1_000_000, lambda: None)
    for n in range(4):
        dead.append(spooled_event(n))
        dead.seal()
    abandon_spool(dead)
    broken = min((root / dead.producer_id).glob("*.batch"))
    read_bytes = Path.read_bytes

    def read(path: Path) -> bytes:
        if path.name == broken.name:
            raise OSError(errno.EIO, "Input/output error")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    spool.adopt()
    assert [each["n"] for each in spooled_events(spool)] == [1, 2, 3]
    monkeypatch.undo()
    spool.adopt()
    assert [each["n"] for each in spooled_events(spool)] == [0, 1, 2, 3]


def test_damage_is_declared_once_although_adoption_fails_on_a_full_disk(
    root: Path, spool: SegmentSpool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = SegmentSpool(root, 1_000_000, lambda: None)
    for n in range(3):
        dead.append(spooled_event(n))
    abandon_spool(dead)
    [segment] = (root / dead.producer_id).glob("*.open")
    segment.write_bytes(segment.read_bytes()[:-20])

    def no_room(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", no_room)
    for _ in range(3):
        spool.adopt()
    assert spool.snapshot()["dropped"] == {}
    monkeypatch.undo()
    spool.adopt()
    assert [each.get("n") for each in spooled_events(spool)] == [0, 1, None]
    assert spool.snapshot()["dropped"] == {"damaged": 1}


def test_signal_handlers_can_append_during_an_append(spool: SegmentSpool, root: Path) -> None:
    handled = kept = 0

    def handle(number: int, frame: Any) -> None:
        nonlocal handled
        handled += 1
        assert spool.append(spooled_event(-1))

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
    try:
        while handled < 300:
            kept += spool.append(spooled_event(kept))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    events = spooled_events(spool)
    assert [each["producer_seq"] for each in events] == list(range(kept + handled))
    assert sum(each["n"] == -1 for each in events) == handled
    assert not list(root.glob("*/*.open")), "all of them are in batches"


def test_interrupting_signal_handler_leaves_no_undeclared_hole(
    spool: SegmentSpool, root: Path
) -> None:
    class InterruptError(BaseException): ...

    def handle(number: int, frame: Any) -> None:
        raise InterruptError

    spool.append(spooled_event(0))
    before = signal.signal(signal.SIGALRM, handle)
    interrupted = 0
    try:
        while interrupted < 200:
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00001, 0.0001))
                while True:
                    spool.append(spooled_event(0))
            except InterruptError:
                interrupted += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    emitted = spool.emitted
    spool.close()  # what was cut off on its way into a batch is there for the next process
    heir = SegmentSpool(root, 10_000_000, lambda: None)
    heir.adopt()
    events = spooled_events(heir)
    gaps = [each for each in events if each["type"] == "gap"]
    stored = {each["producer_seq"] for each in events if each["type"] != "gap"}
    declared = {n for gap in gaps for n in range(gap["from_seq"], gap["to_seq"] + 1)}
    assert stored | declared == set(range(emitted))
    heir.close()


def test_interrupted_folder_creation_is_retried_under_a_new_name(
    root: Path, spool: SegmentSpool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(root: Path, name: str) -> int:
        make_home(root, name)
        raise KeyboardInterrupt

    monkeypatch.setattr("tooltrail.spool.segments.make_home", interrupted)
    with pytest.raises(KeyboardInterrupt):
        spool.append(spooled_event(0))
    monkeypatch.undo()
    assert spool.append(spooled_event(1))
    events = spooled_events(spool)
    assert {each.get("producer_seq", each.get("from_seq")) for each in events} == {0, 1}
    assert list(root.glob(f"{spool.producer_id}+*/*.batch"))


def test_foreign_files_in_the_root_do_not_prevent_a_start(root: Path, spool: SegmentSpool) -> None:
    (root / "a-file").write_text("x")
    (root / "no-lock").mkdir()
    home = root / "dead-1-aa"
    os.close(make_home(root, home.name))
    (home / "000000000000.open").write_bytes(b"\0" * 100)
    (home / "not-a-number.open").write_bytes(b"rubbish\n")
    (home / "not-a-batch.batch").write_bytes(b"\xff\n\n{}")
    (home / "notes.txt").write_text("x")
    spool.adopt()
    assert spool.append(spooled_event(0))
    assert [each.get("n") for each in spooled_events(spool)][-1] == 0


@pytest.mark.parametrize("step", [1, 2, 3])
def test_kill_while_a_batch_is_replaced_leaves_the_old_or_the_new(
    root: Path, spool: SegmentSpool, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = SegmentSpool(root, 1_000_000, lambda: None)
    for n in range(4):
        dead.append(spooled_event(n))
    dead.seal()
    [batch] = dead.batches()
    lines = dead.read(batch)

    class KilledError(BaseException): ...

    renames = 0
    rename = Path.rename

    def dying_rename(path: Path, target: Path) -> Path:
        nonlocal renames
        renames += 1
        if renames == step:
            raise KilledError
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", dying_rename)
    with pytest.raises(KilledError):
        dead.replace(batch, [lines[:2], lines[2:]], is_slim=False)
    monkeypatch.setattr(Path, "rename", rename)
    abandon_spool(dead)
    spool.adopt()
    assert [each["n"] for each in spooled_events(spool)] == [0, 1, 2, 3]


def test_spool_roots_differ_by_key_and_server(tmp_path: Path) -> None:
    other_key = KEY.replace("key1", "key2")
    first = make_root(tmp_path, "http://tooltrail", KEY)
    assert first != make_root(tmp_path, "http://tooltrail", other_key)
    assert first != make_root(tmp_path, "http://elsewhere", KEY)
    assert first == make_root(tmp_path, "http://tooltrail/", KEY.replace("secret", "renewed"))
    assert first.stat().st_mode & 0o777 == 0o700
    origin = (first / "origin.json").read_text()
    assert json.loads(origin) == {"url": "http://tooltrail", "key_id": "key1"}


def test_threads_make_one_root_at_once(tmp_path: Path) -> None:
    """They, and the first processes of containers, which have the same pid, share a folder."""
    together = threading.Barrier(8, timeout=60)

    def make(number: int) -> Path:
        together.wait()
        return make_root(tmp_path / str(number), "http://tooltrail", KEY)

    with ThreadPoolExecutor(8) as threads:
        for number in range(50):
            made = list(threads.map(make, [number] * 8))
            assert len(set(made)) == 1
            assert [path.name for path in made[0].iterdir()] == ["origin.json"]


def test_home_is_claimed_by_one_process_at_a_time(root: Path) -> None:
    os.close(make_home(root, "dead"))
    with claimed(root / "dead") as first, claimed(root / "dead") as second:
        assert (first, second) == (True, False)
        remove_home(root / "dead")
    assert not (root / "dead").exists()


def test_dropping_a_batch_keeps_the_gaps_declared_inside(spool: SegmentSpool) -> None:
    spool._lose("somebody", range(3, 5), "damaged")
    spool.append(spooled_event(0))
    spool.seal()
    spool.give_up(spool.batches()[0], "expired")
    gaps = {gap["producer_id"]: gap for gap in spooled_events(spool)}
    assert gaps["somebody"]["reason"] == "damaged"
    assert gaps[spool.producer_id]["reason"] == "expired"


def test_allowance_is_kept_beside_a_process_with_much_data(root: Path, spool: SegmentSpool) -> None:
    loud = SegmentSpool(root, 10_000_000, lambda: None)
    for n in range(20):
        loud.append(spooled_event(n) + b',"x":"%b"' % (b"x" * 100_000))
    spool.adopt()
    assert spool.allowance == 500_000
    loud.close()
    abandon_spool(loud)


def test_slim_event_keeps_sequence_number_and_verdict() -> None:
    full = {
        "type": "toolExecutionEnd",
        "invocation_id": "i",
        "output": {
            "status": "error",
            "error": {"type": "TIMEOUT", "message": "hunter2", "details": {"x": 1}},
            "meta": {"took_ms": 3, "routing": {"hunter2": 1}},
        },
        "guard": {
            "strategy": "throw",
            "outcome": "failed",
            "received": {"a": "hunter2"},
            "violations": [
                {
                    "path": "$.a",
                    "code": "WRONG_TYPE",
                    "received": "hunter2",
                    "received_value": "hunter2",
                    "message": "not hunter2",
                    "llm_message": "not hunter2",
                }
            ],
        },
        "producer_id": "p",
        "producer_seq": 4,
    }
    line = slim_line(json.dumps(full).encode(), "spool-full")
    assert b"hunter2" not in line
    slim = json.loads(line)
    assert slim["output"] == {
        "status": "error",
        "error": {"type": "TIMEOUT", "message": ""},
        "meta": {"took_ms": 3},
    }
    assert slim["guard"]["violations"] == [{"path": "$.a", "code": "WRONG_TYPE"}]
    assert numbers([line]) == {"p": [range(4, 5)]}
    assert slim_line(b"rubbish", "spool-full") == b"rubbish"


DAY = 86_400.0


def adopted_age(spool: SegmentSpool, root: Path, sealed_at: float) -> float:
    """How old the spool takes an empty-handed process's batch to be that was sealed then."""
    home = root / "dead-1-aa"
    os.close(make_home(root, home.name))
    batch_id = uuid_utils.uuid7(nanoseconds=int(sealed_at * 1e9))
    (home / f"{batch_id}.0.1.batch").write_bytes(seal_line(b"{}"))
    spool.adopt()
    return time.monotonic() - max(spool.batches(), key=lambda batch: batch.order).since


def test_batch_age_is_known_across_processes_and_clock_changes(
    spool: SegmentSpool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    os.utime(root / "origin.json", (now - 100 * DAY, now - 100 * DAY))
    assert adopted_age(spool, root, now - 6 * DAY) == pytest.approx(6 * DAY, abs=600)
    # Named by a clock that ran ahead, and by one that had not been set yet.
    assert adopted_age(spool, root, now + 300 * DAY) < 600
    assert adopted_age(spool, root, 0) < 600
    # What we sealed ourselves has waited as long as it has, whatever the clock says since.
    spool.append(spooled_event(0))
    spool.seal()
    monkeypatch.setattr(time, "time", lambda: now + 30 * DAY)
    assert time.monotonic() - max(spool.batches(), key=lambda b: b.order).since < 600
