"""How long the server is unavailable when its processes are killed.

    uv run python bench/web_kills.py

A client requests /readyz every 20 ms, each time with a new connection.
"""

import contextlib
import http.client
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent.parent))

import psutil

from tests.support.installation import announcement, end, new_installation

ROUNDS = 3
KILLS = 10


class Probe:
    """Polls /readyz and keeps the longest time without a 200."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.away_s = 0.0

    def _run(self) -> None:
        yes_at = time.monotonic()
        while not self._stop.wait(0.02):
            connection = http.client.HTTPConnection(self._address, timeout=1)
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/readyz")
                if connection.getresponse().status == http.HTTPStatus.OK:
                    yes_at = time.monotonic()
            connection.close()
            self.away_s = max(self.away_s, time.monotonic() - yes_at)

    def __enter__(self) -> "Probe":
        self._thread.start()
        time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        time.sleep(5)
        self._stop.set()
        self._thread.join()


def one(server: psutil.Process) -> None:
    """Kill one web process."""
    server.children()[0].kill()


def every(server: psutil.Process) -> None:
    """Kill all web processes at the same time."""
    for child in server.children():
        child.kill()


def again_and_again(server: psutil.Process) -> None:
    """Kill all web processes every 0.5 s."""
    for _ in range(KILLS):
        every(server)
        time.sleep(0.5)


def parent(server: psutil.Process) -> None:
    """Kill the parent of the web processes."""
    server.kill()


def away_s(kill: Callable[[psutil.Process], None]) -> float:
    """The longest time without a ready server during these kills."""
    with new_installation() as installation:
        process = installation.up("--json", "--dev-tenant", "acme")
        url = announcement(process)["url"]
        children = psutil.Process(process.pid).children()
        (server,) = [each for each in children if "config.process.web_server" in each.cmdline()]
        with Probe(url) as probe:
            kill(server)
        end(process)
        return probe.away_s


def main() -> None:
    """Print a row for each kind of kill."""
    print(f"{'killed':<40} {'away, s (worst of ' + str(ROUNDS) + ')':>24}")
    for kill in (one, every, again_and_again, parent):
        worst = max(away_s(kill) for _ in range(ROUNDS))
        print(f"{(kill.__doc__ or '').rstrip('.'):<40} {worst:>24.2f}", flush=True)


if __name__ == "__main__":
    main()
