"""The database and its three roles. `manage.py database init` creates them once per PostgreSQL.

- `tooltrail_owner` owns the tables, runs migrations and creates partitions. It bypasses
  row-level security, because an owner bound by it loses rows when shards move (Citus).
- `tooltrail_app` is the role of web and worker: it has only grants, and every policy binds it.
- `tooltrail_keeper` blanks expired or erased payloads, and nothing else.

Migrations grant each role its rights on our tables. This module creates what must exist before.
"""

from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from config.postgresql.roles import APP, DATABASE, KEEPER, OWNER, ROLES

OLDEST_VERSION = 15
SILENT_MAX = "5min"
"""After that, PostgreSQL ends a session of app or keeper that is silent in a transaction."""


class TooOldError(Exception):
    """The server is too old. The message is one line for people."""


def initialise(
    admin_url: str,
    passwords: dict[str, str],
    database: str = DATABASE,
    *,
    keep_passwords: bool = False,
) -> None:
    """Create the roles and the database, or bring existing ones to the same state.

    `admin_url` is a superuser's URL. `passwords` maps each role to its password. With
    `keep_passwords`, existing roles keep theirs.

    Raises TooOldError below PostgreSQL 15, and psycopg.Error if the server cannot be reached or
    returns an error.
    """
    with psycopg.connect(admin_url, autocommit=True) as connection:
        if connection.info.server_version < OLDEST_VERSION * 10_000:
            raise TooOldError(f"PostgreSQL {OLDEST_VERSION} or newer is required")
        for role in ROLES:
            known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
            is_new = known.fetchone() is None
            if is_new:
                connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
            bypass = sql.SQL("BYPASSRLS" if role == OWNER else "NOBYPASSRLS")
            password = sql.SQL("PASSWORD {}").format(sql.Literal(passwords[role]))
            connection.execute(
                sql.SQL("ALTER ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE {} {}").format(
                    sql.Identifier(role),
                    bypass,
                    sql.SQL("") if keep_passwords and not is_new else password,
                )
            )
        for role in (APP, KEEPER):
            # A host that is cut off in a transaction keeps its locks until then. PostgreSQL would
            # not notice for hours, and executors that repeat their request elsewhere would wait.
            connection.execute(
                sql.SQL("ALTER ROLE {} SET idle_in_transaction_session_timeout = {}").format(
                    sql.Identifier(role), sql.Literal(SILENT_MAX)
                )
            )
        name = sql.Identifier(database)
        known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database])
        if known.fetchone() is None:
            connection.execute(
                sql.SQL("CREATE DATABASE {} OWNER {}").format(name, sql.Identifier(OWNER))
            )
        connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
        for role in (APP, KEEPER):
            connection.execute(
                sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(name, sql.Identifier(role))
            )
    with psycopg.connect(with_database(admin_url, database), autocommit=True) as connection:
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        # The maximum rights on a table. Migrations narrow them: by row-level security on tables
        # with a tenant_id, by grants on tables and columns elsewhere (tests/schema).
        connection.execute(
            sql.SQL(
                "ALTER DEFAULT PRIVILEGES FOR ROLE {owner}"
                " GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {app}"
            ).format(owner=sql.Identifier(OWNER), app=sql.Identifier(APP))
        )
        connection.execute(
            sql.SQL(
                "ALTER DEFAULT PRIVILEGES FOR ROLE {owner}"
                " GRANT USAGE, SELECT ON SEQUENCES TO {app}"
            ).format(owner=sql.Identifier(OWNER), app=sql.Identifier(APP))
        )


def users_of_roles(admin_url: str) -> list[str] | None:
    """Return the names of our owner's databases; None if none of our roles exists.

    Raises psycopg.Error if the server cannot be reached or returns an error.
    """
    with psycopg.connect(admin_url, autocommit=True) as connection:
        known = connection.execute(
            "SELECT 1 FROM pg_roles WHERE rolname = ANY(%s)", [list(ROLES)]
        ).fetchone()
        if known is None:
            return None
        names = connection.execute(
            "SELECT datname FROM pg_database, pg_roles WHERE rolname = %s AND datdba = pg_roles.oid"
            " ORDER BY datname",
            [OWNER],
        ).fetchall()
    return [str(name) for (name,) in names]


ROLE_QUERY = """
    SELECT current_user, rolsuper, rolbypassrls, EXISTS (
        SELECT FROM pg_class
        WHERE relnamespace = to_regnamespace(current_schema()) AND relkind IN ('r', 'p')
            AND pg_has_role(current_user, relowner, 'MEMBER')
    )
    FROM pg_roles WHERE rolname = current_user
"""
"""Returns the arguments of `unfit_role` in their order."""


def unfit_role(name: str, is_superuser: bool, bypasses_rls: bool, owns_tables: bool) -> str | None:
    """Return why row-level security does not bind a role, so that it must not serve; or None."""
    if is_superuser:
        return f"the database role {name} is a superuser; DATABASE_URL must name {APP}"
    if bypasses_rls:
        return f"the database role {name} bypasses row-level security; DATABASE_URL must name {APP}"
    if owns_tables:
        return f"the database role {name} owns tables; DATABASE_URL must name {APP}"
    return None


def role_url(admin_url: str, role: str, password: str, database: str = DATABASE) -> str:
    """Return the same server's URL for another role and database."""
    parts = urlsplit(with_database(admin_url, database))
    address = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}:{quote(password, safe='')}@{address}"))


def with_database(url: str, database: str) -> str:
    """Return the same URL with another database name."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{quote(database, safe='')}"))
