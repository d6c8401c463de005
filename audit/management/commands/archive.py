"""`manage.py archive status | begin | stop | run | export`: sealed days outside the database."""

import json
from argparse import ArgumentParser
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from audit.archive.archives import begin_archive, stop_archive
from audit.archive.archiving import run_slice
from audit.archive.exporting import export, find_tenant
from audit.archive.layout import ArchiveError
from audit.archive.storage import opened
from audit.queries.archives import archive_status, find_archive
from config.boxes import BoxError
from config.http.bucket import BucketError
from config.instants import iso
from tenants.actions import operator
from tenants.models import Tenant
from tenants.scope import tenant_scope


class Command(BaseCommand):
    """For the operator. `export` needs the two buckets and the file of encryption keys only."""

    help = "Archive sealed days in S3-compatible storage, and export them without the database."
    requires_system_checks = []  # they import all pages: half a second

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`status`, `begin SLUG`, `stop SLUG`, `run SLUG`, `export TENANT --to FILE`."""
        commands = parser.add_subparsers(dest="command", required=True)
        status = commands.add_parser("status", help="show how the archive of each tenant stands")
        begin = commands.add_parser("begin", help="archive a tenant, from its first entry on")
        begin.add_argument(
            "--payload-days",
            type=int,
            metavar="N",
            help="destroy the keys of archived payloads after N days; default: never",
        )
        stop = commands.add_parser(
            "stop", help="archive nothing more; erasures still reach what is archived"
        )
        now = commands.add_parser("run", help="archive what is sealed now, and do not wait")
        for each in (begin, stop, now):
            each.add_argument("slug")
        bundle = commands.add_parser(
            "export",
            help="write an evidence bundle from the archive alone; no database is needed",
        )
        bundle.add_argument("tenant", help="its slug or its id")
        bundle.add_argument("--since", metavar="DAY", type=_day, help="the first UTC day")
        bundle.add_argument("--until", metavar="DAY", type=_day, help="the last UTC day")
        bundle.add_argument("--to", metavar="FILE", type=Path, required=True)
        status.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the subcommand. Raises CommandError for an unknown tenant, and for storage's faults.

        With exit code 1 if an archive fails or is behind (`status`).
        """
        try:
            if options["command"] == "export":
                self._export(options)
            elif options["command"] == "status":
                self._status(is_json=options["json"])
            else:
                self._change(options)
        except (ArchiveError, BucketError, BoxError) as error:
            raise CommandError(str(error)) from error

    def _change(self, options: dict[str, Any]) -> None:
        tenant = Tenant.objects.filter(slug=options["slug"]).first()
        if tenant is None:
            raise CommandError(f"unknown tenant {options['slug']!r}")
        if options["command"] == "run":
            while run_slice(tenant.id, timezone.now()):
                pass
            with tenant_scope(tenant.id):
                archive = find_archive()
            if archive is None:
                raise CommandError(f"{tenant.slug} is not archived: archive begin {tenant.slug}")
            if archive.failure:
                raise CommandError(archive.failure)
            self.stdout.write(f"{tenant.slug}: {archive.next_index:,} entries are archived")
        elif options["command"] == "stop":
            with tenant_scope(tenant.id):
                is_stopped = stop_archive(tenant, operator())
            self.stdout.write(
                f"{tenant.slug}: nothing more is archived" if is_stopped else "nothing to stop"
            )
        else:
            days = options["payload_days"]
            if days is not None and days < 1:
                raise CommandError("--payload-days must be at least 1")
            with opened() as storage:
                storage.check()
            with tenant_scope(tenant.id):
                begin_archive(tenant, operator(), days)
            self.stdout.write(f"{tenant.slug}: each UTC day is archived an hour after its end")

    def _status(self, *, is_json: bool) -> None:
        documents, late = {}, []
        for tenant in Tenant.objects.order_by("slug"):
            with tenant_scope(tenant.id):
                status = archive_status(timezone.now())
            archive = status.archive
            if archive is None:
                continue
            if status.state in ("failing", "behind"):
                late.append(tenant.slug)
            documents[tenant.slug] = {
                "state": status.state,
                "entries": status.size,
                "archived": archive.next_index,
                "segments": status.segments,
                "payloads": status.payloads,
                "bytes": status.byte_count,
                "archived_at": status.archived_at and iso(status.archived_at),
                "behind_seconds": int(status.behind / timedelta(seconds=1)),
                "payload_days": archive.payload_days,
                "failure": archive.failure,
            }
            if not is_json:
                self.stdout.write(
                    f"{tenant.slug}: {status.state}, {archive.next_index:,} of {status.size:,}"
                    f" entries archived" + (f": {archive.failure}" if archive.failure else "")
                )
        if is_json:
            self.stdout.write(json.dumps(documents))
        if late:
            raise CommandError(f"archives fail or are behind: {', '.join(late)}", returncode=1)

    def _export(self, options: dict[str, Any]) -> None:
        target: Path = options["to"]
        part = target.with_name(f"{target.name}.part")
        try:
            with opened() as storage, part.open("wb") as file:
                tenant_id = find_tenant(storage, options["tenant"])
                for piece in export(
                    storage, tenant_id, operator(), options["since"], options["until"]
                ):
                    file.write(piece)
            part.rename(target)
        except OSError as error:
            raise CommandError(f"{target}: {error.strerror or error}") from error
        finally:
            part.unlink(missing_ok=True)
        self.stdout.write(f"{target}: check it with tooltrail verify {target} --key KEY")


def _day(text: str) -> str:
    """A day as ISO 8601 has it. Raises ValueError."""
    return date.fromisoformat(text).isoformat()
