"""A program that calls tools under Tooltrail, to be killed, starved and cut off.

Run as a script, with the SDK's variables in the environment. What it did is known without
the SDK: before and after each call it writes a line to a journal of its own, unbuffered, so
calls confirmed ≤ calls recorded ≤ calls started.
"""

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import tooltrail.spool.base
import uuid_utils
from tooltrail import Trail, shipper, transport

JUMPS = (  # how far the clock of `--jumping-clock` is off, one after the other
    timedelta(),
    timedelta(hours=-2),
    timedelta(days=-40),
    timedelta(hours=2),
    timedelta(days=5),
    timedelta(days=-20000),
)


class Journal:
    """What this process did, in a file named by its pid."""

    def __init__(self, folder: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._fd = os.open(folder / str(os.getpid()), flags, 0o600)

    def started(self, run: str, n: int) -> None:
        os.write(self._fd, b"s %b %d\n" % (run.encode(), n))

    def confirmed(self, run: str, n: int) -> None:
        os.write(self._fd, b"e %b %d\n" % (run.encode(), n))


class Worker:
    """Calls a tool again and again, in bursts; a run is one thread of one process."""

    def __init__(self, options: argparse.Namespace, trail: Trail) -> None:
        self._options = options
        self._journal = Journal(options.journal)
        self._text = "x" * options.size

        @trail.tool(version="1")
        def echo(run: str, n: int, text: str) -> dict[str, Any]:
            return {"run": run, "n": n}

        self._echo = echo
        self._trail = trail

    def work(self, thread: int, stopping: threading.Event) -> None:
        run = f"{os.getpid()}.{thread}"
        n = 0
        with self._trail.trace(f"trace-{run}"):
            while not stopping.is_set() and n != self._options.calls:
                self._journal.started(run, n)
                self._echo(run, n, self._text)
                self._journal.confirmed(run, n)
                n += 1
                if n % self._options.burst == 0:
                    stopping.wait(self._options.pause)

    def work_in_threads(self) -> None:
        """Until all calls are made, or standard input is closed."""
        stopping = threading.Event()
        threads = [
            threading.Thread(target=self.work, args=(thread, stopping))
            for thread in range(self._options.threads)
        ]
        for thread in threads:
            thread.start()
        if self._options.calls < 0:
            sys.stdin.read()
            stopping.set()
        for thread in threads:
            thread.join()


def run_alone(options: argparse.Namespace) -> None:
    """Work, print the trail's counts at the end, and exit normally."""
    trail = make_trail(options)
    Worker(options, trail).work_in_threads()
    print_document(vars_of(trail))


def run_swarm(options: argparse.Namespace) -> None:
    """Many processes at once: a third closes the trail, a third only exits, a third is killed."""
    trail = make_trail(options)
    children = []
    for index in range(options.processes):
        pid = os.fork()
        if pid == 0:
            Worker(options, trail).work(0, threading.Event())
            if index % 3 == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if index % 3 == 2:
                trail.close(5)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)


