"""What `database init` gives the roles."""

import os

import psycopg
import pytest

from config.postgresql.database import SILENT_MAX


@pytest.mark.parametrize(
    ("variable", "longest"),
    [
        ("DATABASE_URL", SILENT_MAX),
        ("DATABASE_OWNER_URL", "0"),
        ("DATABASE_KEEPER_URL", SILENT_MAX),
    ],
)
def test_only_the_owner_may_be_silent_in_a_transaction(variable: str, longest: str) -> None:
    """Dumps and distributing take as long as they take."""
    with psycopg.connect(os.environ[variable]) as connection:
        shown = connection.execute("SHOW idle_in_transaction_session_timeout").fetchone()
    assert shown == (longest,)
