"""What a stream sends beside the intake, and what it costs it: `uv run python -m bench.stream`.

Starts a PostgreSQL of its own, a receiver with TLS that only reads, and a worker that sends a log
of `--calls` calls (two records each, of OCSF with proofs) again and again over HTTPS. First the
worker sends alone. Then this process serves executors' requests of 500 events through all of
Django, in turns: while the worker sends, and while it is stopped (SIGSTOP), so that other work on
the machine affects both alike.

The intake's cost is the processor time of an event, in this process and the PostgreSQL processes
that serve it. Wall times are printed, too: on two cores, four processes (intake, worker, receiver,
PostgreSQL) compete, so the intake is as slow as the machine is full. Limits: 5,000 calls a second
alone and beside the intake; 5 % of the intake's processor time, by the medians. Linux only.
"""

import argparse
import os
import random
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from uuid import UUID

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.ledger import events
from bench.ledger_cost import fold, new_executor, take_in
from bench.own_database import own_database

CALLS_LIMIT, SHARE_LIMIT = 5_000, 0.05
_AT_ONCE = 500


def receive(port: int, folder: Path) -> None:
    """Answer 200 to whatever comes, until this process is ended."""
    from tests.support.siem_receivers import Certificate, serving

    own = Certificate((folder / "pem").read_text(), (folder / "key").read_text())

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            left = int(self.headers["Content-Length"])
            while left:
                left -= len(self.rfile.read(min(left, 1 << 20)))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with serving(Handler, port, own):
        sys.stdin.read()


def send(tenant_id: UUID, *, once: bool) -> None:
    """Send the tenant's stream to its end; without `once` again and again."""
    import django

    django.setup()
    from django.utils import timezone

    from audit.models import Stream
    from audit.stream.sending import due_streams, run_slice
    from tenants.scope import tenant_scope

    while True:
        with tenant_scope(tenant_id):
            due = due_streams(tenant_id, timezone.now())
        if due:
            run_slice([(tenant_id, pk) for pk in due], seconds=3)
            continue
        if once:
            return
        with tenant_scope(tenant_id):
            Stream.objects.for_tenant(tenant_id).update(next_index=0)


def start(*words: str) -> subprocess.Popen[bytes]:
    """Start this script in another role."""
    command = [sys.executable, "-m", "bench.stream", *words]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE)


def sent_by(tenant_id: UUID) -> int:
    """Records that were acknowledged so far."""
    from audit.models import Stream
    from tenants.scope import tenant_scope

    with tenant_scope(tenant_id):
        return Stream.objects.for_tenant(tenant_id).get().sent_count


def make_stream(tenant_id: UUID, port: int, pem: str) -> None:
    """A stream of the whole log to the receiver."""
    from audit.models import StreamFormat, StreamOf, StreamWay
    from audit.stream.streams import Wanted, create_stream
    from tenants.models import Tenant
    from tenants.scope import tenant_scope

    given = {"url": f"https://127.0.0.1:{port}", "ca": pem}
    wanted = Wanted("bench", StreamOf.CALLS, StreamFormat.OCSF, StreamWay.HTTPS, given)
    with tenant_scope(tenant_id):
        create_stream(Tenant.objects.get(pk=tenant_id), "bench", wanted, from_index=0)


