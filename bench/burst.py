"""An opening burst of small requests on as many connections: how soon is who refused?

    uv run python -m bench.burst [--connections 200] [--rounds 5]

Opens all connections to a fresh `up`, then sends one request with one event on each at the same
time, and reads the responses as they arrive. It uses one thread and no client library, so that it
measures the server and not the client. Prints a line per round: how many requests were stored and
refused, and the response times. In the first round the server has just started.
"""

import argparse
import json
import selectors
import socket
import statistics
import time
from pathlib import Path
from urllib.parse import urlsplit

import uuid_utils

from bench.own_site import own_site

ROOT = Path(__file__).resolve().parent.parent


def request(key: str) -> bytes:
    """A request with one new event."""
    event = {
        "type": "toolExecutionStart",
        "invocation_id": str(uuid_utils.uuid7()),
        "trace_id": "burst",
        "tool_name": "echo",
        "tool_version": "1",
        "call_id": "0" * 64,
        "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "args": {"text": "x" * 300},
    }
    body = json.dumps(event).encode() + b"\n"
    head = (
        "POST /api/v1/events HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {key}\r\nContent-Type: application/x-ndjson\r\n"
        f"Idempotency-Key: {uuid_utils.uuid7()}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def burst(url: str, key: str, count: int) -> dict[int, list[float]]:
    """Milliseconds to the first bytes of the responses, by status."""
    parts = urlsplit(url)
    requests = [request(key) for _ in range(count)]
    selector = selectors.DefaultSelector()
    sent_at: dict[socket.socket, float] = {}
    took_ms: dict[int, list[float]] = {}
    for _ in requests:
        connection = socket.create_connection((parts.hostname or "", parts.port or 0))
        connection.setblocking(False)
        sent_at[connection] = 0.0
        selector.register(connection, selectors.EVENT_READ)
    for connection, each in zip(sent_at, requests, strict=True):
        sent_at[connection] = time.perf_counter()
        connection.sendall(each)
    left = count
    while left:
        for event, _ in selector.select():
            connection = event.fileobj  # type: ignore[assignment]  # the registered socket
            answer = connection.recv(65536)
            now = time.perf_counter()
            status = int(answer[9:12]) if answer else 0
            took_ms.setdefault(status, []).append((now - sent_at[connection]) * 1000)
            selector.unregister(connection)
            connection.close()
            left -= 1
    return took_ms


def shown(times: list[float]) -> list[str]:
    """Number, median, 99th percentile and maximum, as table cells."""
    if not times:
        return ["0", "", "", ""]
    cuts = statistics.quantiles([*times, *times], n=100, method="inclusive")
    return [str(len(times)), f"{cuts[49]:.1f}", f"{cuts[98]:.1f}", f"{max(times):.1f}"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with own_site() as site:
        facts = site.facts
        heads = ["round", "stored", "p50 ms", "p99", "max", "refused", "p50 ms", "p99", "max"]
        print("  ".join(f"{head:>8}" for head in [*heads, "other"]))
        for number in range(1, options.rounds + 1):
            took_ms = burst(facts["url"], facts["api_key"], options.connections)
            stored, refused = took_ms.pop(200, []), took_ms.pop(503, [])
            cells = [str(number), *shown(stored), *shown(refused), str(sorted(took_ms))]
            print("  ".join(f"{cell:>8}" for cell in cells))
            time.sleep(6)  # until the cache of verified keys has expired


if __name__ == "__main__":
    main()
