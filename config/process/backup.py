"""Backup of an installation's database to a file, and restore into an empty database.

It runs PostgreSQL's own programs as the owner, who bypasses row-level security; otherwise a dump
would have no rows. The file does not contain roles (`database init` creates them) or
`var/secrets.json`. After a restore without that file, everybody must sign in again.

Both leave an action in the audit log of every tenant, which the worker enters in the ledgers: a
backup before it begins, so that the file has it, too; a restore in the restored database.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import uuid_utils.compat
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from config import env, instance
from config.postgresql import distribution, roles
from config.postgresql.embedded import EmbeddedPostgresError, binary
from config.postgresql.older_server import fill
from config.process.operators import NoDatabaseError, running

_VERSION = re.compile(r"\(PostgreSQL\) (\d+)")
_DUMPED_FROM = re.compile(r"^;\s+Dumped from database version: (\d+)", re.MULTILINE)
_ERROR = re.compile(r"\b(?:error|ERROR|FATAL):")
_SUBJECT_MAX = 300
_EXCLUDES_EXTENSIONS = 17  # the first version whose pg_dump can
_LINES_KEPT = 5  # last lines kept of a failed program
_JOBS = 2

type Progress = Callable[[int, int], None]
"""Called with the number of finished tables and the total."""


class BackupError(Exception):
    """A backup or restore failed. The message is one line for people."""


@dataclass(frozen=True, slots=True)
class BackupResult:
    """The result of a backup or restore."""

    tables: int
    size: int
    """Size of the file in bytes."""
    server: int
    """Major version of the PostgreSQL server."""


@contextmanager
def owner_address() -> Iterator[str]:
    """Yield the owner's URL of this installation's database. The embedded one runs meanwhile.

    Raises BackupError if the URL is unknown or the embedded database does not start.
    """
    if env.text("DATABASE_URL", ""):
        url = env.text("DATABASE_OWNER_URL", "")
        if not url:
            raise BackupError("set DATABASE_OWNER_URL: only the owner can dump all rows")
        yield url
        return
    address = instance.embedded_url(roles.OWNER)
    if address is None:
        raise BackupError(f"no database in {instance.VAR}; run {instance.COMMAND} up to create it")
    try:
        with running():
            yield address
    except NoDatabaseError as error:
        raise BackupError(str(error)) from error


def dump(
    url: str, file: Path, progress: Progress, *, by: str, stops_writes: bool = False
) -> BackupResult:
    """Write a consistent snapshot of the database at an owner's URL into `file`, replacing it.

    Executors may keep sending. Those of a cluster get 503 meanwhile, and only if `stops_writes`
    allows that. `by` names the operator. Raises BackupError; then `file` is unchanged.
    """
    with _connected(url) as connection:
        server = connection.info.server_version // 10_000
        tables = _count_tables(connection)
        if not tables:
            raise BackupError("the database has no tables")
        is_cluster = distribution.is_distributed(connection)
        if is_cluster and not stops_writes:
            raise BackupError(
                "the nodes of a cluster have no common snapshot: use --stop-writes, or base backups"
                " of all nodes (docs/operations.md)"
            )
        program = find_program("pg_dump", max(server, _EXCLUDES_EXTENSIONS if is_cluster else 0))
        _record(connection, by, "backup.create", file)
    draft = file.with_name(f"{file.name}.partial")
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        # Level 1, because the large data is already compressed.
        options = ["--format=custom", "--compress=1", f"--file={draft}"]
        if is_cluster:  # it is restored as one node
            options.append("--exclude-extension=citus*")
        with _closed(url) if is_cluster else nullcontext():
            _run(
                program=program,
                url=url,
                options=options,
                step="dumping contents of table",
                steps=tables,
                progress=progress,
            )
        draft.replace(file)
    except OSError as error:
        raise BackupError(f"{error.strerror}: {error.filename}") from error
    finally:
        draft.unlink(missing_ok=True)
    return BackupResult(tables, file.stat().st_size, server)


def restore(file: Path, url: str, progress: Progress, *, by: str) -> BackupResult:
    """Fill the empty database at an owner's URL from `file`. `by` names the operator.

    The server may be older than the dumped one (`config.postgresql.older_server`). Raises
    BackupError if the file is no dump, or the database is not empty or lacks the roles; also if
    the restore fails, which leaves the database incomplete.
    """
    with _connected(url) as connection:
        server = connection.info.server_version // 10_000
        _check_target(connection)
    program, major, contents = _reader(file, server)
    tables = contents.count(" TABLE DATA ")
    with _connected(url) as connection:
        # The default privileges from `database init` would be added to the grants in the dump, and
        # would let the application change the log. The dump contains these defaults itself.
        for kind in ("TABLES", "SEQUENCES"):
            connection.execute(
                f"ALTER DEFAULT PRIVILEGES FOR ROLE {roles.OWNER}"
                f" REVOKE ALL ON {kind} FROM {roles.APP}"
            )
    try:
        if major > server:
            _fill_older(program, file, url, tables, progress)
        else:
            options = ["--no-owner", "--exit-on-error", f"--jobs={_JOBS}", str(file)]
            _run(
                program=program,
                url=url,
                options=options,
                step="processing data for table",
                steps=tables,
                progress=progress,
            )
    except BackupError as error:
        raise BackupError(f"{error}; the database is incomplete: recreate it") from error
    with _connected(url) as connection:
        connection.execute("DELETE FROM django_migrations WHERE app = 'citus'")
        _record(connection, by, "backup.restore", file)
        connection.execute("ANALYZE")
    return BackupResult(tables, file.stat().st_size, server)


@contextmanager
def _closed(url: str) -> Iterator[None]:
    with _connected(url) as connection, distribution.closed(connection):
        yield


def find_program(name: str, server: int) -> str:
    """Return the program for a server of this major version: of the same version, else a newer.

    It searches the PATH and the wheel. Raises BackupError, which names the programs it found.
    """
    return _programs(name, server)[0][1]


def _programs(name: str, server: int) -> list[tuple[int, str]]:
    """Return all suitable programs with their major versions, the best first."""
    majors: dict[str, int] = {}
    for path in (shutil.which(name), _of_wheel(name)):
        if path is None:
            continue
        shown = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)  # noqa: S603  # PostgreSQL's own
        if version := _VERSION.search(shown.stdout):
            majors[path] = int(version[1])
    fitting = {path: major for path, major in majors.items() if major >= server}
    if not fitting:
        others = ", ".join(f"{path} is version {major}" for path, major in majors.items())
        raise BackupError(
            f"{name} of PostgreSQL {server} or newer must be on the PATH ({others or 'none found'})"
        )
    return sorted((major, path) for path, major in fitting.items())


def _reader(file: Path, server: int) -> tuple[str, int, str]:
    """Return the best `pg_restore` for the file, its major version, and the file's contents.

    A newer `pg_dump` writes a format that an older `pg_restore` cannot read.
    """
    refusal = ""
    for major, program in _programs("pg_restore", server):
        listed = subprocess.run(  # noqa: S603  # PostgreSQL's own
            [program, "--list", str(file)], capture_output=True, text=True, check=False
        )
        if listed.returncode == 0 and _DUMPED_FROM.search(listed.stdout):
            return program, major, listed.stdout
        refusal = _reason(listed.stderr.splitlines())
    if "unsupported version" in refusal:
        raise BackupError(f"{file} was written by a newer pg_dump; put its pg_restore on the PATH")
    raise BackupError(f"{file} is not a dump: {refusal}")


def _fill_older(program: str, file: Path, url: str, tables: int, progress: Progress) -> None:
    done = 0

    def table_begins() -> None:
        nonlocal done
        done += 1
        progress(min(done, tables), tables)

    address, environment = _access(url)
    progress(0, tables)
    try:
        errors = fill(
            pg_restore=program,
            file=file,
            url=url,
            address=address,
            environment=environment,
            table_begins=table_begins,
        )
    except psycopg.Error as error:
        raise BackupError(f"database: {str(error).splitlines()[0]}") from error
    if errors:
        raise BackupError(f"psql failed: {_reason(errors)}")


def _of_wheel(name: str) -> str | None:
    try:
        path = binary(name)
    except EmbeddedPostgresError:
        return None
    return str(path) if path.exists() else None


def _check_target(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    if tables := _count_tables(connection):
        raise BackupError(f"the database is not empty: it has {tables} tables")
    known = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles").fetchall()}
    if missing := [role for role in roles.ROLES if role not in known]:
        raise BackupError(
            f"missing roles {', '.join(missing)}: run {instance.COMMAND} database init first"
        )


def _record(
    connection: psycopg.Connection[tuple[object, ...]], by: str, verb: str, file: Path
) -> None:
    """Leave an action in each tenant's audit log. The schema may be of an older release."""
    with connection.transaction():
        for (tenant_id,) in connection.execute("SELECT id FROM tenant").fetchall():
            connection.execute(
                "INSERT INTO action (tenant_id, id, at, user_name, verb, subject, details)"
                " VALUES (%s, %s, clock_timestamp(), %s, %s, %s, '{}')",
                (tenant_id, uuid_utils.compat.uuid7(), by, verb, file.name[:_SUBJECT_MAX]),
            )


