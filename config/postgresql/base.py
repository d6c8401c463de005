"""The database backend: Django's, with another connection pool for a web server's threads.

With psycopg's pool, a thread that needs a connection waits for a helper thread. While PostgreSQL is
down, the helper waits longer and longer: requests held their threads for 10 s, and it took another
9 s to notice a restarted PostgreSQL. Here a thread opens its connection itself, so it gets an error
immediately. While PostgreSQL is down, only one thread at a time tries to connect.

The backend also has cursors whose statements are prepared.
"""

import secrets
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Self, cast
from weakref import WeakKeyDictionary

import psycopg
from django.db.backends.postgresql import base
from django.db.backends.utils import CursorWrapper
from psycopg import generators, sql
from psycopg.abc import Params
from psycopg.pq import ExecStatus, TransactionStatus

_TRY_AGAIN_S = 0.2
"""Seconds between two attempts to connect while PostgreSQL is down."""
_HEARINGS = 5
"""Maximum of syncs to read all results. They arrive in one part or two, errors included."""
_LIFETIME_S = 3600.0
"""A connection is replaced after this, because its server process's memory only grows."""


class ConnectionPool:
    """The connections of one process that no thread currently uses.

    It keeps as many as threads ever used at once. Those unused for `max_idle` seconds are closed
    when another one is returned.
    """

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], max_idle: float) -> None:
        self._connect = connect
        self._max_idle = max_idle
        self._idle: deque[tuple[float, psycopg.Connection[Any]]] = deque()
        self._opened_at: WeakKeyDictionary[psycopg.Connection[Any], float] = WeakKeyDictionary()
        self._trying = threading.Lock()
        self._failed_at: float | None = None

    def open(self) -> None:
        """Do nothing: connections are opened when needed. Django calls this method."""

    def getconn(self) -> psycopg.Connection[Any]:
        """Return a connection that works, or did a moment ago.

        Raises psycopg.OperationalError if none can be opened, immediately if PostgreSQL is known to
        be down.
        """
        while self._idle:
            try:
                _, connection = self._idle.pop()
            except IndexError:
                break  # another thread was quicker
            if _is_alive(connection):
                return self._lent(connection)
            connection.close()
        if self._failed_at is None:
            return self._opened()
        if not self._trying.acquire(blocking=False):
            raise psycopg.OperationalError("the database is unreachable; a thread is connecting")
        try:
            if self._failed_at is not None and time.monotonic() < self._failed_at + _TRY_AGAIN_S:
                raise psycopg.OperationalError("the database was unreachable a moment ago")
            return self._opened()
        finally:
            self._trying.release()

    def putconn(self, connection: psycopg.Connection[Any]) -> None:
        """Return a connection to the pool. Close one that is broken, old or in a transaction."""
        now = time.monotonic()
        connection._pool = None  # otherwise closing it logs a warning
        if (
            connection.pgconn.transaction_status != TransactionStatus.IDLE
            or now - self._opened_at.get(connection, now) > _LIFETIME_S
        ):
            connection.close()
        else:
            self._idle.append((now, connection))
        while self._idle and self._idle[0][0] < now - self._max_idle:
            try:
                _, unused = self._idle.popleft()
            except IndexError:
                break
            unused.close()

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop()[1].close()

    def _opened(self) -> psycopg.Connection[Any]:
        try:
            connection = self._connect()
        except psycopg.OperationalError:
            self._failed_at = time.monotonic()
            raise
        self._failed_at = None
        self._opened_at[connection] = time.monotonic()
        return self._lent(connection)

    def _lent(self, connection: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
        cast(Any, connection)._pool = self  # where Django returns it
        return connection


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's connection to PostgreSQL. With the option `pool`, it uses a `ConnectionPool`."""

    pipeline: psycopg.Pipeline | None = None
    """The open pipeline, if any (`tenants.scope`)."""
    _plans_once = False
    """Whether the open transaction has set `plan_cache_mode`."""

    def _commit(self) -> None:
        self._plans_once = False
        if self.pipeline is not None:
            with self.wrap_database_errors:
                _send_out(cast(psycopg.Connection[Any], self.connection))
        super()._commit()  # type: ignore[misc]  # missing in the stubs

    def _rollback(self) -> None:
        self._plans_once = False
        # psycopg reports failed commands of a pipeline one by one. The rollback would raise an
        # error that was not read before, and Django would then close the connection as broken.
        if self.pipeline is not None:
            _hear_out(cast(psycopg.Connection[Any], self.connection), self.pipeline)
        super()._rollback()  # type: ignore[misc]  # missing in the stubs

    def _savepoint_rollback(self, sid: str) -> None:
        self._plans_once = False
        super()._savepoint_rollback(sid)  # type: ignore[misc]  # missing in the stubs

    @property
    def pool(self) -> ConnectionPool | None:
        """This process's pool for this database, created on first use."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if not options:
            return None
        django = cast(Any, self)  # missing in the stubs
        pools: dict[str, ConnectionPool] = django._connection_pools
        if self.alias not in pools:
            parameters = self.get_connection_params() | {"autocommit": True}

            def connect() -> psycopg.Connection[Any]:
                connection = psycopg.connect(**parameters)
                try:
                    django._configure_connection(connection)
                except BaseException:
                    connection.close()
                    raise
                return connection

            pools.setdefault(self.alias, ConnectionPool(connect, options["max_idle"]))
        return pools[self.alias]

    def _configure_connection(self, connection: psycopg.Connection[Any]) -> bool:
        has_written: bool = cast(Any, super())._configure_connection(connection)
        if self.settings_dict.get("PREPARE", True) and _carries_prepared(connection):
            # Only statements that request it are prepared. Without this, psycopg prepares none.
            connection.prepare_threshold = sys.maxsize
        return has_written

    def preparing_cursor(self) -> CursorWrapper:
        """Return a cursor whose statements PostgreSQL plans once. Needs an open transaction.

        Without the setting, PostgreSQL plans each five more times, and always if it expects that to
        be cheaper.

        Django prepares none because of poolers (docs/adr/0006). This cursor prepares none if the
        pooler does not support it.
        """
        connection = cast(psycopg.Connection[Any], self.connection)
        cursor = cast(Any, self)._prepare_cursor(_PreparingCursor(connection))
        if not self._plans_once:
            cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
            self._plans_once = True
        return cast(CursorWrapper, cursor)


class _PreparingCursor(psycopg.Cursor[tuple[Any, ...]]):
    """A cursor whose statements are prepared, each once per connection."""

    def execute(self, query: Any, params: Params | None = None, **_: Any) -> Self:
        return super().execute(query, params, prepare=True, binary=True)


def is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Whether a pooler is between us and the server. A pooler reports other process ids."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row is None or row[0] != connection.info.backend_pid


def _carries_prepared(connection: psycopg.Connection[Any]) -> bool:
    """Whether a prepared statement still exists in the next transaction.

    A pooler that tracks prepared statements renames them on the server. One that forwards our names
    (PgBouncer before 1.21, or with max_prepared_statements = 0) loses them.
    """
    if not is_pooled(connection):
        return True
    name = f"tooltrail_{secrets.token_hex(8)}"
    with connection.transaction():
        prepared = connection.pgconn.prepare(name.encode(), b"SELECT 1")
        if prepared.status != ExecStatus.COMMAND_OK:
            return False
        row = connection.execute(
            "SELECT FROM pg_prepared_statements WHERE name = %s", [name], prepare=False
        ).fetchone()
        if row is None:
            return True
        connection.execute(sql.SQL("DEALLOCATE {}").format(sql.Identifier(name)))
        return False


def _is_alive(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server has not closed the connection. Sends a query only if there is input."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return True
    try:
        connection.execute("")  # the input may be a notice, or the end
    except psycopg.Error:
        return False
    return True


def _send_out(connection: psycopg.Connection[Any]) -> None:
    """Send all buffered output, and read results meanwhile.

    A commit or sync in a pipeline writes as much as the socket accepts, and then only reads. Of
    some MB of output a part would remain: PostgreSQL and we would wait for each other for ever.
    """
    connection.wait(generators.send(connection.pgconn))


def _hear_out(connection: psycopg.Connection[Any], pipeline: psycopg.Pipeline) -> None:
    for _ in range(_HEARINGS):
        try:
            _send_out(connection)
            pipeline.sync()
        except psycopg.Error:
            continue
        return
