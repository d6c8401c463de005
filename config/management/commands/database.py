"""`manage.py database init`: create database and roles on an external PostgreSQL."""

import secrets
from argparse import ArgumentParser
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from config import env
from config.postgresql import database, roles


class Command(BaseCommand):
    """Create the database and its three roles, and print their URLs."""

    help = "Create the database and its roles on PostgreSQL 15 or newer, and print their URLs."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`init --admin-url URL [--name NAME] [--rotate]`."""
        commands = parser.add_subparsers(dest="command", required=True)
        init = commands.add_parser("init", help="create the roles and the database")
        init.add_argument(
            "--admin-url",
            required=True,
            help="URL of a superuser, such as postgresql://postgres@host/postgres",
        )
        init.add_argument(
            "--name", default=roles.DATABASE, help="name of the database (%(default)s)"
        )
        init.add_argument(
            "--rotate",
            action="store_true",
            help="set new passwords for existing roles; the old passwords stop working",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Create database and roles. Raises CommandError.

        It fails if the server cannot be reached, is too old, or returns an error. Existing roles
        get new passwords only with `--rotate`. Without it, the URLs in the environment must contain
        their current passwords, else it fails.
        """
        passwords = {role: secrets.token_urlsafe(24) for role in roles.ROLES}
        admin_url, is_kept = options["admin_url"], not options["rotate"]
        try:
            if is_kept and (users := database.users_of_roles(admin_url)) is not None:
                passwords = self._known_passwords(users)
                self._try(passwords, admin_url, users)
            database.initialise(admin_url, passwords, options["name"], keep_passwords=is_kept)
        except (psycopg.Error, database.TooOldError) as error:
            raise CommandError(str(error).splitlines()[0]) from error
        for variable, role in roles.VARIABLES.items():
            url = database.role_url(admin_url, role, passwords[role], options["name"])
            self.stdout.write(f"{variable}={url}")

    @staticmethod
    def _known_passwords(users: list[str]) -> dict[str, str]:
        """Return the roles' passwords from the URLs in the environment. Raises CommandError."""
        passwords = {}
        for variable, role in roles.VARIABLES.items():
            address = conninfo_to_dict(env.text(variable, ""))
            if address.get("user") != role or not address.get("password"):
                names = ", ".join(users) or "(none)"
                raise CommandError(
                    f"the roles {', '.join(roles.ROLES)} already exist on this server, for the"
                    f" databases {names}: set {', '.join(roles.VARIABLES)} to keep"
                    " their passwords, or use --rotate to replace them; the old ones stop working"
                )
            passwords[role] = str(address["password"])
        return passwords

    @staticmethod
    def _try(passwords: dict[str, str], admin_url: str, users: list[str]) -> None:
        """Raise CommandError if the environment is for another server, or out of date."""
        where = {"dbname": users[0]} if users else {}
        for variable, role in roles.VARIABLES.items():
            try:
                login = make_conninfo(admin_url, user=role, password=passwords[role], **where)
                psycopg.connect(login).close()
            except psycopg.OperationalError as error:
                raise CommandError(
                    f"{variable} cannot connect to this server as {role}"
                    f" ({str(error).splitlines()[0]}). Nothing was changed. Set it to the URL for"
                    " this server, or use --rotate to replace the password; the old one stops"
                    " working"
                ) from error
