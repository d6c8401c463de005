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
AFTER_S = 15
"""How long the probe continues after the last kill, at most."""


class Probe:
    """Polls /readyz: the longest time without a 200, and the last time of a 200."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url).netloc
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.away_s = 0.0
        self.ready_at = 0.0

    def _run(self) -> None:
        last_ready_at = time.monotonic()
        while not self._stop.wait(0.02):
            connection = http.client.HTTPConnection(self._address, timeout=1)
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/readyz")
                if connection.getresponse().status == http.HTTPStatus.OK:
                    self.away_s = max(self.away_s, time.monotonic() - last_ready_at)
                    self.ready_at = last_ready_at = time.monotonic()
            connection.close()
        self.away_s = max(self.away_s, time.monotonic() - last_ready_at)

    def __enter__(self) -> "Probe":
        self._thread.start()
        time.sleep(0.5)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def back_s(self) -> float:
        """The time from now, right after a kill, until the server is ready again."""
        killed_at = time.monotonic()
        # 0.1 s: an answer that was under way when the processes were killed does not count.
        while self.ready_at < killed_at + 0.1 and time.monotonic() < killed_at + AFTER_S:
            time.sleep(0.01)
        return time.monotonic() - killed_at


def one(server: psutil.Process) -> None:
    """One web process, once."""
    server.children()[0].kill()


def every(server: psutil.Process) -> None:
    """All web processes, once."""
    for child in server.children():
        child.kill()


def every_second(server: psutil.Process) -> None:
    """All web processes, 10 times, every 1.2 s."""
    again(server, 1.2)


def every_half_second(server: psutil.Process) -> None:
    """All web processes, 10 times, every 0.5 s."""
    again(server, 0.5)


def again(server: psutil.Process, interval_s: float) -> None:
    """Kill all web processes 10 times."""
    for _ in range(9):
        every(server)
        time.sleep(interval_s)
    every(server)


def parent(server: psutil.Process) -> None:
    """The parent of the web processes, once."""
    server.kill()


def parents(server: psutil.Process) -> None:
    """The parent of the web processes, 10 times, every 1.2 s."""
    supervisor = server.parent()
    for round_ in range(10):
        if round_:
            time.sleep(1.2)
        for each in servers(supervisor):
            each.kill()


def servers(supervisor: psutil.Process | None) -> list[psutil.Process]:
    """The web server's parent process, unless it waits to be started again."""
    children = supervisor.children() if supervisor else []
    return [each for each in children if is_server(each)]


def is_server(process: psutil.Process) -> bool:
    """Whether it is the parent of the web processes."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return "config.process.web_server" in process.cmdline()
    return False


def measure(kill: Callable[[psutil.Process], None]) -> tuple[float, float]:
    """Return the longest time without a ready server, and that after the last kill, in seconds."""
    with new_installation() as installation:
        process = installation.up("--json", "--dev-tenant", "acme")
        url = announcement(process)["url"]
        (server,) = servers(psutil.Process(process.pid))
        with Probe(url) as probe:
            time.sleep(5)  # a process that lived longer is restarted without delay
            kill(server)
            back_s = probe.back_s()
        end(process)
        return probe.away_s, back_s


def main() -> None:
    """Print a row for each kind of kill."""
    print(f"{f'killed (worst of {ROUNDS})':<44} {'away, s':>9} {'after the last kill, s':>24}")
    for kill in (one, every, every_second, every_half_second, parent, parents):
        away_s, back_s = map(max, zip(*(measure(kill) for _ in range(ROUNDS)), strict=True))
        print(f"{(kill.__doc__ or '').rstrip('.'):<44} {away_s:>9.2f} {back_s:>24.2f}", flush=True)


if __name__ == "__main__":
    main()
