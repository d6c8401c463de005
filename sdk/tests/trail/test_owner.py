"""Who owns a home: when it may be taken over, and by whom; also without locks."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tooltrail.spool.home import LOCK, NOTE, TAKEN, claimed, homes, make_home, make_root, take
from tooltrail.spool.lines import seal_line
from tooltrail.spool.losses import Loss
from tooltrail.spool.owner import OWNER, has_ended, read_owner, runs, this_process
from tooltrail.spool.segments import SegmentSpool

from sdk.tests.support.ingest_key import KEY
from sdk.tests.support.spools import spooled_event, spooled_events

HERE = {
    "pid": "10", "started": "500", "boot": "b1", "namespace": "pid:[4026531836] time:[1]",
    "host": "web-1", "machine": "m1",
}  # fmt: skip  # as one table
CONTAINER = {"namespace": "pid:[4026532001] time:[1]"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path, "http://tooltrail", KEY)


@pytest.mark.parametrize(
    ("owner", "here", "ended"),
    [
        ({}, {}, True),
        ({"namespace": "pid:[4026532002] time:[1]"}, {}, False),
        ({}, CONTAINER, False),
        (CONTAINER, CONTAINER, True),
        ({"boot": "b0"}, {}, True),
        ({"boot": "b0"}, {"machine": ""}, False),
        ({"boot": "b0", "machine": "m2"}, {}, False),
        ({"boot": "b0", "host": "web-2"}, {}, False),
        ({"boot": "b0", **CONTAINER}, CONTAINER, False),
        ({"boot": "b0"}, CONTAINER, False),
        ({"boot": ""}, {}, False),
        ({"boot": "", "namespace": ""}, {"boot": "", "namespace": ""}, True),
        ({"boot": "", "host": "web-2"}, {"boot": ""}, False),
        ({"boot": "", "host": ""}, {"boot": "", "host": ""}, False),
        ({"pid": "../1"}, {}, False),
    ],
)  # fmt: skip  # a line for each pair of places
def test_only_a_process_that_is_certainly_gone_has_ended(
    owner: dict[str, str], here: dict[str, str], ended: bool
) -> None:
    assert has_ended(HERE | owner, HERE | here, lambda pid, started: False) is ended


@pytest.mark.parametrize("place", [{}, CONTAINER, {"boot": "", "namespace": ""}])
def test_a_running_process_has_not_ended(place: dict[str, str]) -> None:
    assert not has_ended(HERE | place, HERE | place, lambda pid, started: True)


def test_a_pid_that_is_used_again_is_another_process() -> None:
    me = this_process()
    pid = int(me["pid"])

    assert runs(pid, me["started"])
    assert not runs(pid, str(int(me["started"]) + 1))


def test_a_process_that_waits_for_its_parent_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started = Path(f"/proc/{process.pid}/stat").read_bytes().rpartition(b")")[2].split()[19]
        assert runs(process.pid, started.decode())
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
        assert not runs(process.pid, started.decode())


def leave_home_of_another_sdk(root: Path, name: str, owner: dict[str, str]) -> Path:
    """A home with three events and a note of one lost event, as SDKs without locks leave it."""
    home = root / name
    home.mkdir()
    (home / OWNER).write_text(json.dumps(owner))
    lost = Loss(name, range(3, 4), "killed")
    (home / NOTE).write_bytes(seal_line(lost.event()).ljust(4096, b"\n"))
    member = b',"producer_id":"%b","producer_seq":' % name.encode()
    lines = (b"%b%b%d}" % (spooled_event(n), member, n) for n in range(3))
    (home / "000000000000.open").write_bytes(b"".join(map(seal_line, lines)))
    return home


def ended_process() -> dict[str, str]:
    return this_process() | {"started": "1"}


def test_homes_of_ended_processes_without_locks_are_taken_over(root: Path) -> None:
    leave_home_of_another_sdk(root, "js-1-aa", ended_process())
    spool = SegmentSpool(root, 1_000_000, lambda: None)
    spool.adopt()

    events = spooled_events(spool)
    assert [each["n"] for each in events if each["type"] != "gap"] == [0, 1, 2]
    [gap] = [each for each in events if each["type"] == "gap"]
    assert (gap["producer_id"], gap["from_seq"], gap["to_seq"]) == ("js-1-aa", 3, 3)
    assert [home.name for home in homes(root)] == [spool.producer_id]
    for batch in spool.batches():
        spool.discard(batch)
    spool.close()
    assert homes(root) == []


@pytest.mark.parametrize(
    "owner",
    [
        this_process(),
        ended_process() | {"namespace": "pid:[1]"},
        ended_process() | {"boot": "x", "host": "x"},
    ],
    ids=["running", "in another container", "on another host"],
)
def test_homes_of_others_without_locks_are_left_alone(root: Path, owner: dict[str, str]) -> None:
    home = leave_home_of_another_sdk(root, "js-1-aa", owner)
    spool = SegmentSpool(root, 1_000_000, lambda: None)
    spool.adopt()

    assert spooled_events(spool) == []
    assert (home / "000000000000.open").exists()


def test_only_one_of_two_takes_a_home_over(root: Path) -> None:
    home = leave_home_of_another_sdk(root, "js-1-aa", ended_process())
    for name in ("first", "second"):
        os.close(make_home(root, name))
    with claimed(home) as seen_by_first, claimed(home) as seen_by_second:
        assert (seen_by_first, seen_by_second) == (True, True)

    assert take(home, root / "first") == root / "first" / f"js-1-aa{TAKEN}"
    with pytest.raises(FileNotFoundError):
        take(home, root / "second")


def test_what_a_killed_process_had_taken_over_is_taken_over_with_it(root: Path) -> None:
    home = leave_home_of_another_sdk(root, "js-1-aa", ended_process())
    os.close(make_home(root, "killed-1-bb"))
    take(home, root / "killed-1-bb")
    spool = SegmentSpool(root, 1_000_000, lambda: None)
    spool.adopt()

    assert sorted(each.get("n", -1) for each in spooled_events(spool)) == [-1, 0, 1, 2]
    assert [each.name for each in homes(root)] == [spool.producer_id]


def test_homes_of_earlier_versions_are_taken_over(root: Path) -> None:
    os.close(make_home(root, "old-1-aa"))
    (root / "old-1-aa" / OWNER).unlink()
    (root / "old-1-aa" / "000000000000.open").write_bytes(seal_line(spooled_event(7) + b"}"))
    spool = SegmentSpool(root, 1_000_000, lambda: None)
    spool.adopt()

    assert [each["n"] for each in spooled_events(spool)] == [7]


def test_a_home_says_whose_it_is(root: Path) -> None:
    lock = make_home(root, "mine")

    assert read_owner(root / "mine") == this_process()
    assert (root / "mine" / LOCK).exists()
    os.close(lock)


def test_a_half_removed_home_is_removed(root: Path) -> None:
    (root / "js-1-aa").mkdir()
    SegmentSpool(root, 1_000_000, lambda: None).adopt()

    assert homes(root) == []
