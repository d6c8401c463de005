"""Run the demonstration: a day of history first, then a steady trickle until stopped.

TOOLTRAIL_URL=… TOOLTRAIL_API_KEY=… python -m audit.demo [--calls 2000] [--no-trickle]
"""

import argparse
import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from tooltrail import Trail

from audit.demo import clock
from audit.demo.agents import Agents
from audit.demo.library import Library
from audit.demo.tools import RELEASES, make_tools
from audit.demo.upstream import Upstream

HISTORY_PACE = 40.0  # so a day's 2,000 calls take well under a minute
RELEASED_AGO = timedelta(hours=8)  # from then on, the history uses the tools' second release
CALLS_PER_TRACE = 7  # roughly; gives the number of traces for the requested calls
WATCHED_CALLS = 40  # in real time, before and after the release: its effect is visible at once
_SEED = 20


def main() -> int:
    """Parse the options and run. Exit code 0; 2 without a server's URL and key."""
    parser = argparse.ArgumentParser(prog="python -m audit.demo", description=__doc__)
    parser.add_argument("--calls", type=int, default=2_000, help="past calls (default 2000)")
    parser.add_argument("--no-trickle", action="store_true", help="exit after the past calls")
    parser.add_argument("--die", metavar="TRACE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not (os.environ.get("TOOLTRAIL_URL") and os.environ.get("TOOLTRAIL_API_KEY")):
        parser.error("TOOLTRAIL_URL and TOOLTRAIL_API_KEY must be set")
    # Hide the guard's warnings about outputs that are repaired on purpose.
    logging.getLogger("tooltrail.guard").setLevel(logging.ERROR)
    trail = Trail(clock=clock.now)
    library = Library()
    if options.die:
        return _die(trail, options.die)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if _calls_on_record() < options.calls // 2:
        _live_through_history(trail, library, options.calls, stop)
        _make_a_process_die(stop)
    if not options.no_trickle:
        _trickle(trail, library, stop)
    trail.flush(timeout=3 if stop.is_set() else 30)
    return 0


def _calls_on_record() -> int:
    """The server's number of calls in the last 24 h, so that a restart adds no second history."""
    request = urllib.request.Request(  # noqa: S310  # the configured server
        os.environ["TOOLTRAIL_URL"].rstrip("/") + "/api/v1/summary?range=24h",
        headers={"Authorization": f"Bearer {os.environ['TOOLTRAIL_API_KEY']}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310  # as above
            return int(json.load(answer)["calls"])
    except (OSError, ValueError, KeyError):
        return 0  # not reached, or the key may not read; the SDK keeps events meanwhile


def _live_through_history(
    trail: Trail, library: Library, calls: int, stop: threading.Event
) -> None:
    """Really execute a day's traces, at `HISTORY_PACE` and with the clock set back."""
    upstream = Upstream(library.documents, HISTORY_PACE)
    rng = random.Random(_SEED)
    now = datetime.now(UTC)
    # The smaller of two draws makes recent moments more frequent.
    moments = sorted(
        now - timedelta(hours=24 * min(rng.random(), rng.random() + 0.2))
        for _ in range(calls // CALLS_PER_TRACE)
    )

    for release in RELEASES:
        agents = Agents(trail, make_tools(trail, library, upstream, release))

        def live(number: int, at: datetime, seed: int, agents: Agents = agents) -> None:
            if not stop.is_set():
                with clock.living_at(at, HISTORY_PACE):
                    agents.run(number, random.Random(seed))

        with ThreadPoolExecutor(8) as pool:
            for number, at in enumerate(moments):
                if (at > now - RELEASED_AGO) == (release == RELEASES[-1]):
                    pool.submit(live, number, at, rng.getrandbits(32))
        agents.answers.send()
        _watch_release(trail, library, release, stop)
        trail.flush(timeout=30)  # the registry numbers versions in order of arrival
    with clock.living_at(now - timedelta(hours=3), 1):
        agents.leave_hanging(len(moments))
    upstream.close()
    trail.flush(timeout=30)
    print(f"demo: {len(moments)} past traces sent", file=sys.stderr)  # noqa: T201  # a command's output


def _watch_release(trail: Trail, library: Library, release: int, stop: threading.Event) -> None:
    """Call a release's weather tool in real time, since the registry publishes it in real time."""
    upstream = Upstream(library.documents, pace=1.0)
    agents = Agents(trail, make_tools(trail, library, upstream, release))
    with ThreadPoolExecutor(8) as pool:
        for number in range(WATCHED_CALLS):
            if not stop.is_set():
                pool.submit(agents.watch_weather, number + WATCHED_CALLS * release)
    upstream.close()


def _trickle(trail: Trail, library: Library, stop: threading.Event) -> None:
    """Run a trace every few seconds, in real time."""
    upstream = Upstream(library.documents, pace=1.0)
    agents = Agents(trail, make_tools(trail, library, upstream))
    rng = random.Random()
    while not stop.is_set():
        agents.run(int(time.time()), rng)
        agents.answers.send()
        stop.wait(rng.uniform(2, 8))


def _make_a_process_die(stop: threading.Event) -> None:
    """Start another executor that is killed in the middle of a call: a start without an end."""
    if not stop.is_set():
        subprocess.run(  # noqa: S603  # this module again
            [sys.executable, "-m", "audit.demo", "--die", f"demo-{int(time.time()):x}"],
            check=False,
            timeout=30,
        )


def _die(trail: Trail, trace_id: str) -> int:
    with (
        trail.trace(trace_id, run_id="graph_run_killed"),
        trail.record("export_report", {"format": "pdf", "pages": 12}),
    ):
        # Give the start event time to be sent. If it is not, the next executor sends it.
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    return 1


if __name__ == "__main__":
    sys.exit(main())
