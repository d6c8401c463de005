"""What `tooltrail mcp` adds to a call, and the memory it takes, beside a server without it.

    uv run python -m bench.mcp_recorder [--calls 2000] [--rounds 3]

The server is sdk/tests/support/mcp_server.py: it answers at once, so the table shows the recorder
and nothing else. The ways are measured in turns. The spool is in a temporary folder, and no server
takes the events. Exit code 1 if the recorder adds more than 1 ms (p50), or takes 64 MiB.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from sdk.tests.support.mcp_client import (
    piped,
    recorder_command,
    recorder_environment,
    server_command,
)

LIMIT_MS = 1.0
LIMIT_MIB = 64
UNREACHABLE = "http://127.0.0.1:9"


def measure(command: list[str], calls: int, spool: Path) -> tuple[list[float], float]:
    """Milliseconds of each call, and the peak memory of the process in MiB."""
    took = []
    with piped(command, recorder_environment(UNREACHABLE, spool)) as client:
        for number in range(calls):
            began = time.perf_counter()
            client.call(number, city="London", number=number)
            took.append((time.perf_counter() - began) * 1000)
        return took, client.peak_mib


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ways = {
        "without": server_command(),
        "with": [*recorder_command(), *server_command()],
        "with --fail-closed": [*recorder_command("--fail-closed"), *server_command()],
    }
    took: dict[str, list[float]] = {way: [] for way in ways}
    peaks = dict.fromkeys(ways, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            for way, command in ways.items():
                spool = Path(folder) / f"{number} {way}"
                times, peak = measure(command, options.calls, spool)
                took[way] += times[len(times) // 10 :]  # without the start
                peaks[way] = max(peaks[way], peak)
    print("| | p50 ms | p99 ms | peak MiB |\n| --- | --- | --- | --- |")
    for way, times in took.items():
        p99 = statistics.quantiles(times, n=100)[98]
        print(f"| {way} | {statistics.median(times):.3f} | {p99:.3f} | {peaks[way]:.1f} |")
    base = statistics.median(took["without"])
    added = max(statistics.median(times) for times in took.values()) - base
    print(f"\nadded: {added:.3f} ms (p50)")
    return int(added > LIMIT_MS or max(peaks.values()) >= LIMIT_MIB)


if __name__ == "__main__":
    sys.exit(main())
