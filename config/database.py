"""The database and its three roles, made once per PostgreSQL by `manage.py database init`.

- `tooltrail_owner` owns the tables, runs migrations and makes partitions. It bypasses
  row-level security, because an owner bound by it loses rows when shards move (Citus).
- `tooltrail_app` is what web and worker run as: grants only, bound by every policy.
- `tooltrail_keeper` blanks expired or erased payloads, and nothing else.

What each may do to our tables is in the migrations; here is only what must exist before.
"""

from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

DATABASE = "tooltrail"
OWNER, APP, KEEPER = ROLES = ("tooltrail_owner", "tooltrail_app", "tooltrail_keeper")


def initialise(admin_url: str, passwords: dict[str, str], database: str = DATABASE) -> None:
    """Make the roles and the database, or bring existing ones to the same state.

    `admin_url` is a superuser's address; `passwords` maps each role to its password.
    Raises psycopg.Error when the server cannot be reached or refuses.
    """
    with psycopg.connect(admin_url, autocommit=True) as connection:
        for role in ROLES:
            known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role])
            if known.fetchone() is None:
                connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(role)))
            bypass = sql.SQL("BYPASSRLS" if role == OWNER else "NOBYPASSRLS")
            connection.execute(
                sql.SQL(
                    "ALTER ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE {} PASSWORD {}"
                ).format(sql.Identifier(role), bypass, sql.Literal(passwords[role]))
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
        # Tables of Django and of the job queue need no rule of their own; tables with a
        # tenant_id get theirs from row-level security and narrower grants (tests/schema).
        connection.execute(
            sql.SQL(
                "ALTER DEFAULT PRIVILEGES FOR ROLE {owner}"
                " GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {app}"
            ).format(owner=sql.Identifier(OWNER), app=sql.Identifier(APP))
        )
        connection.execute(
            sql.SQL(
                "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT USAGE, SELECT ON SEQUENCES TO {app}"
            ).format(owner=sql.Identifier(OWNER), app=sql.Identifier(APP))
        )


def role_url(admin_url: str, role: str, password: str, database: str = DATABASE) -> str:
    """The same server's address for another role and database."""
    parts = urlsplit(with_database(admin_url, database))
    address = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}:{quote(password, safe='')}@{address}"))


def with_database(url: str, database: str) -> str:
    """The same address with another database name."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{quote(database, safe='')}"))