def _count_tables(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    ((count,),) = connection.execute(
        "SELECT count(*) FROM pg_class WHERE relkind = 'r'"
        " AND relnamespace = 'public'::regnamespace"
    ).fetchall()
    assert isinstance(count, int)
    return count


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection
    except psycopg.Error as error:
        raise BackupError(f"database: {str(error).splitlines()[0]}") from error


def _run(
    program: str, url: str, options: list[str], step: str, steps: int, progress: Progress
) -> None:
    """Run a program to its end and count the lines that contain `step`. Raises BackupError."""
    address, environment = _access(url)
    done = 0
    last_lines: list[str] = []
    errors: list[str] = []
    with subprocess.Popen(  # noqa: S603  # PostgreSQL's own
        [
            program,
            "--verbose",
            "--no-password",
            f"--dbname={address}",
            *options,
        ],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stderr is not None
        progress(0, steps)
        for line in process.stderr:
            last_lines = [*last_lines[1 - _LINES_KEPT :], line.strip()]
            if _ERROR.search(line):
                errors.append(line.strip())
            if step in line:
                done += 1
                progress(min(done, steps), steps)
    if process.returncode:
        raise BackupError(f"{Path(program).name} failed: {_reason(errors or last_lines)}")
    progress(steps, steps)


def _access(url: str) -> tuple[str, dict[str, str]]:
    """Return a URL without its password, and an environment with the password.

    Other users can see the arguments of a process, but not its environment.
    """
    parameters: dict[str, Any] = conninfo_to_dict(url)
    password = str(parameters.pop("password", ""))
    surroundings = {name: value for name, value in os.environ.items() if name[:2] != "PG"}
    return make_conninfo(**parameters), surroundings | {"PGPASSWORD": password}


def _reason(lines: list[str]) -> str:
    """Return the server's first error, else the first error of a program."""
    errors = [line for line in lines if _ERROR.search(line)]
    of_server = [line for line in errors if "ERROR:" in line or "FATAL:" in line]
    return (of_server or errors or lines or ["no reason given"])[0]
