"""`manage.py restore FILE`: fill an empty database from a backup."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.instance import COMMAND
from config.process.backup import BackupError, owner_address, restore
from config.progress import Progress
from tenants.actions import operator


class Command(BaseCommand):
    """Fill the embedded database of a new `var/`, or an empty external one."""

    help = (
        "Restore FILE, written by `backup`, into an empty database: the embedded one of a new"
        " var/, or the one in DATABASE_OWNER_URL, created by `database init`."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`FILE [--json]`."""
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Restore the backup. Raises CommandError with the reason if it fails."""
        file: Path = options["file"]
        if not file.is_file():
            raise CommandError(f"file not found: {file}")
        try:
            with owner_address() as url:
                result = restore(
                    file, url, Progress(self.stderr, "restore", "tables"), by=operator()
                )
        except BackupError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps({"file": str(file), **asdict(result)}))
        else:
            self.stdout.write(
                f"{result.tables} tables restored. Next: run {COMMAND} up, which applies newer"
                f" migrations, then {COMMAND} reindex --check, which compares index and log."
            )
