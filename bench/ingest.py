"""How fast events are stored: calls a second, and how long an answer takes.

    uv run python -m bench.ingest [--calls 40000] [--loads 500x4 20x4 20x12] [--scattered]
    uv run python -m bench.ingest --grow 5000000

Starts `manage.py up` with its default settings in a folder of its own, and client processes. Each
client has one connection and sends its next request after the response to the last one, as the SDK
does: gzip level 1, an `Idempotency-Key`, and it waits for `Retry-After`. A load is events per
request x clients: senders of small requests are many. A call is two events, generated and
compressed before the measurement starts; `size` is events per request. Calls are from the last two
minutes and have ids ordered by time, like the SDK's; with `--scattered` neither, like imports.

The rate covers the time in which all clients were sending: from the start of the last client to
the end of the first. Everything shares this machine's cores, including the clients. On a busy
machine trust the columns of CPU time (all web processes, all of PostgreSQL) rather than calls per
second. At the end the server must have counted every call. Then `ingest_parts.py` prints the cost
of each part, and how many of these rows per second PostgreSQL stores with a plain COPY.

`--grow` sends that many events instead. At each million it prints the memory of the web server's
processes and the size of the database, compared with the uncompressed bytes of the events.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bench.generated import make_requests
from bench.own_site import ROOT, Site, counted, own_site

CHUNK = 250_000  # events generated at once, which limits memory
GROWING_CLIENTS = 4


class Report(NamedTuple):
    """A client's report."""

    began: float
    answers: list[tuple[float, float, int]]
    """Per request: time of the response, seconds that it took, and number of events."""
    raw_bytes: int


def client(
    url: str,
    key: str,
    calls: int,
    size: int,
    seed: int,
    scattered: bool,
    together: Barrier,
    results: Any,
) -> None:
    """Send the requests; put a Report into `results`, or a text that says why it failed."""
    requests = make_requests(calls, size, seed, scattered=scattered)
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.connect()
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/x-ndjson",
        "Content-Encoding": "gzip",
    }
    answers: list[tuple[float, float, int]] = []
    together.wait()
    began = time.monotonic()
    for batch_id, body, count in requests.ready:
        while True:
            sent = time.monotonic()
            named = {**headers, "Idempotency-Key": batch_id}
            connection.request("POST", "/api/v1/events", body, named)
            answer = connection.getresponse()
            document = json.loads(answer.read())
            if answer.status != 503:
                break
            time.sleep(float(answer.headers["Retry-After"]))
        answered = time.monotonic()
        answers.append((answered, answered - sent, count))
        if answer.status != 200 or document["accepted"] != count:
            results.put(f"{answer.status}: {document}")
            return
    results.put(Report(began, answers, requests.raw_bytes))


