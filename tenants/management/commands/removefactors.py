"""`manage.py removefactors USERNAME`: for a person who has lost the device and the codes."""

from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand, CommandError, CommandParser

from tenants.actions import operator, record_action
from tenants.models import User
from tenants.scope import tenant_scope
from tenants.sessions import memberships_of


class Command(BaseCommand):
    """Removes the second factors of an account, so that its password is enough."""

    help = "Remove authenticator app, passkeys and recovery codes of an account."

    def add_arguments(self, parser: CommandParser) -> None:
        """The account."""
        parser.add_argument("username")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError for an unknown user, and for one without a second factor."""
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"unknown user {options['username']!r}")
        factors = Authenticator.objects.filter(user_id=user.pk)
        kinds = sorted(factors.values_list("type", flat=True))
        if not kinds:
            raise CommandError(f"{user} has no second factor")
        factors.delete()
        # Each of the tenants trusted the factor.
        for membership in memberships_of(user.pk):
            with tenant_scope(membership.tenant_id):
                record_action(
                    membership.tenant,
                    operator(),
                    "factor.clear",
                    user.get_username(),
                    factors=kinds,
                )
        self.stdout.write(f"Removed {len(kinds)}: {', '.join(kinds)}")
