"""`manage.py removefactors USERNAME`: for a person who has lost the device and the codes."""

from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand, CommandError, CommandParser

from tenants.management.accounts import account_named, record_in_tenants


class Command(BaseCommand):
    """Removes the second factors of an account, so that its password is enough."""

    help = "Remove authenticator app, passkeys and recovery codes of an account."

    def add_arguments(self, parser: CommandParser) -> None:
        """The account."""
        parser.add_argument("username")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError for an unknown user, and for one without a second factor."""
        user = account_named(options["username"])
        factors = Authenticator.objects.filter(user_id=user.pk)
        kinds = sorted(factors.values_list("type", flat=True))
        if not kinds:
            raise CommandError(f"{user} has no second factor")
        factors.delete()
        record_in_tenants(user, "factor.clear", factors=kinds)
        self.stdout.write(f"Removed {len(kinds)}: {', '.join(kinds)}")
