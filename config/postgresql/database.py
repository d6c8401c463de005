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
VARIABLES = {"DATABASE_URL": APP, "DATABASE_OWNER_URL": OWNER, "DATABASE_KEEPER_URL": KEEPER}
"""Which environment variable holds which role's address."""
OLDEST_VERSION = 15


class TooOldError(Exception):
    """The server is older than we support; the message is one line for people."""


def initialise(
    admin_url: str,
    passwords: dict[str, str],
    database: str = DATABASE,
    *,
    keep_passwords: bool = False,
) -> None:
    """Make the roles and the database, or bring existing ones to the same state.

    `admin_url` is a superuser's address; `passwords` maps each role to its password, which roles
    that exist do not get with `keep_passwords`.
    Raises TooOldError below PostgreSQL 15, psycopg.Error when the server cannot be reached
    or refuses.
    """
    with psycopg.connect(admin_url, autocommit=True) as connection:
        if connection.info.server_version < OLDEST_VERSION * 10_000:
            raise TooOldError(f"PostgreSQL {OLDEST_VERSION} or newer is needed")
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
        # The widest that a table gets. Migrations narrow it: by row-level security where there
        # is a tenant_id, by grants on tables and columns elsewhere (tests/schema).
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
    """Names of the databases that our owner has; None where none of our roles exists.

    Raises psycopg.Error when the server cannot be reached or refuses.
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
"""What `unfit_role` judges, in its order."""


def unfit_role(name: str, is_superuser: bool, bypasses_rls: bool, owns_tables: bool) -> str | None:
    """Why a role must not serve requests: row-level security would not bind it. None if it may."""
    if is_superuser:
        return f"the database role {name} is a superuser; DATABASE_URL must name {APP}"
    if bypasses_rls:
        return f"the database role {name} bypasses row-level security; DATABASE_URL must name {APP}"
    if owns_tables:
        return f"the database role {name} owns tables; DATABASE_URL must name {APP}"
    return None


def role_url(admin_url: str, role: str, password: str, database: str = DATABASE) -> str:
    """The same server's address for another role and database."""
    parts = urlsplit(with_database(admin_url, database))
    address = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role}:{quote(password, safe='')}@{address}"))


def with_database(url: str, database: str) -> str:
    """The same address with another database name."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{quote(database, safe='')}"))
