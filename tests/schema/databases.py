"""Databases beside the session's, on the same server, with the real roles."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import connections
from psycopg import sql

from config.postgresql import database, roles


@contextmanager
def new_database(template: str | None = None) -> Iterator[str]:
    """Make a database and yield Django's alias of it, as the owner; dropped at the end.

    It is empty, or a copy of the one with the alias `template`.
    """
    name = f"tooltrail_test_{secrets.token_hex(4)}"
    admin_url = os.environ["TEST_ADMIN_URL"]
    if template is not None:
        connections[template].close()  # nobody may be connected while it is copied
        with psycopg.connect(admin_url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(
                    *map(sql.Identifier, (name, template, roles.OWNER))
                )
            )
    # The session's roles keep their passwords: those given here are not used.
    database.initialise(admin_url, dict.fromkeys(roles.ROLES, ""), name, keep_passwords=True)
    connections.databases[name] = connections.databases["owner"] | {"NAME": name}
    try:
        yield name
    finally:
        connections[name].close()
        del connections[name]
        del connections.databases[name]
        with psycopg.connect(admin_url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            )


def addresses(name: str) -> dict[str, str]:
    """The environment of a process that works on this database."""
    return {
        variable: database.with_database(os.environ[variable], name) for variable in roles.VARIABLES
    }