def run_preforked(options: argparse.Namespace) -> None:
    """Fork workers like a web server that loads the application first; replace ended ones."""
    trail = make_trail(options)
    Worker(options, trail).work(0, stop_after(options.burst))  # the parent has a shipper, too
    workers: set[int] = set()
    is_ending = False

    def end(number: int, frame: object) -> None:
        nonlocal is_ending
        is_ending = True
        for pid in workers:
            os.kill(pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    while not is_ending or workers:
        while len(workers) < options.processes and not is_ending:
            # A worker that has no handler of its own yet must not get the signal to end.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            pid = os.fork()
            if pid == 0:
                serve(options, trail)
            workers.add(pid)
            if is_ending:  # the shipper's thread took the signal, and `end` did not know this one
                os.kill(pid, signal.SIGTERM)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        pid, _ = os.wait()
        workers.discard(pid)
    trail.close(20)


def serve(options: argparse.Namespace, trail: Trail) -> None:
    """Work in a forked worker until the signal to end."""
    stopping = SignalledEvent()
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    Worker(options, trail).work(0, stopping)
    os._exit(0)


class SignalledEvent(threading.Event):
    """An event that a signal handler may set.

    The lock of a normal event may be held by the interrupted thread, which would then deadlock.
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_stopping = False

    def set(self) -> None:
        self._is_stopping = True

    def is_set(self) -> bool:
        return self._is_stopping

    def wait(self, timeout: float | None = None) -> bool:
        time.sleep(timeout or 0)
        return self._is_stopping


def stop_after(calls: int) -> threading.Event:
    """An event that is set after it was checked so many times."""
    stopping = threading.Event()
    is_set, left = stopping.is_set, [calls]

    def count_down() -> bool:
        left[0] -= 1
        return left[0] < 0 or is_set()

    stopping.is_set = count_down  # type: ignore[method-assign]  # replaced for the fault
    return stopping


def run_on_full_disk(options: argparse.Namespace) -> None:
    """Fill the disk the spool is on to the brim, go on, free it, go on; all in one process."""
    trail = make_trail(options)
    worker = Worker(options, trail)
    threads = [
        threading.Thread(target=worker.work, args=(n, threading.Event()))
        for n in range(options.threads)
    ]
    threads[0].start()
    threads[0].join()
    with filled(Path(os.environ["TOOLTRAIL_SPOOL_DIR"])) as has_room:
        was_full = not has_room()
        for thread in threads[1:-1]:
            thread.start()
            thread.join()
    threads[-1].start()
    threads[-1].join()
    while trail.stats().waiting:
        trail.flush(1)
    print_document({**vars_of(trail), "was_full": was_full})


@contextmanager
def filled(folder: Path) -> Iterator[Callable[[], bool]]:
    """Leave no byte free on this file system for the block; yields whether there is any."""
    ballast = folder / "ballast"
    fd = os.open(ballast, os.O_WRONLY | os.O_CREAT)

    def has_room() -> bool:
        try:
            return os.write(fd, b"\0") > 0
        except OSError:
            return False

    for size in (1 << 20, 1 << 12, 1):
        try:
            while True:
                os.write(fd, b"\0" * size)
        except OSError:
            continue
    yield has_room
    os.close(fd)
    ballast.unlink()


def make_trail(options: argparse.Namespace) -> Trail:
    shipper.BACKOFF_MAX_SECONDS = min(shipper.BACKOFF_MAX_SECONDS, options.backoff)
    shipper.REFUSED_SECONDS = min(shipper.REFUSED_SECONDS, options.backoff)
    shipper.KEEP_HOUSE_SECONDS = min(shipper.KEEP_HOUSE_SECONDS, options.backoff)
    transport.READ_SECONDS = min(transport.READ_SECONDS, options.read_timeout)
    if not options.jumping_clock:
        return Trail()
    began = time.monotonic()

    def now() -> datetime:
        jump = JUMPS[int((time.monotonic() - began) / options.jumping_clock) % len(JUMPS)]
        return datetime.now(UTC) + jump

    def jumping_batch_id() -> str:
        return str(uuid_utils.uuid7(nanoseconds=max(int(now().timestamp() * 1e9), 0)))

    shipper.time.time = lambda: now().timestamp()  # type: ignore[attr-defined]  # replaced for the fault
    tooltrail.spool.base.new_batch_id = jumping_batch_id  # type: ignore[attr-defined]  # replaced for the fault
    return Trail(clock=now)


def vars_of(trail: Trail) -> dict[str, Any]:
    stats = trail.stats()
    return {name: getattr(stats, name) for name in stats.__slots__}


def print_document(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")


RUNS = {
    "alone": run_alone,
    "full-disk": run_on_full_disk,
    "preforked": run_preforked,
    "swarm": run_swarm,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run", choices=RUNS)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--calls", type=int, default=-1, help="a thread; -1: until told to stop")
    parser.add_argument("--burst", type=int, default=100, help="calls between two pauses")
    parser.add_argument("--pause", type=float, default=0.05)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--size", type=int, default=200, help="bytes of argument")
    parser.add_argument("--backoff", type=float, default=0.2)
    parser.add_argument("--read-timeout", type=float, default=30.0)
    parser.add_argument("--jumping-clock", type=float, default=0, help="seconds between jumps")
    options = parser.parse_args()
    RUNS[options.run](options)


if __name__ == "__main__":
    main()
