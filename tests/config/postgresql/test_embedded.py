"""The embedded PostgreSQL: starting, adopting, stopping, and who can connect."""

import os
import pwd
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from config.postgresql import unprivileged
from config.postgresql.embedded import EmbeddedPostgres, EmbeddedPostgresError
from tests.support.clusters import running_cluster

pytestmark = pytest.mark.slow

SMALL = "shared_buffers = 1MB"
FAST = ("fsync = off", SMALL)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users may enter, with a path short enough for the socket."""
    path = Path(tempfile.mkdtemp(prefix="tt-", dir="/tmp"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def postgres(folder: Path) -> Iterator[EmbeddedPostgres]:
    """A new cluster, running."""
    with running_cluster(folder / "var" / "postgres", SMALL) as server:
        yield server


def modes(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """Mode and owners of a folder and of its parents."""
    facts = {path: path.stat() for path in (folder, *folder.parents)}
    return {path: (fact.st_mode, fact.st_uid, fact.st_gid) for path, fact in facts.items()}


def runs(process: psutil.Process) -> bool:
    """Whether the process is running. A zombie is not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_database_accepts_connections_and_a_second_start_adopts_the_process(
    postgres: EmbeddedPostgres,
) -> None:
    pid = postgres.running_pid()
    again = EmbeddedPostgres(postgres.root)
    again.start()
    assert again.running_pid() == pid
    with psycopg.connect(again.admin_url) as connection:
        version = connection.execute("SHOW server_version").fetchone()
    assert version is not None
    assert version[0].startswith("18")


