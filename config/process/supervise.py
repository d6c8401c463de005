"""The processes of a running installation: web, gRPC, worker, demo executor, embedded database.

It starts, watches and stops them together. `config.process.up` prepares what they need (schema,
roles, static files, the demo's tenant) and then becomes this program by exec. This module does not
import Django, so that the parent process stays small.

A child that ends is logged and started again: immediately if a signal killed it, with growing
delays if it ended by itself. Only a web server that never became ready stops everything
(docs/adr/0003).

Nothing outlives the supervisor. On SIGINT, SIGTERM or SIGHUP it stops everything within 5 seconds.
On SIGTERM it first waits `TOOLTRAIL_DRAIN_S` seconds, in which `/readyz` answers 503 and everything
else is served. If the supervisor is killed, a guardian stops everything: six lines of shell that
wait for the end of a pipe that only the supervisor holds.
"""

import argparse
import contextlib
import http.client
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from types import FrameType

import psutil

from config.instance import (
    DRAIN_S,
    DRAINING,
    GRPC_PORT,
    POSTGRES,
    QUEUES,
    VAR,
    WEB_PROCESSES,
    WORKERS,
    child_environment,
    load_secrets,
)
from config.postgresql.embedded import EmbeddedPostgres, EmbeddedPostgresError
from config.postgresql.roles import APP
from config.process.child import Child, ended_with, print_line
from config.process.javascript import EXECUTOR
from config.process.welcome import announce

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_READY_TIMEOUT_S = 60.0
_CLIENTS_STOP_S = 1.2
_WEB_STOP_S = 0.8  # plus the rest of the clients' time
_DATABASE_STOP_S = 1.8  # plus the rest of the time before
_CHECK_EVERY_S = 1.0
_READY_EVERY_S = 0.05
WEB_THREADS = 16
"""Per web process: those for the intake (`audit.intake.admission`), and six for the rest."""

# Each line names the process groups to stop, and only the last line counts. If the last line before
# the end of the pipe is not empty, the supervisor was killed, so everything is stopped. The
# database is the one in the pid file $1: the supervisor may be killed while it starts a new one.
_GUARDIAN = """
while read -r groups; do g=$groups; done
[ -n "$g" ] || exit 0
kill -s TERM -- $g
[ -z "$1" ] || kill -s INT "$(head -n 1 "$1")"
sleep 3
kill -s KILL -- $g
""".strip()


def web_command(host: str, port: int, processes: int = WEB_PROCESSES) -> list[str]:
    """Return the command of the web server. The server replaces a web process that dies."""
    return [
        *(sys.executable, "-m", "config.process.web_server", "--host", host, "--port", str(port)),
        *("--workers", str(processes), "--blocking-threads", str(WEB_THREADS)),
    ]


def grpc_command(host: str, port: int) -> list[str]:
    """Return the command of the process that receives OTLP over gRPC."""
    module = "config.process.grpc_server"
    return [sys.executable, "-m", module, "--host", host, "--port", str(port)]


def worker_command(queues: Iterable[str] = QUEUES) -> list[str]:
    """Return the command of a worker that runs the tasks of these queues."""
    return [
        *(sys.executable, "manage.py", "procrastinate", "worker"),
        *("--concurrency", "1", "--shutdown-graceful-timeout", "2"),
        # Some jobs run every few seconds. If kept, they would be a million rows in a few months.
        *("--delete-jobs", "successful", "--queues", ",".join(sorted(queues))),
    ]


