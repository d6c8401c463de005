"""A process whose heartbeat does not reach the database says so in its log."""

import logging
import os
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import psycopg
import pytest

from config.postgresql import processes, roles, schema
from tests.support.installation import until

BEAT_S = 0.02
KIND = "heartbeat test"


@pytest.fixture
def superuser() -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(os.environ["TEST_SUPERUSER_URL"], autocommit=True) as connection:
        yield connection
        connection.execute("DELETE FROM server_process WHERE kind = %s", [KIND])


@pytest.mark.slow
def test_outage_is_one_warning_however_long_it_lasts(
    superuser: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def heard_at() -> Any:
        query = "SELECT max(heard_at) FROM server_process WHERE kind = %s"
        (at,) = superuser.execute(query, [KIND]).fetchone() or (None,)
        return at

    def warnings() -> int:
        return sum("not heard in the database" in line for line in caplog.messages)

    def warns(times: int) -> bool:
        return warnings() == times

    def beats_again() -> None:
        last = until(heard_at)
        until(lambda: heard_at() > last)

    monkeypatch.setattr(processes, "BEAT_S", BEAT_S)
    caplog.set_level(logging.WARNING, logger=processes.__name__)
    reasons: list[str] = []
    processes.announce(KIND, "0", reasons.append)
    try:
        for outages in (1, 2):
            beats_again()
            assert warnings() == outages - 1
            superuser.execute(f"REVOKE INSERT ON server_process FROM {roles.APP}")
            try:
                until(partial(warns, outages))
                time.sleep(10 * BEAT_S)
            finally:
                superuser.execute(f"GRANT INSERT ON server_process TO {roles.APP}")
        beats_again()
        assert warnings() == 2
        assert reasons == []
    finally:  # a migration that it does not know ends the thread

        def check() -> int:
            raise schema.SchemaError("unknown migration")

        monkeypatch.setattr(schema.SCHEMA, "check", check)
        until(lambda: reasons)
    assert reasons == ["unknown migration"]
