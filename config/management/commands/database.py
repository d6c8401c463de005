"""`manage.py database init`: make database and roles on a PostgreSQL of your own."""

import secrets
from argparse import ArgumentParser
from typing import Any

import psycopg
from django.core.management.base import BaseCommand, CommandError

from config import database


class Command(BaseCommand):
    """Make the database and its three roles and print their addresses."""

    help = "Make database and roles on any PostgreSQL from 15 on; prints the three addresses."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`init --admin-url URL [--name NAME]`."""
        commands = parser.add_subparsers(dest="command", required=True)
        init = commands.add_parser("init", help="make what is missing; roles get new passwords")
        init.add_argument(
            "--admin-url", required=True, help="a superuser's: postgresql://postgres@host/postgres"
        )
        init.add_argument("--name", default=database.DATABASE, help="of the database")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError when the server cannot be reached, is too old, or refuses."""
        passwords = {role: secrets.token_urlsafe(24) for role in database.ROLES}
        try:
            database.initialise(options["admin_url"], passwords, options["name"])
        except (psycopg.Error, database.TooOldError) as error:
            raise CommandError(str(error).splitlines()[0]) from error
        for variable, role in database.VARIABLES.items():
            url = database.role_url(options["admin_url"], role, passwords[role], options["name"])
            self.stdout.write(f"{variable}={url}")
