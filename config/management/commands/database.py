"""`manage.py database init`: make database and roles on a PostgreSQL of your own."""

import secrets
from argparse import ArgumentParser
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from psycopg.conninfo import conninfo_to_dict

from config import database, env


class Command(BaseCommand):
    """Make the database and its three roles and print their addresses."""

    help = "Make database and roles on any PostgreSQL from 15 on; prints the three addresses."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`init --admin-url URL [--name NAME] [--rotate]`."""
        commands = parser.add_subparsers(dest="command", required=True)
        init = commands.add_parser("init", help="make the roles and a database")
        init.add_argument(
            "--admin-url", required=True, help="a superuser's: postgresql://postgres@host/postgres"
        )
        init.add_argument("--name", default=database.DATABASE, help="of the database")
        init.add_argument(
            "--rotate",
            action="store_true",
            help="give existing roles new passwords: whoever uses the old ones is locked out",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError when the server cannot be reached, is too old, or refuses; and where
        the roles exist, whose passwords are changed with `--rotate` alone or taken from the
        addresses of the environment.
        """
        passwords = {role: secrets.token_urlsafe(24) for role in database.ROLES}
        try:
            if not options["rotate"] and (users := database.users_of_roles(options["admin_url"])):
                passwords = self._known_passwords(users)
            database.initialise(options["admin_url"], passwords, options["name"])
        except (psycopg.Error, database.TooOldError) as error:
            raise CommandError(str(error).splitlines()[0]) from error
        for variable, role in database.VARIABLES.items():
            url = database.role_url(options["admin_url"], role, passwords[role], options["name"])
            self.stdout.write(f"{variable}={url}")

    @staticmethod
    def _known_passwords(users: list[str]) -> dict[str, str]:
        """The roles' passwords by the addresses of the environment. Raises CommandError."""
        passwords = {}
        for variable, role in database.VARIABLES.items():
            address = conninfo_to_dict(env.text(variable, ""))
            if address.get("user") != role or not address.get("password"):
                raise CommandError(
                    f"the server's roles {', '.join(database.ROLES)} exist already, for the"
                    f" databases {', '.join(users)}: set {', '.join(database.VARIABLES)} to keep"
                    " their passwords, or use --rotate, which locks out whoever uses the old ones"
                )
            passwords[role] = str(address["password"])
        return passwords
