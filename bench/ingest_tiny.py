"""Many tiny requests: is everybody served, and is the server bounded meanwhile?

    uv run python -m bench.ingest_tiny [--connections 200] [--seconds 10]

Each connection sends one event per request. It sends the next one when the response says
(`next_after_ms`, else immediately), and retries a refused one after `Retry-After`. Prints requests
per second, response times, number and times of refusals, the number of requests served on the
worst and the best connection, the peak memory of the web processes, and the longest response time
of `/healthz`.
"""

import argparse
import http.client
import json
import random
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from urllib.parse import urlsplit

import psutil
import uuid_utils

from bench.generated import trace
from bench.own_site import Site, counted, own_site


def endless(rng: random.Random) -> Iterator[list[bytes]]:
    """Calls without end, trace after trace."""
    while True:
        yield from trace(rng, scattered=False)


@dataclass
class Connection:
    """One sender and its response times."""

    site: Site
    served_ms: list[float] = field(default_factory=list)
    refused_ms: list[float] = field(default_factory=list)
    ends: int = 0

    def run(self, seed: int, together: threading.Barrier, seconds: float) -> None:
        """Send calls, one event per request, for `seconds`."""
        rng = random.Random(seed)
        parts = urlsplit(self.site.facts["url"])
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        calls = endless(rng)
        first = [next(calls) for _ in range(100)]  # generated before the measurement starts
        together.wait()
        until = time.monotonic() + seconds
        for start, end in chain(first, calls):
            for event in (start, end):
                while not self._sent(connection, event):
                    if time.monotonic() > until:
                        return
                self.ends += event is end
            if time.monotonic() > until:
                return

    def _sent(self, connection: http.client.HTTPConnection, event: bytes) -> bool:
        began = time.monotonic()
        connection.request(
            "POST",
            "/api/v1/events",
            event,
            {
                "Authorization": f"Bearer {self.site.facts['api_key']}",
                "Content-Type": "application/x-ndjson",
                "Idempotency-Key": str(uuid_utils.uuid7()),
            },
        )
        answer = connection.getresponse()
        document = json.loads(answer.read())
        took_ms = (time.monotonic() - began) * 1000
        if answer.status == 200:
            self.served_ms.append(took_ms)
            assert document["accepted"] == 1, document
            time.sleep(document.get("next_after_ms", 0) / 1000 * random.uniform(1.0, 1.2))
            return True
        assert answer.status == 503, (answer.status, document)
        self.refused_ms.append(took_ms)
        time.sleep(float(answer.headers["Retry-After"]) * random.uniform(1.0, 1.2))
        return False


def watched(site: Site, stop: threading.Event, seen: dict[str, float]) -> None:
    """Record the peak memory of the web processes and the longest response time of /healthz."""
    parts = urlsplit(site.facts["url"])
    while not stop.wait(0.1):
        children = psutil.Process(site.supervisor).children(recursive=True)
        rss = sum(
            c.memory_info().rss
            for c in children
            if "config.process.web_server" in " ".join(c.cmdline())
        )
        seen["rss"] = max(seen.get("rss", 0.0), rss / 2**20)
        began = time.monotonic()
        probe = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        probe.request("GET", "/healthz")
        probe.getresponse().read()
        probe.close()
        seen["healthz"] = max(seen.get("healthz", 0.0), (time.monotonic() - began) * 1000)


def show(heads: list[str], cells: list[str]) -> None:
    """Print a table with one row."""
    for row in (heads, cells):
        print("  ".join(f"{cell:>12}" for cell in row))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    with own_site() as site:
        together = threading.Barrier(options.connections)
        senders = [Connection(site) for _ in range(options.connections)]
        threads = [
            threading.Thread(target=sender.run, args=(seed, together, options.seconds))
            for seed, sender in enumerate(senders)
        ]
        stop, seen = threading.Event(), dict[str, float]()
        watcher = threading.Thread(target=watched, args=(site, stop, seen))
        for thread in (watcher, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        stop.set()
        watcher.join()
        served = [each for sender in senders for each in sender.served_ms]
        refused = [each for sender in senders for each in sender.refused_ms]
        shares = sorted(len(sender.served_ms) for sender in senders)
        cuts = statistics.quantiles(served, n=100, method="inclusive")
        late = statistics.quantiles(refused or [0, 0], n=100, method="inclusive")
        show(
            ["requests/s", "p50 ms", "p99 ms", "max ms", "refused", "refusal p50", "p99"],
            [
                f"{len(served) / options.seconds:,.0f}",
                *(f"{each:.1f}" for each in (cuts[49], cuts[98], max(served))),
                f"{len(refused):,}",
                *(f"{each:.1f}" for each in (late[49], late[98])),
            ],
        )
        show(
            ["least served", "median", "most", "web RSS MiB", "healthz max"],
            [
                *(str(each) for each in (shares[0], shares[len(shares) // 2], shares[-1])),
                f"{seen['rss']:.0f}",
                f"{seen['healthz']:.1f}",
            ],
        )
        known, ended = counted(site.facts), sum(sender.ends for sender in senders)
        if known != ended:
            raise SystemExit(f"{ended} calls were completed, {known} are counted")
        print(f"all {ended:,} completed calls are counted")


if __name__ == "__main__":
    main()
