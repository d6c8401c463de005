"""`manage.py changepassword USERNAME [--stdin]`: Django's, which a script can use, too."""

import sys
from typing import Any

from django.contrib.auth.management.commands import changepassword
from django.core.management.base import CommandError, CommandParser


class Command(changepassword.Command):
    """Asks for the new password twice, or reads it from standard input once."""

    _given: str | None = None

    def add_arguments(self, parser: CommandParser) -> None:
        """Django's, and `--stdin`."""
        super().add_arguments(parser)
        parser.add_argument(
            "--stdin", action="store_true", help="read the password from standard input"
        )

    def handle(self, *args: Any, **options: Any) -> str | None:
        """Raises CommandError for an unknown user and for a password that is not good enough."""
        if options["stdin"]:
            self._given = sys.stdin.readline().rstrip("\r\n")
            if not self._given:
                raise CommandError("standard input has no password")
        message: str | None = super().handle(*args, **options)
        return message

    def _get_pass(self, prompt: str = "Password: ") -> str:
        return self._given or str(super()._get_pass(prompt))  # type: ignore[misc]  # the stubs lack it
