"""`manage.py apply FILE…`: makes an installation what files say."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from tooltrail.cli.tables import tame

from audit.declared.applying import apply_all
from audit.declared.files import File, UnreadableFileError, check_twins, read_file
from audit.declared.installation import apply_installation
from audit.declared.work import Options, Outcome
from config.progress import Progress
from tenants.actions import operator


class Command(BaseCommand):
    """For operators and automation. Applying files twice changes nothing the second time."""

    help = "Make tenants, members, keys, settings, alerts and tools what files say."
    requires_system_checks = []  # they import all pages: half a second

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`FILE… [--dry-run] [--prune] [--erase-older] [--json]`."""
        parser.add_argument(
            "files", nargs="+", metavar="FILE", help="YAML or JSON; -: standard input"
        )
        parser.add_argument("--dry-run", action="store_true", help="only show what would change")
        parser.add_argument(
            "--prune",
            action="store_true",
            help="remove what the sections of the files do not name; never tenants, tool versions,"
            " legal holds, last admins and you",
        )
        parser.add_argument(
            "--erase-older",
            action="store_true",
            help="confirm a shorter retention: older data is erased within an hour",
        )
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError for a file that cannot be used, and if a tenant was not applied."""
        how = Options(options["dry_run"], options["prune"], options["erase_older"])
        try:
            files = [self._read(name) for name in options["files"]]
            check_twins(files)
        except UnreadableFileError as error:
            raise CommandError("\n".join(map(tame, error.problems))) from error
        outcomes = []
        for outcome in self._apply(files, how):
            outcomes.append(outcome)
            if not options["json"]:
                self._show(outcome)
        count = sum(len(one.changes) for one in outcomes)
        if options["json"]:
            self.stdout.write(json.dumps(_document(outcomes, how)))
        else:
            changes = f"{count:,} change" + ("" if count == 1 else "s")
            self.stdout.write(f"{changes} {'to make' if how.is_dry else 'made'}")
        if failed := [one for one in outcomes if one.problems]:
            problems = "\n".join(tame(problem) for one in failed for problem in one.problems)
            names = ", ".join(one.subject for one in failed)
            raise CommandError(f"{problems}\nnothing was changed in {names}")

    def _apply(self, files: list[File], how: Options) -> Iterator[Outcome]:
        """Tenants first: the installation's part names them."""
        actor, now = operator(), timezone.now()
        sources = [source for file in files for source in file.tenants]
        yield from apply_all(sources, how, actor, now, self._progress)
        slugs = [one.tenant.slug for one in sources]
        for file in files:
            if file.installation is not None:
                yield apply_installation(file.installation, how, actor, now, slugs)

    def _read(self, name: str) -> File:
        try:
            if name == "-":
                return read_file("standard input", sys.stdin.buffer.read(), Path.cwd())
            path = Path(name)
            return read_file(name, path.read_bytes(), path.parent)
        except OSError as error:
            raise UnreadableFileError(f"{name}: {error.strerror}") from error

    def _progress(self, slug: str) -> Progress:
        return Progress(self.stderr, slug, "tools")

    def _show(self, outcome: Outcome) -> None:
        for change in outcome.changes:
            self.stdout.write(tame(f"{outcome.subject}  {change}"))
        for person, link in outcome.links.items():
            self.stdout.write(tame(f"{outcome.subject}  invitation of {person}: {link}"))
        for note in outcome.notes:
            self.stderr.write(tame(f"{outcome.subject}: {note}"), str)


def _document(outcomes: list[Outcome], how: Options) -> dict[str, Any]:
    """The result as JSON. `installation` is null if no file has such a part."""
    parts = [one.document for one in outcomes if one.slug is None]
    return {
        "is_dry_run": how.is_dry,
        "tenants": [one.document for one in outcomes if one.slug is not None],
        "installation": parts[0] if parts else None,
    }
