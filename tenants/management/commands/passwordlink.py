"""`manage.py passwordlink USERNAME`: a link for a new password, to hand over to a person."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tenants.actions import operator, record_action
from tenants.models import User
from tenants.passwords.links import NoLinkError, link_for
from tenants.scope import tenant_scope
from tenants.sessions import memberships_of


class Command(BaseCommand):
    """For people without an address, and where no mail is sent. Nobody else learns the password."""

    help = "Print a link by which an account gets a new password: once, within three hours."

    def add_arguments(self, parser: CommandParser) -> None:
        """The account."""
        parser.add_argument("username")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError for an unknown user, and for one who gets no link."""
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"unknown user {options['username']!r}")
        try:
            link = link_for(user)
        except NoLinkError as error:
            raise CommandError(str(error)) from error
        # Each of the tenants trusts the password.
        for membership in memberships_of(user.pk):
            with tenant_scope(membership.tenant_id):
                record_action(membership.tenant, operator(), "password.link", user.get_username())
        self.stdout.write(link)
