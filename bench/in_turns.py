"""Which copy of the code, or which setting, stores an event in less: in turns, request by request.

    uv run bench/in_turns.py [--calls 50000] now=. before=../other-clone
    uv run bench/in_turns.py now=. "large=.;PG:shared_buffers = 1GB" "bare=.;SQL:DROP INDEX …"

Each variant is a separate process in its folder, with a PostgreSQL of its own and without HTTP. It
runs that folder's own copy of this script and its `.venv`, because modules move between versions.
It stores requests of 500 events as the view does. The variants take turns in a new random order
each time, so other work on the machine affects all of them equally. `bench/ingest.py` differs by a
fifth from run to run; here the same code differs by 1 to 3 %. After the folder, `NAME=value` sets
an environment variable, `PG:` sets a PostgreSQL setting, and `SQL:` runs a statement as the owner
before the start. Prints µs per event: CPU time of Python and of PostgreSQL, and wall time.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

SIZE = 500
CHUNK = 5_000  # calls generated at once, which limits memory


@dataclass
class Variant:
    """A process that stores a request for each line on its stdin and reports the times."""

    name: str
    process: subprocess.Popen[str]
    taken: list[tuple[float, ...]] = field(default_factory=list)
    """Per request: events, and seconds of CPU time (Python, PostgreSQL) and of wall time."""

    def store(self) -> None:
        """Store the next request."""
        stdin, stdout = _streams(self.process)
        stdin.write("next\n")
        stdin.flush()
        self.taken.append(tuple(map(float, stdout.readline().split())))

    def row(self) -> str:
        """The variant's row of the table: medians of all requests."""
        figures = (
            statistics.median(each[at] / each[0] for each in self.taken) * 1e6 for at in (1, 2, 3)
        )
        return f"{self.name:20}" + "".join(f"{each:>12.1f}" for each in figures)


def started(text: str) -> Variant:
    """Start a variant: name=folder;NAME=value;PG:setting;SQL:statement."""
    name, _, rest = text.partition("=")
    folder, *options = rest.split(";")
    plain = [each for each in options if not each.startswith(("PG:", "SQL:"))]
    root = Path(folder).resolve()
    command = (root / ".venv/bin/python", root / "bench/in_turns.py", "--store")
    process = subprocess.Popen(
        [*command, *(each for each in options if each not in plain)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)} | dict(each.split("=", 1) for each in plain),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    if _streams(process)[1].readline() != "ready\n":
        raise SystemExit(f"{name} does not start")
    return Variant(name, process)


def store_in_turns(options: list[str]) -> None:
    """Run as a variant: store a request for each line of stdin."""
    from bench.own_database import own_database

    settings = tuple(each.removeprefix("PG:") for each in options if each.startswith("PG:"))
    with tempfile.TemporaryDirectory() as folder, own_database(Path(folder), settings=settings):
        from django.db import connections

        from audit.events import body
        from audit.events.batch_ids import choose_batch_id
        from audit.intake import ingest
        from bench.generated import make_requests
        from tenants.provision import ensure_tenant

        tenant_id = ensure_tenant("bench", "Bench").id
        with connections["owner"].cursor() as cursor:
            for each in options:
                if each.startswith("SQL:"):
                    cursor.execute(each.removeprefix("SQL:"))

        def store(batch_id: str, sent: bytes) -> None:
            now = datetime.now(UTC)
            raw = body.inflate(sent, "gzip")
            batch = choose_batch_id(batch_id, now)
            read = ingest.read_request(tenant_id, raw, body.split_lines(raw), batch, now)
            ingest.record_batches([read])

        for batch_id, sent, _ in make_requests(2_000, SIZE, seed=0).ready:
            store(batch_id, sent)
        backend = Path(f"/proc/{connections['default'].connection.info.backend_pid}/schedstat")
        print("ready", flush=True)
        waiting: list[tuple[str, bytes, int]] = []
        for seed, _ in enumerate(sys.stdin, 1):
            waiting = waiting or make_requests(CHUNK, SIZE, seed).ready[::-1]
            batch_id, sent, count = waiting.pop()
            before = _clocks(backend)
            store(batch_id, sent)
            elapsed = (now - then for now, then in zip(_clocks(backend), before, strict=True))
            print(count, *elapsed, flush=True)


def _clocks(backend: Path) -> tuple[float, float, float]:
    """Seconds of CPU time of this process and of its PostgreSQL, and of wall time."""
    nanoseconds = int(backend.read_text().split()[0])
    return time.process_time(), nanoseconds / 1e9, time.perf_counter()


def _streams(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--store"]:
        store_in_turns(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--calls", type=int, default=50_000, help="calls per variant")
    parser.add_argument("variants", nargs="+", metavar="NAME=FOLDER[;OPTION…]")
    options = parser.parse_args()
    variants = [started(each) for each in options.variants]
    for _ in range(options.calls * 2 // SIZE):
        for variant in random.sample(variants, len(variants)):
            variant.store()
    print(f"{'µs an event':20}{'Python':>12}{'PostgreSQL':>12}{'wall time':>12}")
    for variant in variants:
        print(variant.row())
        _streams(variant.process)[0].close()
        variant.process.wait()


if __name__ == "__main__":
    main()
