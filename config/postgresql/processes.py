"""Which processes of which versions serve from this database: each is heard every few seconds.

A migration that older code cannot run beside waits until every process that does not know it is
gone (`OlderCodeMustBeGone`). A process that is not heard any more may still run, cut off from the
database: it can store no calls then, as `config.postgresql.schema` says.
"""

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor

from config.postgresql import schema
from config.postgresql.migrations import OlderCodeMustBeGone

_LOGGER = logging.getLogger(__name__)
BEAT_S = 5.0
HEARD_S = 30.0
"""A process that was not heard for this long is gone."""
_FORGOTTEN_S = 86_400.0
_BEAT = """
    INSERT INTO server_process (id, host, pid, kind, version, known_migrations, heard_at)
    VALUES (%s, %s, %s, %s, %s, %s, now())
    ON CONFLICT (id) DO UPDATE SET heard_at = now()
"""
_FORGET = "DELETE FROM server_process WHERE heard_at < now() - make_interval(secs => %s)"
_OLDER = """
    SELECT kind, host, pid, version, extract(epoch FROM now() - heard_at)::integer
    FROM server_process
    WHERE heard_at > now() - make_interval(secs => %s) AND NOT %s = ANY (known_migrations)
    ORDER BY host, pid
"""
_HEARD = """
    SELECT kind, count(*) FROM server_process
    WHERE heard_at > now() - make_interval(secs => %s) GROUP BY kind
"""


def announce(kind: str, version: str, stop: Callable[[str], None] | None = None) -> None:
    """Make this process heard from now on, in a thread with a connection of its own.

    `stop` is called once with the reason when the database gets migrations unknown to us: for a
    process without requests.
    """
    row: list[Any] = [uuid.uuid4(), socket.gethostname(), os.getpid(), kind, version]
    row.append(sorted(f"{app}.{name}" for app, name in schema.known()))

    def run() -> None:
        is_first = is_heard = True
        while True:
            try:
                with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
                    if is_first:
                        cursor.execute(_FORGET, [_FORGOTTEN_S])
                    cursor.execute(_BEAT, row)
                is_first, is_heard = False, True
                if stop is not None:
                    schema.SCHEMA.check()
            except schema.SchemaError as error:
                assert stop is not None
                stop(str(error))
                return
            except Exception:  # the thread goes on: the database may come back
                if is_heard:  # once an outage
                    _LOGGER.warning("This process is not heard in the database", exc_info=True)
                is_heard = False
            finally:
                connections.close_all()
            time.sleep(BEAT_S)

    threading.Thread(target=run, name="heartbeat", daemon=True).start()


def heard() -> dict[str, int]:
    """How many processes of each kind (web, gRPC, worker) were heard lately, on all hosts."""
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_HEARD, [HEARD_S])
        return dict(cursor.fetchall())


@dataclass(frozen=True)
class Pending:
    """What `migrate` may apply now, and what must wait."""

    count: int
    """Migrations to apply now."""
    targets: list[dict[str, str]]
    """Options for Django's `migrate`, one for each time that it must run."""
    is_late: bool
    """Whether all of them had to wait for older processes, or follow one that had."""
    waits: list[str]
    """A line for each migration that waits, with the processes that it waits for."""


def pending(using: str) -> Pending:
    """Return what the database lacks. What needs a migration that waits, waits for the same.

    Raises Django's errors if the database cannot be reached.
    """
    executor = MigrationExecutor(connections[using])
    plan = [each for each, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]
    held: dict[tuple[str, str], list[str]] = {}
    last: dict[str, str] = {}
    late: set[tuple[str, str]] = set()
    for migration in plan:
        key = (migration.app_label, migration.name)
        older = [each for needed in migration.dependencies for each in held.get(needed, ())]
        if not late.isdisjoint(migration.dependencies):
            late.add(key)
        if any(isinstance(each, OlderCodeMustBeGone) for each in migration.operations):
            late.add(key)
            older += _heard_without(key, using)
        if older:
            held[key] = list(dict.fromkeys(older))
        else:
            last[migration.app_label] = migration.name
    targets = [{"app_label": app, "migration_name": name} for app, name in last.items()]
    return Pending(
        count=len(plan) - len(held),
        targets=targets if held else [{}],
        is_late=len(late) == len(plan),
        waits=[
            f"{app}.{name} waits until older processes have ended: {'; '.join(older)}"
            for (app, name), older in held.items()
        ],
    )


def _heard_without(migration: tuple[str, str], using: str) -> list[str]:
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT to_regclass('server_process') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return []  # the first start
        cursor.execute(_OLDER, [HEARD_S, ".".join(migration)])
        return [
            f"{kind} {host}:{pid} ({version}, heard {seconds} s ago)"
            for kind, host, pid, version, seconds in cursor.fetchall()
        ]
