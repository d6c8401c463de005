"""`manage.py partitions plan|apply`: the day partitions of the index."""

from argparse import ArgumentParser
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.utils import timezone

from audit.index import partitions
from config.postgresql.aliases import OWNER

_BACK_MAX = 400  # days; five tables each, and every look without a date visits them all


class Command(BaseCommand):
    """Show which partitions are missing, or make them. The worker does the same every hour.

    Calls are taken of days that have partitions: `--import` opens the index for older ones.
    """

    help = "Plan or make the day partitions from 35 days back to 14 days ahead."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`plan` prints, `apply` makes and prints."""
        parser.add_argument("action", choices=["plan", "apply"])
        parser.add_argument(
            "--import",
            dest="since",
            type=date.fromisoformat,
            metavar="YYYY-MM-DD",
            help="also every day from this one on, so that older calls can be sent",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError without the owner's address, for too early a day, or where not
        all could be made just now.
        """
        if OWNER not in connections:
            raise CommandError("set DATABASE_OWNER_URL: partitions are the owner's")
        today = timezone.now().date()
        back = partitions.DAYS_BACK
        if (since := options["since"]) is not None:
            back = max(back, (today - since).days)
            if back > _BACK_MAX:
                raise CommandError(f"--import goes back {_BACK_MAX} days at most, not {back}")
        told = missing = partitions.missing(today, back=back)
        if options["action"] == "apply":
            told = partitions.apply(missing)
        for partition in told:
            self.stdout.write(partition.name)
        self.stdout.write(f"{len(told)} {'made' if options['action'] == 'apply' else 'missing'}")
        if len(told) < len(missing):
            raise CommandError(f"{missing[len(told)].table} is in use: make the others later")
