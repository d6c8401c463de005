"""Restore with a `pg_restore` that is newer than the server.

Such a `pg_restore` sets parameters that the server does not know, and fails. So we let it write
SQL, leave out these lines, and run the rest with the `psql` of the same version.
"""

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO

import psycopg

_SET = re.compile(rb"SET (\w+) = [^;]*;\r?\n?")
_FIRST_DATA = b"COPY "


def fill(
    pg_restore: str,
    file: Path,
    url: str,
    address: str,
    environment: Mapping[str, str],
    table_begins: Callable[[], None],
) -> list[str]:
    """Run the dump's SQL on the server at `url`. Return the lines of stderr if it failed.

    `address` is the same URL without its password, which `environment` contains. A failure leaves
    the database incomplete. Raises psycopg.Error.
    """
    with psycopg.connect(url) as connection:
        known = {name.encode() for (name,) in connection.execute("SELECT name FROM pg_settings")}
    psql = str(Path(pg_restore).with_name("psql"))
    options = ["--no-psqlrc", "--quiet", "--no-password", "--set=ON_ERROR_STOP=1"]
    with (
        subprocess.Popen(  # noqa: S603  # PostgreSQL's own
            [pg_restore, "--no-owner", "--file=-", str(file)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as reader,
        subprocess.Popen(  # noqa: S603  # PostgreSQL's own
            [psql, *options, f"--dbname={address}"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as writer,
    ):
        assert reader.stdout is not None
        assert writer.stdin is not None
        try:
            with writer.stdin as stdin:
                for line in _understood(reader.stdout, known, table_begins):
                    stdin.write(line)
        except BrokenPipeError:
            reader.kill()  # psql has ended; its stderr has the reason
        errors = [*_lines(writer.stderr), *_lines(reader.stderr)]
    return errors or ["psql failed"] if writer.returncode or reader.returncode else []


def _understood(
    lines: IO[bytes], known: set[bytes], table_begins: Callable[[], None]
) -> Iterator[bytes]:
    """Yield the lines except those that set parameters unknown to the server."""
    is_data = False  # rows of data may contain any text
    for line in lines:
        if line.startswith(_FIRST_DATA) and line.endswith(b" FROM stdin;\n"):
            is_data = True
            table_begins()
        if not is_data and (parameter := _SET.fullmatch(line)) and parameter[1] not in known:
            continue
        yield line


def _lines(stream: IO[bytes] | None) -> list[str]:
    assert stream is not None
    return stream.read().decode(errors="replace").splitlines()