def test_stop_leaves_no_process_and_keeps_the_data(postgres: EmbeddedPostgres) -> None:
    with psycopg.connect(postgres.admin_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept ()")
    pid = postgres.running_pid()
    assert pid is not None
    everything = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    postgres.stop()
    assert not [process for process in everything if runs(process)]
    postgres.start()
    with psycopg.connect(postgres.admin_url) as connection:
        connection.execute("SELECT FROM kept")


def test_database_that_does_not_stop_in_time_is_killed_and_recovers(
    postgres: EmbeddedPostgres,
) -> None:
    with psycopg.connect(postgres.admin_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept ()")
    postgres.stop(within_s=0)
    assert postgres.running_pid() is None
    postgres.start()
    with psycopg.connect(postgres.admin_url) as connection:
        connection.execute("SELECT FROM kept")


@pytest.mark.parametrize(
    "pid", ["999999999", str(os.getpid()), "no number"], ids=["nobody", "somebody", "nonsense"]
)
def test_stale_pid_file_is_ignored(postgres: EmbeddedPostgres, pid: str) -> None:
    postgres.stop()
    (postgres.data / "postmaster.pid").write_text(f"{pid}\n{postgres.data}\n")
    postgres.start()
    assert postgres.running_pid() is not None


def test_interrupted_initialisation_is_repeated(folder: Path) -> None:
    server = EmbeddedPostgres(folder / "postgres", settings=FAST)
    (server.root / "data.new" / "base").mkdir(parents=True)
    server.start()
    assert server.running_pid() is not None
    server.stop()


@pytest.mark.parametrize("settings", [(SMALL,), FAST])
def test_new_data_are_on_disk_before_they_count(
    folder: Path, settings: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, bool]] = []
    run = EmbeddedPostgres._run

    def recorded(
        server: EmbeddedPostgres, program: str, *arguments: str
    ) -> subprocess.CompletedProcess[str]:
        sync = next((each for each in arguments if each in ("--no-sync", "--sync-only")), "")
        ran.append((f"{program} {sync}".strip(), server.data.exists()))
        return run(server, program, *arguments)

    monkeypatch.setattr(EmbeddedPostgres, "_run", recorded)
    server = EmbeddedPostgres(folder / "postgres", settings=settings)
    server.start()
    assert server.running_pid() is not None
    server.stop()
    synced = [] if settings == FAST else [("initdb --sync-only", False)]
    assert ran == [("initdb --no-sync", False), *synced, ("pg_ctl", True)]


def test_parent_folder_keeps_owner_and_mode(folder: Path) -> None:
    parent = folder / "somebody's" / "var"
    parent.mkdir(parents=True, mode=0o700)
    before = modes(parent)
    server = EmbeddedPostgres(parent / "postgres", settings=FAST)
    server.start()
    server.stop()
    assert modes(parent) == before


def test_connection_without_the_password_is_rejected(postgres: EmbeddedPostgres) -> None:
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(postgres.url("postgres", secrets.token_hex(), "postgres"))


def test_no_tcp_port_is_open(postgres: EmbeddedPostgres) -> None:
    pid = postgres.running_pid()
    assert pid is not None
    process = psutil.Process(pid)
    assert not [one for one in process.net_connections("inet") if one.status == "LISTEN"]


def test_socket_is_not_accessible_to_other_local_users(postgres: EmbeddedPostgres) -> None:
    assert postgres.socket_folder.stat().st_mode & 0o077 == 0
    if os.geteuid() != 0:
        return  # only root can try as another user; the mode checked above keeps others out
    nobody = pwd.getpwnam("nobody")
    code = (
        "import socket, sys\n"
        "try: socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n"
        "except PermissionError: sys.exit(13)\n"
    )
    socket = postgres.socket_folder / ".s.PGSQL.5432"
    assert socket.is_socket()
    # The system's Python, because that user may have no access to this environment's.
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    completed = subprocess.run(
        [python, "-c", code, str(socket)],
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        check=False,
    )
    assert completed.returncode == 13


def test_path_too_long_for_a_socket_uses_a_private_folder(folder: Path) -> None:
    server = EmbeddedPostgres(folder / ("x" * 120) / "postgres", settings=FAST)
    server.start()
    assert server.socket_folder.parent == Path(tempfile.gettempdir())
    assert server.socket_folder.stat().st_mode & 0o777 == 0o700
    psycopg.connect(server.admin_url).close()
    server.stop()
    server.socket_folder.rmdir()


def test_large_log_is_rotated(postgres: EmbeddedPostgres) -> None:
    postgres.stop()
    postgres.log.write_bytes(b"x" * 5 * 1024 * 1024)
    postgres.start()
    assert postgres.log.stat().st_size < 1024 * 1024
    assert (postgres.root / "postgres.log.1").exists()


def test_obstacle_is_reported_in_one_line(folder: Path) -> None:
    (folder / "postgres").write_text("a file where the folder should be")
    with pytest.raises(EmbeddedPostgresError) as caught:
        EmbeddedPostgres(folder / "postgres").start()
    assert "\n" not in str(caught.value)
    assert str(folder / "postgres") in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user runs PostgreSQL directly")
class TestAsRootWithoutNamespaces:
    """As in most containers. Tests that run as root can disable namespaces to get there."""

    @pytest.fixture(autouse=True)
    def no_namespaces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(unprivileged, "_namespace_entrance", lambda: None)

    def test_database_runs_as_a_system_user(self, folder: Path) -> None:
        server = EmbeddedPostgres(folder / "postgres", settings=FAST)
        before = modes(folder)
        server.start()
        pid = server.running_pid()
        assert pid is not None
        assert psutil.Process(pid).username() in unprivileged.SYSTEM_USERS
        psycopg.connect(server.admin_url).close()
        server.stop()
        assert modes(folder) == before

    def test_inaccessible_folder_is_named(self, folder: Path) -> None:
        closed = folder / "closed"
        closed.mkdir(mode=0o700)
        with pytest.raises(EmbeddedPostgresError, match=f"no access to {closed}"):
            EmbeddedPostgres(closed / "var" / "postgres").start()

    def test_data_owned_by_root_is_not_handed_over(self, folder: Path) -> None:
        (folder / "postgres" / "data").mkdir(parents=True)
        with pytest.raises(EmbeddedPostgresError, match="belongs to root"):
            EmbeddedPostgres(folder / "postgres").start()
