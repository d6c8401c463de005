"""Which copy of the code answers a request in less: pages, and spans sent, in turns.

    uv run bench/requests_in_turns.py [--calls 300000] [--rounds 40] now=. before=../other-clone
    uv run bench/requests_in_turns.py --pages "calls, newest" --spans 512 50 -- now=. before=…

Each variant is a separate process in its folder, with a PostgreSQL of its own in which that
folder's `bench/pages.py` records the calls. It runs this script, so older copies need not have it.
The variants take turns in a new random order each time, so other work on the machine affects all of
them equally. Prints processor time: ms a page, µs a call of the spans. Medians of Python (all of
Django, without HTTP) and of PostgreSQL, median and best of their sum, and its median as a ratio to
that of the last variant. The same code twice differs by 1 to 3 %.
"""

import argparse
import base64
import gzip
import importlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.test import Client

DAYS = 30
TRACE = "trace-of-1000"
WARM = 10
"""Requests that do not count: caches are filled, statements planned, Python's code specialised."""
USUAL = ("overview, 30 days", "violations, 30 days", "a trace of 1,000 calls")


@dataclass
class Variant:
    """A process that makes the request in each line on its stdin and reports the times."""

    name: str
    process: subprocess.Popen[str]
    trace: str = ""
    """A trace that it has."""
    taken: list[tuple[float, float]] = field(default_factory=list)
    """Of each request: seconds of processor time of Python and of PostgreSQL."""

    def read(self) -> str:
        """Its next answer. Ends this process if it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip() or sys.exit(f"{self.name} has ended")

    def request(self, line: str) -> None:
        """Make a request: the address of a page, or a body of spans."""
        assert self.process.stdin is not None
        print(line, file=self.process.stdin, flush=True)
        python, postgres = map(float, self.read().split())
        self.taken.append((python, postgres))

    def row(self, unit: float, last: "Variant") -> str:
        """Its row of a table, in this unit of seconds."""
        counted, others = self.taken[WARM:], last.taken[WARM:]
        python, postgres = map(statistics.median, zip(*counted, strict=True))
        sums = [sum(each) for each in counted]
        median = statistics.median(sums)
        figures = (python, postgres, median, min(sums))
        ratio = median / statistics.median(sum(each) for each in others)
        texts = [f"{figure / unit:12.1f}" for figure in figures]
        return f"  {self.name:28}{''.join(texts)}{ratio:12.3f}"


def started(text: str, calls: int, now: datetime) -> Variant:
    """Start a variant, NAME=FOLDER, and wait until it has recorded its calls."""
    name, _, folder = text.partition("=")
    root = Path(folder).resolve()
    # -P: its modules come from its folder, not from that of this script.
    command = (root / ".venv/bin/python", "-P", Path(__file__).resolve(), "--answer")
    process = subprocess.Popen(
        [*command, str(calls), str(now)],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root), "TOOLTRAIL_LOG_LEVEL": "ERROR"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    variant = Variant(name, process)
    variant.trace = variant.read()
    return variant


def answer(calls: int, now: datetime) -> None:
    """Run as a variant: record, then make the request in each line of stdin."""
    from bench.own_database import own_database

    # What a parallel worker does would not be counted.
    settings = ("max_parallel_workers_per_gather = 0",)
    with tempfile.TemporaryDirectory() as folder, own_database(Path(folder), settings=settings):
        from django.core.management import call_command
        from django.db import connections

        from bench import pages
        from tenants.keys import create_key
        from tenants.models import Scope, Tenant
        from tenants.provision import ensure_tenant

        call_command("collectstatic", interactive=False, verbosity=0)
        importlib.import_module("config.wsgi")  # as in the server: all views, frozen
        tenant = Tenant.objects.get(id=ensure_tenant("bench", "Bench").id)
        hour = timedelta(hours=1)
        pages.record(tenant.id, now - 3 * hour, now - 2 * hour, 1_000, 1_000, TRACE)
        trace = pages.record(tenant.id, now - timedelta(days=DAYS), now, calls, 1)
        pages.analyze()
        client = pages.member(tenant.id)
        key = create_key(tenant, "spans", [Scope.INGEST])[1]
        print(trace, flush=True)
        for line in sys.stdin:
            send = _sender(client, key, line.strip())
            backend = Path(f"/proc/{connections['default'].connection.info.backend_pid}/schedstat")
            before = _clocks(backend)
            response = send()
            after = _clocks(backend)
            if response.status_code != 200:
                raise SystemExit(f"{response.status_code}: {line}")
            print(after[0] - before[0], after[1] - before[1], flush=True)


def _sender(client: "Client", key: str, line: str) -> Callable[[], Any]:
    if line.startswith("/"):
        return lambda: client.get(line)
    body, kind = base64.b64decode(line), "application/x-protobuf"
    headers = {"x-api-key": key, "authorization": "", "content-encoding": "gzip"}
    return lambda: client.post("/v1/traces", body, content_type=kind, headers=headers)


def _clocks(backend: Path) -> tuple[float, float]:
    """Seconds of processor time of this process and of its PostgreSQL."""
    return time.process_time(), int(backend.read_text().split()[0]) / 1e9


def measure(variants: list[Variant], lines: Iterable[list[str]], unit: float) -> None:
    """Request in turns, and print a row for each variant. `lines` are one for each, in rounds."""
    for variant in variants:
        variant.taken.clear()
    for each in lines:
        turns = list(zip(variants, each, strict=True))
        for variant, line in random.sample(turns, len(turns)):
            variant.request(line)
    for variant in variants:
        print(variant.row(unit, variants[-1]), flush=True)


def bodies(rounds: int, spans: int) -> Iterator[str]:
    """Bodies with so many spans, each of which is a call; all variants get the same."""
    from bench.otlp import make_body

    rng = random.Random(spans)
    for _ in range(rounds):
        body = gzip.compress(make_body(rng, spans, others=0)[0], compresslevel=1)
        yield base64.b64encode(body).decode()


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--answer"]:
        answer(int(sys.argv[2]), datetime.fromisoformat(sys.argv[3]))
        return
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from bench.page_limits import PAGES
    from bench.pages import address_of

    names = [page.name for page in PAGES]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--calls", type=int, default=300_000, help="calls per variant")
    parser.add_argument("--rounds", type=int, default=40, help="requests of each kind")
    parser.add_argument("--pages", nargs="*", default=USUAL, choices=names, metavar="PAGE")
    parser.add_argument("--spans", type=int, nargs="*", default=[], help="spans per request")
    parser.add_argument("variants", nargs="+", metavar="NAME=FOLDER")
    options = parser.parse_args()
    now, rounds = datetime.now(UTC), WARM + options.rounds
    variants = [started(each, options.calls, now) for each in options.variants]
    heads = ("Python", "PostgreSQL", "sum", "best sum", "ratio")
    print(f"{'':30}" + "".join(f"{head:>12}" for head in heads))
    for page in (page for page in PAGES if page.name in options.pages):
        print(f"{page.name}, ms")
        lines = [address_of(page, variant.trace, now) for variant in variants]
        measure(variants, repeat(lines, rounds), 1e-3)
    for spans in options.spans:
        print(f"{spans} spans a request, µs a call")
        measure(variants, ([body] * len(variants) for body in bodies(rounds, spans)), spans / 1e6)
    for variant in variants:
        assert variant.process.stdin is not None
        variant.process.stdin.close()
        variant.process.wait()


if __name__ == "__main__":
    main()
