"""The processes of a running installation: web, worker, demo executor, embedded database.

Owns starting, watching and stopping them as one. What they need before (schema, roles,
static files, the demo's tenant) is `config.up`'s, which becomes this program by exec once
it is done: no Django is imported here, so that the parent of everything stays small.

Nothing outlives us. On SIGINT, SIGTERM or SIGHUP, or when the web server ends, all is
stopped within five seconds. When we are killed, a guardian (six lines of shell waiting for
the end of a pipe only we hold) does it instead.
"""

import argparse
import contextlib
import http.client
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from types import FrameType

import psutil

from config.embedded import EmbeddedPostgres, EmbeddedPostgresError
from config.instance import BASE_DIR, POSTGRES, load_secrets

_READY_TIMEOUT_S = 60.0
_CHILDREN_STOP_S = 1.8
_DATABASE_STOP_S = 1.8  # and what the children left of theirs
_RESTART_MAX_S = 60.0
_LOOK_EVERY_S = 1.0
_READY_EVERY_S = 0.05
WEB_THREADS = 2 * (os.cpu_count() or 1) + 1
"""Requests served at once, and the most connections their pool opens; granian's own advice."""

# Reads what to stop, latest line first to count; when the pipe ends with a line that names
# something, we were killed: stop it all.
_GUARDIAN = """
while read -r database groups; do d=$database; g=$groups; done
[ -n "$g" ] || exit 0
kill -s TERM -- $g
[ "$d" = 0 ] || kill -s INT $d
sleep 3
kill -s KILL -- $g
""".strip()


def web_command(host: str, port: int) -> list[str]:
    """How the web server is started: one process, `WEB_THREADS` threads."""
    return [
        *(sys.executable, "-m", "granian", "--interface", "wsgi", "config.wsgi:application"),
        *("--host", host, "--port", str(port), "--no-ws", "--http", "1"),
        *("--workers", "1", "--blocking-threads", str(WEB_THREADS)),
        *("--workers-kill-timeout", "2", "--log-level", "warning"),
    ]


def worker_command() -> list[str]:
    """How the worker of the job queue is started."""
    return [
        *(sys.executable, "manage.py", "procrastinate", "worker"),
        *("--concurrency", "1", "--shutdown-graceful-timeout", "2"),
    ]


@dataclass
class Child:
    """One process we keep running, with all it starts (a process group of its own)."""

    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    is_essential: bool = False
    """Its end is the end of everything; others are started again, ever more slowly."""
    _process: subprocess.Popen[bytes] | None = None
    _restart_at: float | None = None
    _restart_delay_s: float = 1.0

    def start(self) -> None:
        """Start it; what it prints goes to stderr, for stdout is the announcement's."""
        self._restart_at = None
        self._process = subprocess.Popen(  # noqa: S603  our own commands
            self.command,
            cwd=BASE_DIR,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            # Ctrl-C in a terminal reaches us only: we say who stops, and when.
            start_new_session=True,
        )

    @property
    def group(self) -> int | None:
        """The id of its process group while it runs."""
        return self._process.pid if self._process else None

    def poll(self) -> int | None:
        """Its exit code if it has ended by now."""
        return self._process.poll() if self._process else None

    def restart_if_due(self) -> bool:
        """Start it again if it failed and has waited long enough; one that ended well rests."""
        now = time.monotonic()
        if self._process is not None and (code := self._process.poll()) is not None:
            self.signal(signal.SIGKILL)  # what it left behind
            self._process = None
            if code:
                _say(f"the {self.name} ended with exit code {code}; starting it again")
                self._restart_at = now + self._restart_delay_s
                self._restart_delay_s = min(self._restart_delay_s * 2, _RESTART_MAX_S)
        if self._restart_at is None or now < self._restart_at:
            return False
        self.start()
        return True

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it has ended, or for so long."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it and to all it started."""
        if self._process is not None:
            # macOS says PermissionError where only a zombie is left.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


