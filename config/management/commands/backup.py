"""`manage.py backup FILE`: write the whole database into one file."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.process.backup import BackupError, dump, owner_address
from config.progress import Progress
from tenants.actions import operator


class Command(BaseCommand):
    """Back up the embedded or an external database while executors keep sending."""

    help = (
        "Back up the whole database to FILE: a consistent snapshot, made with pg_dump. The"
        " installation may be running. Only the file's owner can read it. Keep a copy of"
        " var/secrets.json with it; the backup does not contain that file."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`FILE [--force] [--stop-writes] [--json]`."""
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
        parser.add_argument(
            "--stop-writes",
            action="store_true",
            help="on a cluster, whose nodes have no common snapshot: answer 503 until it is done",
        )
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the backup. Raises CommandError with the reason if it fails."""
        file: Path = options["file"]
        if file.exists() and not options["force"]:
            raise CommandError(f"{file} already exists; use --force to replace it")
        try:
            with owner_address() as url:
                result = dump(
                    url,
                    file,
                    Progress(self.stderr, "backup", "tables"),
                    by=operator(),
                    stops_writes=options["stop_writes"],
                )
        except BackupError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps({"file": str(file), **asdict(result)}))
        else:
            self.stdout.write(f"{file}: {result.tables} tables, {result.size / 1024**2:,.1f} MiB")
