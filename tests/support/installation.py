"""A `manage.py up` for one test: its folder, its processes, and its output."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Timer
from typing import IO

import psutil

from config.instance import BASE_DIR
from config.postgresql.embedded import EmbeddedPostgres

Up = subprocess.Popen[str]
DEADLINE_S = 300.0
_PREPARE = """
from config import instance
instance.ensure_secrets()
import django
django.setup()
from config.process import up
up._prepare(up.Options("127.0.0.1", 0, demo=False, dev_tenant=None, as_json=True), print)
instance.POSTGRES.stop()
"""


def until[T](check: Callable[[], T]) -> T:
    """Return the result of `check` once it is true; fail the test if it never is."""
    deadline = time.monotonic() + DEADLINE_S
    while not (result := check()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return result


def clean_environment(**more: str) -> dict[str, str]:
    """Ours without what names this session's database and folder."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DATABASE_", "TOOLTRAIL_", "DJANGO_"))
    } | more


@dataclass
class Installation:
    """One `var/` and the `up` that may run on it."""

    var: Path
    started: list[Up] = field(default_factory=list)

    @property
    def postgres(self) -> EmbeddedPostgres:
        return EmbeddedPostgres(self.var / "postgres")

    @property
    def errors(self) -> Path:
        """The output of the process started last."""
        return self.var.parent / f"stderr-{len(self.started)}"

    def up(self, *options: str, **environment: str) -> Up:
        """Start `manage.py up --port 0`; its stderr goes to a file of its own."""
        with (self.var.parent / f"stderr-{len(self.started) + 1}").open("w") as errors:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "up", "--port", "0", *options],
                cwd=BASE_DIR,
                env=clean_environment(TOOLTRAIL_VAR=str(self.var), **environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.started.append(process)
        return process

    def prepare(self) -> None:
        """Make the folder as `up` does: with roles, schema and static files, without a tenant.

        It is copied from one that is made once per session, for all processes of `pytest -n 2`.
        That saves initdb and the migrations: 6 s of processor time.
        """
        self.var.mkdir(mode=0o711, exist_ok=True)
        subprocess.run(["cp", "-a", f"{_prepared_var()}/.", str(self.var)], check=True)

    def refusal(self, *options: str, **environment: str) -> str:
        """What `up` prints when it refuses to start: one line, and a non-zero exit code."""
        process = self.up("--json", *options, **environment)
        assert stdout(process).read() == ""
        assert process.wait() != 0
        message = self.errors.read_text()
        assert message.count("\n") == 1, message
        return message

    def processes(self, *words: str) -> list[psutil.Process]:
        """The running processes of this installation with these words in their command line.

        They are recognized by their environment, which PostgreSQL's and the demo's children share.
        """
        running = []
        for process in psutil.process_iter():
            try:
                if (
                    process.status() != psutil.STATUS_ZOMBIE
                    and process.environ().get("TOOLTRAIL_VAR") == str(self.var)
                    and set(words) <= set(process.cmdline())
                ):
                    running.append(process)
            except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
        return running


def stdout(process: Up) -> IO[str]:
    """The announcement's stream."""
    assert process.stdout is not None
    return process.stdout


def announcement(process: Up) -> dict[str, str]:
    """The one line printed when everything is ready."""
    facts: dict[str, str] = json.loads(stdout(process).readline())
    return facts


def end(process: Up, how: signal.Signals = signal.SIGTERM) -> int:
    """Send the signal, expect nothing more on stdout, and return the exit code."""
    process.send_signal(how)
    deadline = Timer(DEADLINE_S, process.kill)
    deadline.start()
    try:
        assert stdout(process).read() == ""
        return process.wait()
    finally:
        deadline.cancel()


@contextmanager
def new_installation() -> Iterator[Installation]:
    """A new folder; whatever still runs there at the end is killed."""
    folder = Path(tempfile.mkdtemp(prefix="tt-"))
    folder.chmod(0o711)
    installation = Installation((folder / "var").resolve())
    try:
        yield installation
    finally:
        for started in installation.started:  # first, else it restarts what is killed next
            started.kill()
            started.wait()
            stdout(started).close()
        for process in installation.processes():
            process.kill()
        shutil.rmtree(folder)


@contextmanager
def prepared_installation() -> Iterator[Installation]:
    """A new folder in which only the tenant is missing (`Installation.prepare`)."""
    with new_installation() as installation:
        installation.prepare()
        yield installation


@cache
def _prepared_var() -> Path:
    """The folder that is copied: of the process that started the others, if there is one."""
    session = os.environ.get("TEST_SESSION_FOLDER") or Path(os.environ["TOOLTRAIL_VAR"]).parent
    var = Path(session) / "prepared"
    complete = var.with_name("prepared.complete")
    with var.with_name("prepared.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            environment = {"TOOLTRAIL_VAR": str(var), "DJANGO_SETTINGS_MODULE": "config.settings"}
            subprocess.run(
                [sys.executable, "-c", _PREPARE],
                cwd=BASE_DIR,
                env=clean_environment(**environment),
                stdout=subprocess.DEVNULL,
                check=True,
            )
            complete.touch()
    return var
