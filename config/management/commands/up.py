"""`manage.py up`: prepare and run everything. `config.process.up` has the steps."""

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.process import up


class Command(BaseCommand):
    """Start database, web server and worker; with --demo also a tenant full of calls."""

    help = "Start the database, the web server and the worker. Ctrl-C stops everything."
    requires_system_checks = []  # tests and deployments run them

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Every option has a default, so the command never prompts."""
        first_tenant = parser.add_mutually_exclusive_group()
        first_tenant.add_argument(
            "--demo", action="store_true", help="start with a demo tenant and sample traffic"
        )
        first_tenant.add_argument(
            "--dev-tenant", metavar="NAME", help="start with an empty tenant, an admin and a key"
        )
        parser.add_argument(
            "--js", action="store_true", help="with --demo: also run a demo executor in JavaScript"
        )
        parser.add_argument("--host", default="127.0.0.1", help="listen address (%(default)s)")
        parser.add_argument(
            "--port", type=_port, default=8000, help="port (%(default)s); 0: any free one"
        )
        parser.add_argument(
            "--without-worker",
            action="store_true",
            help="only serve; needs a worker elsewhere (procrastinate worker)",
        )
        parser.add_argument(
            "--json", action="store_true", help="print only one line of JSON, when ready"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Become the supervisor; does not return. Raises CommandError if the start fails."""
        if options["js"] and not options["demo"]:
            raise CommandError("--js needs --demo")
        try:
            up.run(
                up.Options(
                    host=options["host"],
                    port=options["port"],
                    demo=options["demo"],
                    dev_tenant=options["dev_tenant"],
                    as_json=options["json"],
                    without_worker=options["without_worker"],
                    javascript=options["js"],
                )
            )
        except up.UpError as error:
            raise CommandError(str(error)) from error


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise ArgumentTypeError("must be a number from 0 to 65535")
    return int(text)
