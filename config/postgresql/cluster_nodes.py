"""The nodes of a Citus cluster: which servers can be one, how they join, and what lies on each."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from config.postgresql import database, roles
from config.postgresql.distribution import Connection, DistributionError, is_distributed

_FITNESS = """
    SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'citus'),
           (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
           current_setting('wal_level'), current_setting('max_prepared_transactions')::int
"""

_WORKERS = """
    SELECT n.nodename, n.nodeport, count(s.shardid), coalesce(sum(s.shard_size), 0)::bigint
    FROM pg_dist_node n
    LEFT JOIN citus_shards s ON s.nodename = n.nodename AND s.nodeport = n.nodeport
                            AND s.citus_table_type = 'distributed'
    WHERE n.shouldhaveshards
    GROUP BY n.nodename, n.nodeport
    ORDER BY n.nodename, n.nodeport
"""

_LOGIN = """
    INSERT INTO pg_dist_authinfo (nodeid, rolename, authinfo)
    SELECT 0, rolname, %s FROM pg_roles WHERE rolname = %s
    ON CONFLICT (rolename, nodeid) DO UPDATE SET authinfo = excluded.authinfo
"""

_POLL_S = 0.5

_SETTINGS = {
    # The nodes learn whose scope is open.
    "citus.propagate_set_commands": "local",
    # Users are on every node, and a transaction that read memberships of several tenants may write
    # them. Statements about one tenant are not affected.
    "citus.multi_shard_modify_mode": "sequential",
}


def join_nodes(
    admin_url: str, workers: Sequence[str], name: str, passwords: Mapping[str, str]
) -> None:
    """Make the database's nodes a cluster: coordinator and workers know each other.

    `admin_url` and `workers` are URLs of superusers. With `passwords` of roles the nodes log in to
    each other. Nodes that are part of it already stay. Raises DistributionError without Citus on a
    node, and psycopg.Error.
    """
    with psycopg.connect(database.with_database(admin_url, name), autocommit=True) as coordinator:
        _make_extension(coordinator, admin_url, passwords)
        for setting, value in _SETTINGS.items():
            coordinator.execute(
                sql.SQL("ALTER DATABASE {} SET {} = {}").format(
                    sql.Identifier(name), sql.SQL(setting), sql.Literal(value)
                )
            )
        host, port = _address(admin_url)
        coordinator.execute("SELECT citus_set_coordinator_host(%s, %s)", [host, port])
        for worker in workers:
            _prepare_worker(worker, name, passwords)
            coordinator.execute("SELECT citus_add_node(%s, %s)", _address(worker))
            # The roles came with the node. Only then can one of them own the database.
            with psycopg.connect(database.with_database(worker, name)) as connection:
                _store(connection, passwords)
            with psycopg.connect(worker, autocommit=True) as connection:
                owner = sql.SQL("ALTER DATABASE {} OWNER TO {}")
                connection.execute(owner.format(sql.Identifier(name), sql.Identifier(roles.OWNER)))
        # A node that came later has none of the tables that are on every node.
        coordinator.execute("SELECT replicate_reference_tables()")


def _prepare_worker(worker: str, name: str, passwords: Mapping[str, str]) -> None:
    with psycopg.connect(worker, autocommit=True) as connection:
        known = connection.execute("SELECT FROM pg_database WHERE datname = %s", [name])
        if known.fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    with psycopg.connect(database.with_database(worker, name), autocommit=True) as connection:
        _make_extension(connection, worker, passwords)


def _make_extension(connection: Connection, url: str, passwords: Mapping[str, str]) -> None:
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS citus")
    except psycopg.Error as error:
        host, port = _address(url)
        raise DistributionError(
            f"{host}:{port} has no Citus: {str(error).splitlines()[0]}"
        ) from error
    _store(connection, passwords)


def _store(connection: Connection, passwords: Mapping[str, str]) -> None:
    """With these passwords of its roles a node logs in to the others."""
    for role, password in passwords.items():
        connection.execute(_LOGIN, [make_conninfo(password=password), role])


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "localhost", parts.port or 5432


def rebalance(connection: Connection, report: Callable[[str], None]) -> None:
    """Move shards until every node has its share. Readers and writers go on meanwhile.

    `connection` is a superuser's in autocommit mode. Raises DistributionError if a move fails, and
    psycopg.Error.
    """
    (job,) = connection.execute(
        "SELECT citus_rebalance_start(shard_transfer_mode => 'auto')"
    ).fetchone() or (None,)
    if job is None:
        report("every node has its share already")
        return
    last = ""
    while True:
        row = connection.execute(
            "SELECT state::text, details::text FROM citus_rebalance_status()"
        ).fetchone()
        state = row[0] if row else "finished"
        if state != last:
            report(f"moving shards: {state}")
            last = state
        if state in {"finished", "failed", "cancelled"}:
            break
        time.sleep(_POLL_S)
    if state != "finished":
        raise DistributionError(f"moving shards {state}: {row[1] if row else ''}")


def why_unfit(node: str) -> list[str]:
    """Return why the server at this superuser's URL cannot be a node; nothing if it can.

    Raises psycopg.Error if it cannot be reached.
    """
    host, port = _address(node)
    with psycopg.connect(node, autocommit=True) as connection:
        row = connection.execute(_FITNESS).fetchone()
    assert row is not None
    has_citus, is_superuser, wal_level, prepared = row
    reasons = []
    if not has_citus:
        reasons.append("Citus is not installed there")
    if not is_superuser:
        reasons.append("the URL's role is no superuser")
    if wal_level != "logical":
        reasons.append(f"wal_level is {wal_level}, and moves of shards need logical")
    if prepared == 0:
        reasons.append(
            "max_prepared_transactions is 0, and commits over nodes need as many as connections"
        )
    return [f"{host}:{port}: {reason}" for reason in reasons]


def workers(connection: Connection) -> list[dict[str, Any]]:
    """Nodes that hold tenants: host, port, number of shards, and their bytes."""
    if not is_distributed(connection):
        return []
    names = ("host", "port", "shards", "bytes")
    return [dict(zip(names, row, strict=True)) for row in connection.execute(_WORKERS)]
