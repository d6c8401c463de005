"""One real demo for the tests here: `manage.py up --demo`, its history lived through."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg import sql

from config.postgresql.database import APP
from tests.support.installation import (
    announcement,
    end,
    new_installation,
    until,
)

HISTORY_IS_IN = "traces of history are in"  # what the executor says on stderr


@dataclass(frozen=True)
class Demo:
    """The running demo: what it printed, and its database as the application sees it."""

    url: str
    user: str
    password: str
    api_key: str
    tenant_id: str
    begun_at: datetime
    """When it was started: what is older is history, what is younger the trickle."""
    database_url: str

    def query(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Read as the application's role within the demo's tenant, as every page does."""
        with psycopg.connect(self.database_url) as connection:
            scope = sql.SQL("SET LOCAL tooltrail.tenant_id = {}").format(self.tenant_id)
            connection.execute(scope)
            return connection.execute(statement, parameters).fetchall()


@pytest.fixture(scope="session")
def demo() -> Iterator[Demo]:
    """The demo, once a process of it has been killed in a call: its history is complete then."""
    with new_installation() as installation:
        begun_at = datetime.now(UTC)
        process = installation.up("--demo", "--json")
        facts = announcement(process)
        secrets = json.loads((installation.var / "secrets.json").read_text())
        database_url = installation.postgres.url(APP, secrets[APP])
        demo = Demo(**facts, begun_at=begun_at, database_url=database_url)
        until(lambda: HISTORY_IS_IN in installation.errors.read_text())
        until(lambda: demo.query("SELECT FROM invocation WHERE run_id = 'graph_run_killed'"))
        yield demo
        assert end(process) == 0
        assert installation.processes() == []
