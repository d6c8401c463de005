"""Management commands in a process of their own, and the database they make."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
from django.core.management import get_commands, load_command_class
from psycopg import sql

from config.instance import BASE_DIR
from config.postgresql import roles
from tests.support.installation import clean_environment


def row_count(connection: psycopg.Connection[Any], table: str) -> int:
    """The number of rows of a table."""
    row = connection.execute(
        sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
    ).fetchone()
    assert row is not None
    return int(row[0])


def parse(arguments: list[str]) -> None:
    """Parse as manage.py would. Raises CommandError for unknown arguments."""
    name, *rest = arguments
    command = load_command_class(get_commands()[name], name)
    command.create_parser("manage.py", name).parse_args(rest)


def manage(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a management command with these and no other variables of Tooltrail."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=BASE_DIR,
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        check=False,
    )


def init_database(admin_url: str, var: Path, *options: str, **environment: str) -> dict[str, str]:
    """Run `manage.py database init`; the variables it prints."""
    arguments = ("database", "init", "--admin-url", admin_url, *options)
    completed = manage(*arguments, TOOLTRAIL_VAR=str(var), **environment)
    assert completed.returncode == 0, completed.stderr
    addresses = dict(line.split("=", 1) for line in completed.stdout.splitlines())
    assert addresses.keys() == roles.VARIABLES.keys()
    return addresses