class Supervisor:
    """Keeps the children running until there is a reason to stop.

    The first child is the web server; the others are its clients.
    """

    def __init__(self, postgres: EmbeddedPostgres | None) -> None:
        self.children: list[Child] = []
        self.postgres = postgres
        # A pipe, not an Event: a signal during the handler of another one would deadlock an Event.
        self._wake, waker = os.pipe()
        for end in (self._wake, waker):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        self._exit_code: int | None = None
        self._is_serving = False
        self._drained_at: float | None = None
        # `uv run` is our parent. If it is killed, it cannot forward a signal, so we watch it.
        parent = psutil.Process(os.getppid())
        self._launcher = parent.pid if parent.name() == "uv" else None
        on_stop_signals(self._on_stop_signal)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)  # only wakes us
        # `config.process.up` blocked them until now. No child may inherit the blocked signals.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        pid_file = str(postgres.pid_file) if postgres is not None else ""
        self._guardian = subprocess.Popen(  # noqa: S603  # our own six lines
            ["/bin/sh", "-c", _GUARDIAN, "guardian", pid_file],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def add(self, child: Child) -> None:
        """Start a child and watch it from now on."""
        self.children.append(child)
        child.start()
        self._update_guardian()

    def wait_until_ready(self, host: str, port: int) -> bool:
        """Wait until /readyz answers 200. Return False if there is a reason to stop instead."""
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while not answers(host, port):
            if (code := self.children[0].poll()) is not None:
                self._stop_because(f"the web server exited with {ended_with(code)}")
            if time.monotonic() > deadline:
                self._stop_because(f"the web server is not ready after {_READY_TIMEOUT_S:.0f} s")
            self._check()
            if self._exit_code is not None:
                return False
            self._sleep(_READY_EVERY_S)
        self._is_serving = True  # a SIGTERM from now on drains
        return True

    def run(self) -> int:
        """Keep everything running until there is a reason to stop. Return the exit code."""
        while self._exit_code is None:
            self._check()
            wait_s = _CHECK_EVERY_S
            if self._drained_at is not None:
                DRAINING.touch()
                wait_s = min(wait_s, max(0.0, self._drained_at - time.monotonic()))
            self._sleep(wait_s)
            if self._drained_at is not None and time.monotonic() >= self._drained_at:
                self._exit_code = self._exit_code or 0
        return self._exit_code

    def _check(self) -> None:
        if self._launcher is not None and os.getppid() != self._launcher:
            self._stop_because("uv was killed")
        for child in self.children:
            if self._exit_code is None and child.restart_if_due():
                self._update_guardian()
        if self.postgres is not None and self._exit_code is None:
            self.postgres.trim_log()
            if self.postgres.running_pid() is None:
                print_line("the database exited; restarting it")
                try:
                    self.postgres.start()
                except EmbeddedPostgresError as error:
                    self._stop_because(str(error))

    def _sleep(self, seconds: float) -> None:
        if self._exit_code is None and select.select([self._wake], [], [], seconds)[0]:
            os.read(self._wake, 4096)

    def _stop_because(self, reason: str) -> None:
        if self._exit_code is None:
            print_line(f"{reason}; stopping")
            self._exit_code = 1

    def stop(self) -> None:
        """Stop the children, then the database. Kill what does not stop. Takes at most 5 s."""
        deadline = time.monotonic()
        # Clients first, so that the web server still answers their last requests.
        for children, seconds in (
            (self.children[1:], _CLIENTS_STOP_S),
            (self.children[:1], _WEB_STOP_S),
        ):
            deadline += seconds
            for child in children:
                child.signal(signal.SIGTERM)
            for child in children:
                child.wait(max(0.0, deadline - time.monotonic()))
            for child in children:
                child.signal(signal.SIGKILL)  # also to processes that a child left behind
                child.wait()
        if self.postgres is not None:
            self.postgres.stop(within_s=deadline + _DATABASE_STOP_S - time.monotonic())
        DRAINING.unlink(missing_ok=True)
        self._end_guardian()

    def _update_guardian(self) -> None:
        groups = [f"-{group}" for child in self.children for group in child.groups]
        self._write_guardian(f"{' '.join(groups)}\n")

    def _end_guardian(self) -> None:
        self._write_guardian("\n")
        with contextlib.suppress(OSError):
            if self._guardian.stdin is not None:
                self._guardian.stdin.close()
        self._guardian.wait()

    def _write_guardian(self, line: str) -> None:
        with contextlib.suppress(OSError):  # it was killed; nothing can be done
            if self._guardian.stdin is not None:
                self._guardian.stdin.write(line.encode())
                self._guardian.stdin.flush()

    def _on_stop_signal(self, number: int, _frame: FrameType | None) -> None:
        """SIGTERM comes from a service manager and may drain. Other signals stop immediately."""
        if number == signal.SIGTERM and DRAIN_S and self._is_serving:
            self._drained_at = self._drained_at or time.monotonic() + DRAIN_S
        else:
            self._exit_code = self._exit_code or 0


def on_stop_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    """Install `handler` for each signal that means stop."""
    for number in STOP_SIGNALS:
        # An ignored SIGHUP stays ignored, because nohup wants that. An ignored SIGINT does not:
        # shells ignore it for every command that a script starts with `&`.
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


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
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # compared, not bound


def main() -> int:
    """Run `python -m config.process.supervise` for `manage.py up`. Return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--tenant")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--js", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--embedded", action="store_true")
    parser.add_argument("--new", action="store_true", help="no tenant exists")
    parser.add_argument("--without-worker", action="store_true")
    parser.add_argument("--lock", type=int, required=True, help="descriptor of the held lock")
    options = parser.parse_args()
    os.set_inheritable(options.lock, False)  # the lock must end with us, not with a remaining child
    url = f"http://{_reachable(options.host)}:{options.port}"
    shutil.rmtree(VAR / "metrics", ignore_errors=True)  # metrics count from the start of `up`
    supervisor = Supervisor(POSTGRES if options.embedded else None)
    serving = child_environment(APP) | {"TOOLTRAIL_DATABASE_POOL": "1"}
    try:
        web = web_command(options.host, options.port)
        supervisor.add(Child("web server", web, serving, takes_over=True))
        if supervisor.wait_until_ready(options.host, options.port):
            announce(url, options)
            if GRPC_PORT:
                grpc = grpc_command(options.host, GRPC_PORT)
                supervisor.add(Child("gRPC server", grpc, serving))
            for queues in () if options.without_worker else WORKERS:
                # Only now, because the first page has priority.
                name = "worker" if len(WORKERS) == 1 else f"worker of {', '.join(queues)}"
                supervisor.add(Child(name, worker_command(queues)))
            if options.demo:
                key = load_secrets()[f"{options.tenant}.api_key"]
                environment = {
                    "TOOLTRAIL_URL": url,
                    "TOOLTRAIL_API_KEY": key,
                    "TOOLTRAIL_SPOOL_DIR": str(VAR / "spool"),
                }
                environment = child_environment(None) | environment
                demo = [sys.executable, "-m", "audit.demo"]
                supervisor.add(Child("demo executor", demo, environment))
                if options.js:
                    demo = ["node", str(EXECUTOR)]
                    supervisor.add(Child("demo executor in JavaScript", demo, environment))
        return supervisor.run()
    finally:
        supervisor.stop()


if __name__ == "__main__":
    sys.exit(main())
