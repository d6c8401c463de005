"""A process that the supervisor keeps running, and what it prints about it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from config.instance import BASE_DIR, LOG_FORMAT
from config.process.json_lines import json_line

_RESTART_MAX_S = 60.0
_LIVED_S = 5.0
"""A process that lived longer did not fail during its start, nor did one that a signal killed
(out of memory, an operator, a fault in native code). Such a process is restarted immediately."""


@dataclass
class Child:
    """A process that is kept running, with all processes it starts (its own process group)."""

    name: str
    command: list[str]
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    takes_over: bool = False
    """Whether the processes of a killed one continue until the next has loaded and ends them.

    Its command then takes `--replaces` and their process groups."""
    _orphans: list[int] = field(default_factory=list)
    _process: subprocess.Popen[bytes] | None = None
    _started_at: float = 0.0
    _restart_at: float | None = None
    _restart_delay_s: float = 1.0

    def start(self) -> None:
        """Start it. Its output goes to stderr, because stdout is for the announcement."""
        self._started_at = time.monotonic()
        self._restart_at = None
        self._orphans = [group for group in self._orphans if _kill_group(group, 0)]
        replaces = ["--replaces", *map(str, self._orphans)] if self._orphans else []
        self._process = subprocess.Popen(  # noqa: S603  # our own commands
            [*self.command, *replaces],
            cwd=BASE_DIR,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            # Ctrl-C in a terminal must reach only us: we decide the order of stopping.
            start_new_session=True,
        )

    @property
    def groups(self) -> list[int]:
        """Ids of the process groups that run: its own, and those left of killed ones."""
        return [*self._orphans, *([self._process.pid] if self._process else [])]

    def poll(self) -> int | None:
        """Return the exit code if it has ended."""
        return self._process.poll() if self._process else None

    def restart_if_due(self) -> bool:
        """Start it again if it has ended and its delay is over. Return whether it was started."""
        now = time.monotonic()
        if self._process is not None and (code := self._process.poll()) is not None:
            if self.takes_over and code < 0:
                self._orphans.append(self._process.pid)
            else:
                _kill_group(self._process.pid, signal.SIGKILL)  # processes it left behind
            self._process = None
            if code < 0 or now - self._started_at > _LIVED_S:
                self._restart_delay_s = 0.0
            print_line(f"the {self.name} exited with {ended_with(code)}; restarting it")
            self._restart_at = now + self._restart_delay_s
            self._restart_delay_s = min(max(1.0, self._restart_delay_s * 2), _RESTART_MAX_S)
        if self._restart_at is None or now < self._restart_at:
            return False
        self.start()
        return True

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it has ended, at most `seconds`."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and all processes it started."""
        for group in self.groups:
            _kill_group(group, number)


def _kill_group(group: int, number: int) -> bool:
    """Send a signal to a process group. Return whether there is one."""
    # macOS raises PermissionError if only a zombie is left.
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def ended_with(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def print_line(line: str) -> None:
    is_json = LOG_FORMAT == "json"
    text = json_line("WARNING", "tooltrail", line) if is_json else f"tooltrail: {line}"
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
