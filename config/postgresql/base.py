"""The database backend: Django's own, but for where a web server's threads get connections.

psycopg's pool makes whoever needs a connection wait for a helper thread, and that one longer
and longer while PostgreSQL is away: requests held their threads for ten seconds, and nine more
passed before a restarted PostgreSQL was noticed. Here a thread opens the connection it needs
itself, so it is told at once when that fails; and while it fails, one thread at a time tries.
And it has cursors whose statements are prepared.
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
"""While PostgreSQL is away it is tried this often, by one of all requests."""
_HEARINGS = 5
"""What was sent comes back at once or in two parts, whatever came of it."""
_LIFETIME_S = 3600.0
"""After this a connection is replaced: what its server process remembers only grows."""


class ConnectionPool:
    """The connections of one process that no thread uses at the moment.

    It holds as many as threads ever wanted at once; those not used for `max_idle` seconds are
    closed when another is given back.
    """

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], max_idle: float) -> None:
        self._connect = connect
        self._max_idle = max_idle
        self._idle: deque[tuple[float, psycopg.Connection[Any]]] = deque()
        self._opened_at: WeakKeyDictionary[psycopg.Connection[Any], float] = WeakKeyDictionary()
        self._trying = threading.Lock()
        self._failed_at: float | None = None

    def open(self) -> None:
        """Nothing: connections are opened when they are needed. Django calls it."""

    def getconn(self) -> psycopg.Connection[Any]:
        """A connection that works, or did a moment ago.

        Raises psycopg.OperationalError when there is none: at once if that is known.
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
            raise psycopg.OperationalError("the database is away, and is being tried")
        try:
            if self._failed_at is not None and time.monotonic() < self._failed_at + _TRY_AGAIN_S:
                raise psycopg.OperationalError("the database was away a moment ago")
            return self._opened()
        finally:
            self._trying.release()

    def putconn(self, connection: psycopg.Connection[Any]) -> None:
        """Take a connection back; one that is broken or in a transaction is closed."""
        now = time.monotonic()
        connection._pool = None  # it is ours to close, without a warning
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
        """Close what is here."""
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
        cast(Any, connection)._pool = self  # where Django gives it back to
        return connection


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's connection to PostgreSQL; with the option `pool`, from a `ConnectionPool`."""

    pipeline: psycopg.Pipeline | None = None
    """The one that is open, if any (`tenants.scope`)."""

    def _commit(self) -> None:
        if self.pipeline is not None:
            with self.wrap_database_errors:
                _send_out(cast(psycopg.Connection[Any], self.connection))
        super()._commit()  # type: ignore[misc]  # what its stubs leave out

    def _rollback(self) -> None:
        # Of commands that failed in a pipeline psycopg tells one by one. What is not heard before
        # the rollback would be raised by it, and Django then closes the connection as broken.
        if self.pipeline is not None:
            _hear_out(cast(psycopg.Connection[Any], self.connection), self.pipeline)
        super()._rollback()  # type: ignore[misc]  # what its stubs leave out

    @property
    def pool(self) -> ConnectionPool | None:
        """This process's pool for this database, made when first asked for."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if not options:
            return None
        django = cast(Any, self)  # what its stubs leave out
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
            # Those statements that ask for it, none by itself; without it, psycopg prepares none.
            connection.prepare_threshold = sys.maxsize
        return has_written

    def preparing_cursor(self) -> CursorWrapper:
        """A cursor whose statements PostgreSQL prepares, inside an open transaction.

        Django prepares none, for the sake of poolers: see docs/adr/0006. None are prepared where
        a pooler cannot carry them.
        """
        connection = cast(psycopg.Connection[Any], self.connection)
        return cast(CursorWrapper, cast(Any, self)._prepare_cursor(_PreparingCursor(connection)))


class _PreparingCursor(psycopg.Cursor[tuple[Any, ...]]):
    """A cursor whose statements are prepared, each once on its connection."""

    def execute(self, query: Any, params: Params | None = None, **_: Any) -> Self:
        return super().execute(query, params, prepare=True, binary=True)


def is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Whether a pooler is between us and the server: it gives process ids of its own."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row is None or row[0] != connection.info.backend_pid


def _carries_prepared(connection: psycopg.Connection[Any]) -> bool:
    """Whether a prepared statement is found again in the next transaction.

    A pooler that keeps track of them gives them names of its own on the server. One that passes
    ours on (PgBouncer before 1.21, or with max_prepared_statements = 0) loses them.
    """
    if not is_pooled(connection):
        return True
    name = f"tooltrail_{secrets.token_hex(8)}"
    with connection.transaction():
        made = connection.pgconn.prepare(name.encode(), b"SELECT 1")
        if made.status != ExecStatus.COMMAND_OK:
            return False
        found = connection.execute(
            "SELECT FROM pg_prepared_statements WHERE name = %s", [name], prepare=False
        ).fetchone()
        if found is None:
            return True
        connection.execute(sql.SQL("DEALLOCATE {}").format(sql.Identifier(name)))
        return False


def _is_alive(connection: psycopg.Connection[Any]) -> bool:
    """Whether the server has not hung up, without asking it: nothing but that is ever to read."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if not poll.poll(0):
        return True
    try:
        connection.execute("")  # a notice may have come, or the end
    except psycopg.Error:
        return False
    return True


def _send_out(connection: psycopg.Connection[Any]) -> None:
    """Hand over to the system all that was written, and read what comes meanwhile.

    A commit or sync in a pipeline writes as much as the socket takes at the moment, and then only
    reads. Of some MB a part stays behind: PostgreSQL and we would wait for each other for ever.
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
