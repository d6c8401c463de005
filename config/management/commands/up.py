"""`manage.py up`: prepare and run everything. `config.process.up` has the steps."""

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.process import up


class Command(BaseCommand):
    """Start database, web server and worker; with --demo also a tenant full of calls."""

    help = "Start everything: database, web server, worker. Ctrl-C stops it."
    requires_system_checks = []  # tests and deployments run them

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Every option has a default, so the command asks nothing."""
        first_tenant = parser.add_mutually_exclusive_group()
        first_tenant.add_argument(
            "--demo", action="store_true", help="a tenant whose executor makes real calls"
        )
        first_tenant.add_argument(
            "--dev-tenant", metavar="NAME", help="a tenant with an admin and a key, and no calls"
        )
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=_port, default=8000, help="0 takes any free one")
        parser.add_argument(
            "--json", action="store_true", help="print one line of JSON when ready, and no more"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Become the supervisor; does not return. Raises CommandError if the start fails."""
        try:
            up.run(
                up.Options(
                    host=options["host"],
                    port=options["port"],
                    demo=options["demo"],
                    dev_tenant=options["dev_tenant"],
                    as_json=options["json"],
                )
            )
        except up.UpError as error:
            raise CommandError(str(error)) from error


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise ArgumentTypeError("a number from 0 to 65535")
    return int(text)
