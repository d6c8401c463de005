"""`manage.py changepassword USERNAME [--stdin]`: Django's command, also usable in scripts."""

import getpass
import sys
from typing import Any

from django.contrib.auth.management.commands import changepassword
from django.core.management.base import CommandError, CommandParser

from tenants.management.accounts import record_in_tenants
from tenants.models import User
from tenants.service_accounts import PREFIX


class Command(changepassword.Command):
    """Prompts for the new password twice, or reads it once from standard input."""

    _given: str | None = None

    def add_arguments(self, parser: CommandParser) -> None:
        """Django's arguments and `--stdin`."""
        super().add_arguments(parser)
        parser.add_argument(
            "--stdin", action="store_true", help="read the password from standard input"
        )

    def handle(self, *args: Any, **options: Any) -> str | None:
        """Raises CommandError for an unknown user and for a password that is too weak."""
        if (options["username"] or "").startswith(PREFIX):
            raise CommandError("a service account has no password")
        if options["stdin"]:
            self._given = sys.stdin.readline().rstrip("\r\n")
            if not self._given:
                raise CommandError("no password on standard input")
        message: str | None = super().handle(*args, **options)
        user = User.objects.get_by_natural_key(options["username"] or getpass.getuser())
        record_in_tenants(user, "password.set")
        return message

    def _get_pass(self, prompt: str = "Password: ") -> str:
        return self._given or str(super()._get_pass(prompt))  # type: ignore[misc]  # not in the stubs
