"""`manage.py principals status | rotate-key`: the keys with which principals become pseudonyms."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from audit.intake import principal_keys
from config.instants import iso
from config.private_files import PrivateFileError


class Command(BaseCommand):
    """For the operator, on a machine that takes events. Other machines need a copy of the file."""

    help = "Show or rotate the keys with which principals become pseudonyms."
    requires_system_checks = []  # they import all pages: half a second

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`status`, `rotate-key`."""
        commands = parser.add_subparsers(dest="command", required=True)
        for name, text in (
            ("status", "list the keys by the id that pseudonyms name"),
            ("rotate-key", "create a new key; the old ones stay for look-ups"),
        ):
            command = commands.add_parser(name, help=text)
            command.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the subcommand. Raises CommandError if the file cannot be read or written."""
        try:
            is_rotation = options["command"] == "rotate-key"
            keys = principal_keys.rotate() if is_rotation else principal_keys.stored_keys()
        except PrivateFileError as error:
            raise CommandError(str(error)) from error
        listed = [
            {"id": key.id, "created_at": key.created_at and iso(key.created_at)} for key in keys
        ]
        if options["json"]:
            self.stdout.write(json.dumps(listed))
            return
        for each in listed:
            self.stdout.write(f"{each['id']}: {each['created_at'] or 'of the secret key'}")
