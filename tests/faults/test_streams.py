"""Killed workers and receivers: every record arrives at least once, in order, and is proved."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from audit.models import Stream, StreamWay
from config.instance import BASE_DIR
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_call, send_events
from tests.support.ledger_log import sign
from tests.support.siem_receivers import HOST, certificate, https_receiver
from tests.support.streams import (
    allow,
    keys_of,
    let_time_pass,
    make_stream,
    read_stream,
    send,
    verdict_of,
)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def receivers_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, HOST)


def log_calls(cast: Cast, batches: int) -> int:
    """Store batches of 50 calls and sign them; how many entries there are."""
    for _ in range(batches):
        send_events(cast.tenant, [event for _ in range(50) for event in make_call()])
    sign(cast.tenant)
    return batches * 100


def run_worker(cast: Cast, step: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.killed_streamer", str(cast.tenant.id)]
    return subprocess.run(
        [*command, str(step)],
        cwd=BASE_DIR,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )


def assert_whole(cast: Cast, records: list[dict[str, Any]], count: int) -> None:
    """Fail unless each entry came, its first coming in order, and each record is proved.

    A repeat begins at an entry that came before, and goes on in order.
    """
    indexes = [one["tooltrail"]["index"] for one in records]
    firsts = list(dict.fromkeys(indexes))
    assert firsts == list(range(count))
    came = -1
    for before, index in zip([-1, *indexes], indexes, strict=False):
        assert index == before + 1 or index <= came, "a repeat skips nothing"
        came = max(came, index)
    keys = keys_of(cast)
    for one in records:
        verdict = verdict_of(one, keys)
        assert verdict.is_genuine and not verdict.is_undecided, verdict.lines()


def test_worker_killed_at_any_step_loses_and_skips_no_record(acme: Cast, full: bool) -> None:
    count = log_calls(acme, 11)
    with https_receiver() as receiver:
        stream = make_stream(acme, StreamWay.HTTPS, url=receiver.url)
        steps = int(run_worker(acme, 0).stdout)
        assert steps > 1_000
        assert receiver.indexes == list(range(count))
        receiver.bodies.clear()
        with_claim = read_stream(acme, stream)
        let_start_again(acme)
        for number in range(100 if full else 3):
            done = run_worker(acme, random.randint(1, steps))
            assert done.returncode in (-signal.SIGKILL, 0), done.stderr
            let_time_pass(acme)
            if read_stream(acme, stream).next_index >= count and number % 10 == 9:
                send(acme)
                assert_whole(acme, receiver.records, count)
                receiver.bodies.clear()
                let_start_again(acme)
        send(acme)
        assert_whole(acme, receiver.records, count)
    assert read_stream(acme, stream).sent_count > with_claim.sent_count


def let_start_again(cast: Cast) -> None:
    """Move the cursors of a tenant's streams back to the first entry."""
    with tenant_scope(cast.tenant.id):
        Stream.objects.for_tenant(cast.tenant.id).update(
            next_index=0, claim=None, claimed_until=None
        )


class KilledReceiver:
    """A receiver in a process of its own, which is killed and started again on one port."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "records"
        (folder / "c.pem").write_text(certificate().pem)
        (folder / "c.key").write_text(certificate().key)
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            self.port = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = [sys.executable, "-m", "tests.support.killed_receiver", str(self.port)]
        self._process = subprocess.Popen(
            [*command, str(self._file)], cwd=BASE_DIR, stdin=subprocess.PIPE
        )
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex((HOST, self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError("the receiver does not listen")

    def kill(self) -> None:
        """End it without warning."""
        assert self._process is not None and self._process.stdin is not None, "started"
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()

    @property
    def records(self) -> list[dict[str, Any]]:
        """What is on its disk; of a killed write the whole lines."""
        records = []
        for line in self._file.read_bytes().split(b"\n"):
            try:
                records.append(json.loads(line))
            except ValueError:
                assert not line.endswith(b"}}"), "only a cut line is no record"
        return records


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[KilledReceiver]:
    running = KilledReceiver(tmp_path)
    running.start()
    try:
        yield running
    finally:
        running.kill()


def test_receiver_killed_at_any_moment_misses_nothing(
    acme: Cast, receiver: KilledReceiver, full: bool
) -> None:
    count = log_calls(acme, 11)
    stream = make_stream(acme, StreamWay.HTTPS, url=f"https://{HOST}:{receiver.port}")
    kills = 0
    while kills < (100 if full else 2):
        worker = subprocess.Popen(
            [sys.executable, "-m", "tests.support.killed_streamer", str(acme.tenant.id), "0"],
            cwd=BASE_DIR,
            env=dict(os.environ),
            stdout=subprocess.DEVNULL,
        )
        time.sleep(random.uniform(0.8, 2.5))
        receiver.kill()
        kills += 1
        worker.wait(120)
        receiver.start()
        let_time_pass(acme)
        if read_stream(acme, stream).next_index >= count and kills % 4:
            let_start_again(acme)
    send(acme)
    assert read_stream(acme, stream).failure == ""
    records = receiver.records
    assert {one["tooltrail"]["index"] for one in records} == set(range(count))
    keys = keys_of(acme)
    for one in records[:: 1 if full else 7]:
        assert verdict_of(one, keys).is_genuine
    indexes = [one["tooltrail"]["index"] for one in records]
    came = -1
    for before, index in zip([-1, *indexes], indexes, strict=False):
        assert index == before + 1 or index <= came or index == 0, "nothing is skipped"
        came = max(came, index)
