"""Commands without a database: one line of error, or the embedded one is started."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import get_commands

from config.process import operators
from tests.support.installation import (
    Installation,
    prepared_installation,
)
from tests.support.management_commands import manage

COMMANDS = (
    ("reindex", "--check"),
    ("tenant", "list"),
    ("tenant", "suspend", "acme"),
    ("registry", "export", "acme", os.devnull),
    ("changepassword", "acme"),
    ("removefactors", "acme"),
    ("ledger", "status"),
    ("partitions", "plan"),
    ("migrate", "--check"),
    ("procrastinate", "healthchecks"),
)
NOBODY = dict.fromkeys(
    ("DATABASE_URL", "DATABASE_OWNER_URL", "DATABASE_KEEPER_URL"),
    "postgresql://nobody@127.0.0.1:1/none",
)


@pytest.fixture(scope="module")
def installation() -> Iterator[Installation]:
    """An installation with a tenant, made by a command that started and stopped the database."""
    with prepared_installation() as created:
        completed = manage("tenant", "create", "acme", TOOLTRAIL_VAR=str(created.var))
        assert completed.returncode == 0, completed.stderr
        assert created.postgres.running_pid() is None
        yield created


@pytest.mark.slow
@pytest.mark.generated(1)
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_missing_database_is_reported_in_one_line(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    for environment, reason in (
        (NOBODY | {"TOOLTRAIL_VAR": str(tmp_path)}, "refused"),
        ({"TOOLTRAIL_VAR": str(tmp_path / "none")}, "set TOOLTRAIL_VAR to its folder"),
    ):
        completed = manage(*arguments, **environment)
        assert completed.returncode == 1
        assert completed.stdout == ""
        assert completed.stderr.count("\n") == 1, completed.stderr
        assert reason in completed.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
@pytest.mark.generated(1)
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("tenant", "list"), 0, "acme"),
        (("reindex", "--check"), 0, "index and log agree"),
        (("ledger", "status"), 0, "acme: "),
        (("partitions", "plan"), 0, "0 missing"),
        (("migrate", "--check", "--database", "owner"), 0, ""),
        (("tenant", "suspend", "acme"), 0, ""),
        (("tenant", "suspend", "nobody"), 1, ""),
    ],
)
def test_command_starts_and_stops_the_embedded_database(
    installation: Installation, arguments: tuple[str, ...], code: int, message: str
) -> None:
    completed = manage(*arguments, TOOLTRAIL_VAR=str(installation.var))
    assert completed.returncode == code, completed.stderr
    assert message in completed.stdout
    assert installation.processes() == []


def test_every_command_is_classified_by_database_need() -> None:
    ours = {name for name, app in get_commands().items() if app == "config"}
    without = {"backup", "database", "distribute", "procrastinate", "restore", "up"}
    assert ours - without <= operators.NEEDS_DATABASE