class Supervisor:
    """Keeps the children running until it is told to stop."""

    def __init__(self, postgres: EmbeddedPostgres | None) -> None:
        self.children: list[Child] = []
        self.postgres = postgres
        # A pipe, not an Event: a signal that comes while another sets one would wait for ever.
        self._wake, waker = os.pipe()
        for end in (self._wake, waker):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        self._exit_code: int | None = None
        # `uv run` waits for us; killed, it cannot pass a signal on, so we look after it.
        parent = psutil.Process(os.getppid())
        self._launcher = parent.pid if parent.name() == "uv" else None
        self._guardian = subprocess.Popen(  # noqa: S603  our own six lines
            ["/bin/sh", "-c", _GUARDIAN],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                signal.signal(number, self._on_stop_signal)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)  # wakes us, no more

    def add(self, child: Child) -> None:
        """Start a child and look after it from now on."""
        self.children.append(child)
        child.start()
        self._tell_guardian()

    def wait_until_ready(self, host: str, port: int) -> bool:
        """Wait for /readyz to answer 200; False when there is a reason to stop instead."""
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while not answers(host, port):
            if time.monotonic() > deadline:
                self._stop_because(f"not ready after {_READY_TIMEOUT_S:.0f} s")
            self._look()
            if self._exit_code is not None:
                return False
            self._sleep(_READY_EVERY_S)
        return True

    def run(self) -> int:
        """Keep everything running until there is a reason to stop; returns the exit code."""
        while self._exit_code is None:
            self._look()
            self._sleep(_LOOK_EVERY_S)
        return self._exit_code

    def _look(self) -> None:
        if self._launcher is not None and os.getppid() != self._launcher:
            self._stop_because("uv was killed")
        for child in self.children:
            code = child.poll()
            if code is not None and child.is_essential:
                self._stop_because(f"the {child.name} ended with exit code {code}")
            elif child.restart_if_due():
                self._tell_guardian()
        if self.postgres is not None and self._exit_code is None:
            try:
                self.postgres.start()
                self.postgres.trim_log()
            except EmbeddedPostgresError as error:
                self._stop_because(str(error))

    def _sleep(self, seconds: float) -> None:
        if self._exit_code is None and select.select([self._wake], [], [], seconds)[0]:
            os.read(self._wake, 4096)

    def _stop_because(self, reason: str) -> None:
        if self._exit_code is None:
            _say(f"{reason}; stopping")
            self._exit_code = 1

    def stop(self) -> None:
        """Stop children, then the database; what does not listen is killed. At most 5 s."""
        for child in self.children:
            child.signal(signal.SIGTERM)
        deadline = time.monotonic() + _CHILDREN_STOP_S
        for child in self.children:
            child.wait(max(0.0, deadline - time.monotonic()))
        for child in self.children:
            child.signal(signal.SIGKILL)  # also what a child left behind
            child.wait()
        if self.postgres is not None:
            self.postgres.stop(within_s=deadline + _DATABASE_STOP_S - time.monotonic())
        self._end_guardian()

    def _tell_guardian(self) -> None:
        database = self.postgres.running_pid() if self.postgres is not None else None
        groups = [f"-{child.group}" for child in self.children if child.group is not None]
        self._write_guardian(f"{database or 0} {' '.join(groups)}\n")

    def _end_guardian(self) -> None:
        self._write_guardian("\n")
        with contextlib.suppress(OSError):
            if self._guardian.stdin is not None:
                self._guardian.stdin.close()
        self._guardian.wait()

    def _write_guardian(self, line: str) -> None:
        with contextlib.suppress(OSError):  # somebody killed it: nothing to be done
            if self._guardian.stdin is not None:
                self._guardian.stdin.write(line.encode())
                self._guardian.stdin.flush()

    def _on_stop_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._exit_code = self._exit_code or 0


def answers(host: str, port: int) -> bool:
    """Whether the server there is ready to serve (`/readyz`)."""
    connection = http.client.HTTPConnection(_reachable(host), port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _reachable(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104


def _announce(url: str, tenant: str | None, *, as_json: bool) -> None:
    stored = load_secrets()
    facts = {"url": url} | {
        name: stored.get(f"{tenant}.{name}")
        for name in ("user", "password", "api_key", "tenant_id")
    }
    if as_json:
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()
        return
    lines = [f"Tooltrail runs at {url}"]
    if tenant is None:
        lines.append("A first tenant:   uv run manage.py tenant create NAME --admin USER")
    else:
        lines += [
            f"  sign in with    {facts['user']} / {facts['password']}",
            f"  API key         {facts['api_key']}",
        ]
    sys.stdout.write("\n".join([*lines, "Ctrl-C stops everything.", ""]))
    sys.stdout.flush()


def _say(line: str) -> None:
    sys.stderr.write(f"tooltrail: {line}\n")
    sys.stderr.flush()


def main() -> int:
    """`python -m config.supervise`, started by `manage.py up`; returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tenant")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--embedded", action="store_true")
    parser.add_argument("--lock", type=int, required=True, help="descriptor of the held lock")
    options = parser.parse_args()
    os.set_inheritable(options.lock, False)  # it ends with us, not with a child left behind
    url = f"http://{_reachable(options.host)}:{options.port}"
    supervisor = Supervisor(POSTGRES if options.embedded else None)
    try:
        supervisor.add(
            Child(
                "web server",
                web_command(options.host, options.port),
                {"TOOLTRAIL_DATABASE_POOL": str(WEB_THREADS)},
                is_essential=True,
            )
        )
        if supervisor.wait_until_ready(options.host, options.port):
            _announce(url, options.tenant, as_json=options.json)
            supervisor.add(Child("worker", worker_command()))  # the first page comes first
            if options.demo:
                key = load_secrets()[f"{options.tenant}.api_key"]
                environment = {"TOOLTRAIL_URL": url, "TOOLTRAIL_API_KEY": key}
                demo = [sys.executable, "-m", "audit.demo"]
                supervisor.add(Child("demo executor", demo, environment))
        return supervisor.run()
    finally:
        supervisor.stop()


if __name__ == "__main__":
    sys.exit(main())
