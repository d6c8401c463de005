"""`manage.py partitions plan|apply`: the day partitions of the index."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.utils import timezone

from audit import partitions


class Command(BaseCommand):
    """Show which partitions are missing, or make them. The worker does the same every hour."""

    help = "Plan or make the day partitions from 35 days back to 14 days ahead."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`plan` prints, `apply` makes and prints."""
        parser.add_argument("action", choices=["plan", "apply"])

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError without the owner's address."""
        if "owner" not in connections:
            raise CommandError("set DATABASE_OWNER_URL: partitions are the owner's")
        missing = partitions.missing(timezone.now().date())
        if options["action"] == "apply":
            partitions.apply(missing)
        for partition in missing:
            self.stdout.write(partition.name)
        self.stdout.write(f"{len(missing)} {'made' if options['action'] == 'apply' else 'missing'}")