def measure(folder: Path, calls: int, rounds: int) -> int:
    """Run everything and print the table; the exit code."""
    from django.core.handlers.wsgi import WSGIHandler

    from tests.support.siem_receivers import certificate

    rng, handler = random.Random(7), WSGIHandler()
    streamed, intake = new_executor("streamed"), new_executor("intake")
    for _ in range(-(-2 * calls // _AT_ONCE)):
        take_in(handler, streamed, events(rng, _AT_ONCE))
    fold(streamed)
    own = certificate()
    (folder / "pem").write_text(own.pem)
    (folder / "key").write_text(own.key)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    make_stream(streamed.tenant_id, port, own.pem)
    receiver = start("--receive", str(port), "--folder", str(folder))
    _wait_for(port)
    worker = None
    try:
        started, used_to_start = _start_seconds()
        began, used = time.monotonic(), _used_by_children()
        alone = start("--send", str(streamed.tenant_id), "--once")
        alone.communicate()
        seconds = time.monotonic() - began - started
        processor = _used_by_children() - used - used_to_start
        sent = sent_by(streamed.tenant_id) / 2
        print(f"{'calls/s of one free core, by processor time':44}{sent / processor:10,.0f}")
        alone_rate = sent / seconds
        worker = start("--send", str(streamed.tenant_id))
        time.sleep(2 * started)
        taken: dict[bool, list[float]] = {True: [], False: []}
        walls: dict[bool, float] = {True: 0.0, False: 0.0}
        beside = beside_seconds = 0.0
        for number in range(2 * rounds):
            is_sending = number % 2 == 0
            os.kill(worker.pid, signal.SIGCONT if is_sending else signal.SIGSTOP)
            before, began = sent_by(streamed.tenant_id), time.monotonic()
            while time.monotonic() - began < 2:
                body = events(rng, _AT_ONCE)
                at = time.monotonic()
                taken[is_sending].append(take_in(handler, intake, body) / _AT_ONCE * 1e6)
                walls[is_sending] += (time.monotonic() - at) / _AT_ONCE * 1e6
            if is_sending:
                beside += (sent_by(streamed.tenant_id) - before) / 2
                beside_seconds += time.monotonic() - began
        os.kill(worker.pid, signal.SIGCONT)
    finally:
        for process in filter(None, (worker, receiver)):
            process.kill()
            process.wait()
    return report(taken, walls, alone_rate, beside / beside_seconds)


def report(
    taken: dict[bool, list[float]], walls: dict[bool, float], alone: float, beside: float
) -> int:
    """Print the figures; 1 if one is over its limit."""
    without, with_it = (statistics.median(taken[each]) for each in (False, True))
    wall_without, wall_with = (walls[each] / len(taken[each]) for each in (False, True))
    share = with_it / without - 1
    print(f"{'calls/s streamed, alone':44}{alone:10,.0f}   limit {CALLS_LIMIT:,}")
    print(f"{'calls/s streamed, beside the intake':44}{beside:10,.0f}   limit {CALLS_LIMIT:,}")
    print(f"{'intake, µs an event: processor, without':44}{without:10.2f}")
    print(f"{'                     processor, with':44}{with_it:10.2f}")
    print(f"{'                     wall, without':44}{wall_without:10.2f}")
    print(f"{'                     wall, with':44}{wall_with:10.2f}")
    print(f"{'cost of the intake, processor':44}{share:10.1%}   limit {SHARE_LIMIT:.0%}")
    return int(min(alone, beside) < CALLS_LIMIT or share > SHARE_LIMIT)


def _used_by_children() -> float:
    """Processor seconds of the processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _start_seconds() -> tuple[float, float]:
    """How long a worker takes to start: by the clock, and of the processor."""
    began, used = time.monotonic(), _used_by_children()
    code = "import django; django.setup(); import audit.stream.sending"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    return time.monotonic() - began, _used_by_children() - used


def _wait_for(port: int) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit("the receiver does not listen")


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--calls", type=int, default=30_000, help="of the log that is sent")
    options.add_argument("--rounds", type=int, default=8, help="turns of each kind, 2 s each")
    options.add_argument("--receive", type=int, help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--send", type=UUID, help=argparse.SUPPRESS)
    options.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.receive:
        receive(chosen.receive, chosen.folder)
        return 0
    if chosen.send:
        send(chosen.send, once=chosen.once)
        return 0
    os.environ["TOOLTRAIL_STREAM_ALLOW"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as name, own_database(Path(name)):
        return measure(Path(name), chosen.calls, chosen.rounds)


if __name__ == "__main__":
    sys.exit(main())
