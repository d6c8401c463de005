"""`manage.py passwordlink USERNAME`: a link for a new password, to hand over to a person."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tenants.management.accounts import account_named, record_in_tenants
from tenants.passwords.links import NoLinkError, link_for


class Command(BaseCommand):
    """For people without an address, and where no mail is sent. Nobody else learns the password."""

    help = "Print a link by which an account gets a new password: once, within three hours."

    def add_arguments(self, parser: CommandParser) -> None:
        """The account."""
        parser.add_argument("username")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError for an unknown user, and for one who gets no link."""
        user = account_named(options["username"])
        try:
            link = link_for(user)
        except NoLinkError as error:
            raise CommandError(str(error)) from error
        record_in_tenants(user, "password.link")
        self.stdout.write(link)
