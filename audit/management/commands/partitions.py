"""`manage.py partitions plan|apply`: the day partitions of the index."""

from argparse import ArgumentParser
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.utils import timezone

from audit.index import partitions
from config.postgresql.aliases import OWNER

_BACK_MAX = 400  # days, one partition per table each; a query without a date reads them all


class Command(BaseCommand):
    """List the missing partitions, or create them. The worker creates them every hour.

    The index accepts only calls of days with partitions; `--import` opens it for older days.
    """

    help = "List or create the missing day partitions, from 35 days ago to 14 days ahead."
    requires_system_checks = []  # they import all pages: half a second

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`plan` lists the missing partitions, `apply` creates and lists them."""
        parser.add_argument(
            "action", choices=["plan", "apply"], help="plan lists them, apply creates them"
        )
        parser.add_argument(
            "--import",
            dest="since",
            type=date.fromisoformat,
            metavar="YYYY-MM-DD",
            help="also the days from this date on, so that older calls can be sent",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the action.

        Raises CommandError if DATABASE_OWNER_URL is not set, if `--import` goes back too far, or
        if a table is in use and not all partitions were created.
        """
        if OWNER not in connections:
            raise CommandError("set DATABASE_OWNER_URL: only the owner can create partitions")
        today = timezone.now().date()
        back = partitions.DAYS_BACK
        if (since := options["since"]) is not None:
            back = max(back, (today - since).days)
            if back > _BACK_MAX:
                raise CommandError(f"--import can go back at most {_BACK_MAX} days, not {back}")
        listed = missing = partitions.missing(today, back=back)
        if options["action"] == "apply":
            listed = partitions.apply(missing)
        for partition in listed:
            self.stdout.write(partition.name)
        self.stdout.write(
            f"{len(listed)} {'created' if options['action'] == 'apply' else 'missing'}"
        )
        if len(listed) < len(missing):
            raise CommandError(
                f"{missing[len(listed)].table} is in use; run apply again later for the rest"
            )