def send(site: Site, calls: int, clients: int, size: int, seed: int) -> list[Report]:
    """Send so many calls and return the clients' reports. Exits if a request was refused."""
    context = multiprocessing.get_context("spawn")
    results, together = context.Queue(), context.Barrier(clients)
    share = calls // clients
    processes = [
        context.Process(
            target=client,
            args=(
                site.facts["url"],
                site.facts["api_key"],
                share,
                size,
                seed + n,
                site.is_scattered,
                together,
                results,
            ),
        )
        for n in range(clients)
    ]
    for process in processes:
        process.start()
    reports = [results.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
    if refused := [report for report in reports if isinstance(report, str)]:
        raise SystemExit(refused[0][:1000])
    return reports


def measure(site: Site, calls: int, clients: int, size: int, seed: int) -> list[str]:
    """One line of the table."""
    before = site.cpu_seconds()
    reports = send(site, calls, clients, size, seed)
    count = calls // clients * clients
    cpu = [(now - then) / (count * 2) for now, then in zip(site.cpu_seconds(), before, strict=True)]
    began = max(report.began for report in reports)
    ended = min(report.answers[-1][0] for report in reports)
    answers = [answer for report in reports for answer in report.answers]
    events = sum(count for answered, _, count in answers if began < answered <= ended)
    rate = events / (ended - began)
    answers_ms = [seconds * 1000 for _, seconds, _ in answers]
    cuts = statistics.quantiles(answers_ms, n=100, method="inclusive")
    return [
        f"{count:,}",
        f"{sum(report.raw_bytes for report in reports) / count / 2:,.0f}",
        f"{rate / 2:,.0f}",
        f"{rate:,.0f}",
        f"{cuts[49]:.1f}",
        f"{cuts[98]:.1f}",
        f"{max(answers_ms):.1f}",
        *(f"{each * 1e6:.1f}" for each in cpu),
    ]


def grow(site: Site, events: int, clients: int) -> None:
    """Send so many events and print memory and disk size at each million."""
    heads = ["events", "web MiB", "sent MiB", "database MiB", "share of sent"]
    print("  ".join(f"{head:>13}" for head in heads))
    base = site.var / "postgres" / "data" / "base"
    sent, raw, empty = 0, 0, size_of(base)
    while sent < events:
        reports = send(site, CHUNK // 2, clients, 500, seed=10_000 + sent)
        sent += CHUNK
        raw += sum(report.raw_bytes for report in reports)
        if sent % 1_000_000:
            continue
        grown = size_of(base) - empty
        web = sum(process.memory_info().rss for process in site.web())
        row = [f"{sent:,}", *(f"{each / 2**20:,.0f}" for each in (web, raw, grown))]
        print("  ".join(f"{cell:>13}" for cell in [*row, f"{grown / raw:.2f}"]), flush=True)


def size_of(folder: Path) -> int:
    """Total bytes of the files in a folder tree; skips files that vanish during the count."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(path) / name).stat().st_size
            except FileNotFoundError:
                continue
    return total


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--calls", type=int, default=40_000, help="calls per table row")
    parser.add_argument(
        "--loads",
        nargs="+",
        default=["500x4", "20x4", "20x12"],
        metavar="EVENTSxCLIENTS",
        help="events a request, and how many send at once",
    )
    parser.add_argument("--scattered", action="store_true", help="random times and ids")
    parser.add_argument("--grow", type=int, metavar="EVENTS", help="memory and disk only")
    options = parser.parse_args()
    heads = ["load", "calls", "bytes/event", "calls/s", "events/s", "p50 ms", "p99 ms", "max ms"]
    heads += ["web µs/ev", "pg µs/ev"]
    with own_site() as site:
        site = replace(site, is_scattered=options.scattered)
        facts, var = site.facts, site.var
        measure(site, 2_000, GROWING_CLIENTS, 500, seed=0)  # warm
        if options.grow:
            grow(site, options.grow, GROWING_CLIENTS)
            return
        known = counted(facts)
        before = size_of(var / "postgres" / "data" / "base")
        print("  ".join(f"{head:>11}" for head in heads))
        sent, reached = 0, dict[int, int]()
        for seed, load in enumerate(options.loads, 1):
            size, clients = map(int, load.split("x"))
            row = measure(site, options.calls, clients, size, seed * 1000)
            print("  ".join(f"{cell:>11}" for cell in [load, *row]), flush=True)
            sent += int(row[0].replace(",", ""))
            reached[size] = max(reached.get(size, 0), int(row[3].replace(",", "")))
        if counted(facts) != known + sent:
            raise SystemExit(f"{sent} calls were sent, {counted(facts) - known} are counted")
        grown = size_of(var / "postgres" / "data" / "base") - before
        print(
            f"all {sent:,} calls are counted;"
            f" {grown / sent / 1024:.1f} KiB of tables and indexes a call"
        )
        batch_counts = [f"{size}={events}" for size, events in reached.items()]
        subprocess.run(
            [sys.executable, ROOT / "bench/ingest_parts.py", facts["tenant_id"], *batch_counts],
            cwd=ROOT,
            env=os.environ | {"TOOLTRAIL_VAR": str(var)},
            check=True,
        )


if __name__ == "__main__":
    main()
