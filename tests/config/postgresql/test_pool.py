"""The connection pool of a web server's threads, with PostgreSQL and without."""

import os
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from config.postgresql.base import ConnectionPool
from tests.support.installation import until

type Connection = psycopg.Connection[Any]


def connect() -> Connection:
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


@pytest.fixture
def pool() -> Iterator[ConnectionPool]:
    pool = ConnectionPool(connect, max_idle=300)
    yield pool
    pool.close()


def test_returned_connection_is_reused(pool: ConnectionPool) -> None:
    first, second = pool.getconn(), pool.getconn()
    assert first is not second
    pool.putconn(first)
    assert pool.getconn() is first
    pool.putconn(first)
    pool.putconn(second)
    pool.close()
    assert first.closed
    assert second.closed


def test_connection_in_a_transaction_is_not_reused(pool: ConnectionPool) -> None:
    connection = pool.getconn()
    connection.execute("BEGIN")
    pool.putconn(connection)
    assert connection.closed


def test_connection_closed_by_the_server_is_replaced(pool: ConnectionPool) -> None:
    ended = pool.getconn()
    pid = ended.info.backend_pid
    pool.putconn(ended)
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
        is_there = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        until(lambda: other.execute(is_there, [pid]).fetchone() is None)
    replaced = pool.getconn()
    assert replaced.execute("SELECT 1").fetchone() == (1,)
    assert ended.closed
    pool.putconn(replaced)


def test_idle_connection_is_closed_when_another_is_returned() -> None:
    pool = ConnectionPool(connect, max_idle=0)
    first, second = pool.getconn(), pool.getconn()
    pool.putconn(first)
    pool.putconn(second)
    assert first.closed
    pool.close()


def test_one_thread_retries_an_unavailable_database_and_the_others_fail_immediately() -> None:
    may_answer = threading.Event()
    tries: list[int] = []
    failures: list[str] = []

    def connect_later() -> Connection:
        tries.append(threading.get_ident())
        if len(tries) == 1:
            raise psycopg.OperationalError("refused")
        may_answer.wait()
        return connect()

    pool = ConnectionPool(connect_later, max_idle=300)
    with pytest.raises(psycopg.OperationalError, match="refused"):
        pool.getconn()

    def retry() -> None:
        while len(tries) < 2:  # shortly after a failure the pool does not connect
            try:
                pool.putconn(pool.getconn())
            except psycopg.OperationalError as error:
                failures.append(str(error))

    other = threading.Thread(target=retry)
    other.start()
    until(lambda: len(tries) == 2)
    with pytest.raises(psycopg.OperationalError, match="a thread is connecting"):
        pool.getconn()
    assert set(failures) == {"the database was unreachable a moment ago"}
    may_answer.set()
    other.join()
    pool.putconn(pool.getconn())
    assert len(tries) == 2  # the returned connection is reused
    pool.close()
