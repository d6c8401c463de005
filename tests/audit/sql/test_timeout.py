"""A statement with a time limit: after a timeout its transaction continues."""

import pytest
from django.db import OperationalError, connection
from psycopg.errors import QueryCanceled

from audit import sql
from audit.sql.run import rows
from config.postgresql.base import DatabaseWrapper
from tenants.scope import tenant_scope
from tests.support.factories import Cast

WAITING = "SELECT pg_sleep(%(seconds)s)::text, %(tenant_id)s::text"


@pytest.fixture(autouse=True)
def waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that takes that many seconds."""
    monkeypatch.setitem(sql.QUERIES, "waiting", WAITING)


def timeout() -> str:
    """The timeout in force."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return str(cursor.fetchone()[0])


def test_statement_in_time_is_answered_and_the_setting_restored(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        before = timeout()
        assert rows("waiting", {"seconds": 0}, timeout_ms=20_000) == [("", str(acme.tenant.id))]
        assert timeout() == before


def test_statement_over_the_timeout_is_cancelled_and_the_transaction_continues(acme: Cast) -> None:
    with tenant_scope(acme.tenant.id):
        before = timeout()
        with pytest.raises(TimeoutError):
            rows("waiting", {"seconds": 60}, timeout_ms=20)
        assert timeout() == before
        assert rows("waiting", {"seconds": 0})


@pytest.mark.parametrize("seconds", [0, 60])
def test_cancelled_rollback_to_the_savepoint_is_retried(
    acme: Cast, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """The timeout applies to the rollback, too: on a busy machine a page failed with 500."""
    does, cut_off = DatabaseWrapper.savepoint_rollback, [True, True, False]

    def go_back(self: DatabaseWrapper, savepoint: str) -> None:
        if cut_off.pop(0):
            raise OperationalError("cut off") from QueryCanceled("cut off")
        does(self, savepoint)

    monkeypatch.setattr(DatabaseWrapper, "savepoint_rollback", go_back)
    with tenant_scope(acme.tenant.id):
        if seconds:
            with pytest.raises(TimeoutError):
                rows("waiting", {"seconds": seconds}, timeout_ms=20)
        else:
            assert rows("waiting", {"seconds": seconds}, timeout_ms=20_000)
        assert cut_off == []
        assert rows("waiting", {"seconds": 0})
