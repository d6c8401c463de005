"""One real demo for these tests: `manage.py up --demo`, with its history complete."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from config.postgresql.roles import APP
from tests.support.demo import Demo
from tests.support.installation import (
    announcement,
    end,
    prepared_installation,
    until,
)

HISTORY_IS_IN = "past traces sent"  # the executor's message on stderr


@pytest.fixture(scope="session")
def demo() -> Iterator[Demo]:
    """The demo, after one of its processes was killed in a call: then its history is complete."""
    with prepared_installation() as installation:
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
