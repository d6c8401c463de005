"""What `tooltrail mcp` adds to a call, beside a server without it, and the memory it takes.

    uv run python -m bench.mcp_recorder [--calls 2000] [--rounds 3]

The servers are sdk/tests/support/mcp_server.py and mcp_http_server.py: they answer at once, so the
first table shows the recorder and nothing else. Its ways are measured in turns. The second one is
of hostile servers. The spool is in a temporary folder, and no server takes the events. Exit code 1
if the recorder adds more than 1 ms (p50), or takes 64 MiB (Linux).
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path

from sdk.tests.support.mcp_client import (
    piped,
    recorder_command,
    recorder_environment,
    server_command,
)
from sdk.tests.support.mcp_http_client import (
    Listening,
    call,
    call_text,
    recording_over_http,
    serving_over_http,
)

LIMIT_MS = 1.0
LIMIT_MIB = 64
UNREACHABLE = "http://127.0.0.1:9"
HOSTILE = {
    "long": "an answer of 100 MB",
    "values": "300,000 values",
    "secrets": "22,000 secrets in a text",
    "objects": "7,000 secrets in objects, 20,000 in a text",
    "endless": "an answer without end",
}
HOSTILE_BYTES = 100_000_000

type Way = Callable[[int, Path], tuple[list[float], float]]
"""Makes so many calls with a spool folder: the milliseconds of each, and the peak memory in MiB."""


def over_pipes(recorder: Sequence[str]) -> Way:
    """Calls over standard streams, behind a recorder if its command is given."""

    def measure(calls: int, spool: Path) -> tuple[list[float], float]:
        command = [*recorder, *server_command()]
        with piped(command, recorder_environment(UNREACHABLE, spool)) as client:
            took = list(timed(calls, lambda number: client.call(number, n=number)))
            return took, client.peak_mib

    return measure


def over_http(form: str, *options: str, is_recorded: bool = True) -> Way:
    """Calls over one connection, answered with JSON or with events."""

    def measure(calls: int, spool: Path) -> tuple[list[float], float]:
        with target(spool, "echo", *options, is_recorded=is_recorded) as listening:
            connection = listening.connect()
            took = list(timed(calls, lambda number: call(connection, form, number)))
            connection.close()
            return took, listening.peak_mib

    return measure


@contextmanager
def target(spool: Path, mode: str, *options: str, is_recorded: bool = True) -> Iterator[Listening]:
    """A server of a mode, or a recorder before it."""
    with serving_over_http(mode) as server:
        if not is_recorded:
            yield server
            return
        environment = recorder_environment(UNREACHABLE, spool)
        with recording_over_http(server.port, environment, *options) as recorder:
            yield recorder


def timed(calls: int, make: Callable[[int], object]) -> Iterator[float]:
    """Make calls. Yields the milliseconds of each."""
    for number in range(calls):
        began = time.perf_counter()
        make(number)
        yield (time.perf_counter() - began) * 1000


WAYS: dict[str, dict[str, Way]] = {
    "standard streams": {
        "without": over_pipes([]),
        "with": over_pipes(recorder_command()),
        "with `--fail-closed`": over_pipes(recorder_command("--fail-closed")),
    },
    **{
        f"HTTP, {what}": {
            "without": over_http(form, is_recorded=False),
            "with": over_http(form),
            "with `--fail-closed`": over_http(form, "--fail-closed"),
        }
        for what, form in {"JSON": "/json", "events": "/sse"}.items()
    },
}


def compare(calls: int, rounds: int, folder: Path) -> bool:
    """Print what a call takes in each way. Returns whether the recorder is within its limits."""
    took: dict[tuple[str, str], list[float]] = {}
    peaks: dict[tuple[str, str], float] = {}
    for number in range(rounds):
        for transport, ways in WAYS.items():
            for way, measure in ways.items():
                key = transport, way
                times, peak = measure(calls, folder / f"{number}{len(peaks)}{transport}{way}")
                took.setdefault(key, []).extend(times[len(times) // 10 :])  # without the start
                peaks[key] = max(peaks.get(key, 0.0), peak)
    print("| | | p50 ms | p99 ms | added p50 | peak MiB |\n| --- | --- | --- | --- | --- | --- |")
    is_within = True
    for (transport, way), times in took.items():
        p50, p99 = statistics.median(times), statistics.quantiles(times, n=100)[98]
        added = p50 - statistics.median(took[transport, "without"])
        told = "" if way == "without" else f"{added:.3f}"
        figures = f"{p50:.3f} | {p99:.3f} | {told} | {peaks[transport, way]:.1f}"
        print(f"| {transport} | {way} | {figures} |")
        is_within = is_within and added <= LIMIT_MS and peaks[transport, way] < LIMIT_MIB
    return is_within


def be_hostile(folder: Path) -> bool:
    """Print what memory hostile servers make it take. Returns whether it is within its limit."""
    print("\n| peak MiB | standard streams | HTTP | 32 clients |\n| --- | --- | --- | --- |")
    is_within = True
    for mode, what in HOSTILE.items():
        peaks = [hostile_over_pipes(mode, folder / f"{mode} pipes")]
        peaks += [hostile_over_http(mode, each, folder / f"{mode} {each}") for each in (1, 32)]
        print(f"| {what} | {' | '.join(f'{peak:.1f}' for peak in peaks)} |")
        is_within = is_within and max(peaks) < LIMIT_MIB
    return is_within


def hostile_over_pipes(mode: str, spool: Path) -> float:
    command = [*recorder_command(), *server_command(mode)]
    with piped(command, recorder_environment(UNREACHABLE, spool)) as client:
        for number in range(3):
            client.request(number, "tools/call", {"name": "echo", "arguments": {}})
            size = 0
            while size < HOSTILE_BYTES and b"\n" not in client.received[-1 << 20 :]:
                client.received.clear()
                size += len(client.read_some())
            client.received.clear()
        return client.peak_mib


def hostile_over_http(mode: str, clients: int, spool: Path) -> float:
    def read(number: int) -> None:
        connection, size = recorder.connect(), 0
        with suppress(OSError, HTTPException):
            connection.request("POST", "/sse", call_text(number))
            answer = connection.getresponse()
            while size < HOSTILE_BYTES // clients and (part := answer.read1(1 << 16)):
                size += len(part)
        connection.close()

    with target(spool, mode) as recorder, ThreadPoolExecutor(clients) as pool:
        list(pool.map(read, range(clients * 2)))
        return recorder.peak_mib


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        is_fast = compare(options.calls, options.rounds, Path(folder))
        is_small = be_hostile(Path(folder))
    return int(not (is_fast and is_small))


if __name__ == "__main__":
    sys.exit(main())
