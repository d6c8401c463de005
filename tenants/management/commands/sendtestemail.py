"""`manage.py sendtestemail ADDRESS`: Django's command, which says what is wrong in one line."""

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import sendtestemail


class Command(sendtestemail.Command):
    """Tries the mail server of `TOOLTRAIL_MAIL_HOST` at once, without the worker."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError without a mail server, and with the reason why it takes no mail."""
        if not settings.MAILERS:
            raise CommandError("no mail server: set TOOLTRAIL_MAIL_HOST")
        if not options["email"]:
            raise CommandError("name an address")
        try:
            super().handle(*args, **options)
        except (OSError, ValueError) as error:
            raise CommandError(f"{type(error).__name__}: {error}") from error
        self.stdout.write(
            f"sent to {', '.join(options['email'])}, from {settings.DEFAULT_FROM_EMAIL}"
        )
