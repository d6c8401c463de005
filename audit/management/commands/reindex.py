"""`manage.py reindex [--check]`: rebuilds the index from the log, or checks that they agree."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from audit.index.reindex import Report, reindex
from config.postgresql.aliases import OWNER
from config.progress import Progress
from tenants.actions import operator, record_action
from tenants.models import Tenant
from tenants.scope import tenant_scope


class Command(BaseCommand):
    """Read each tenant's log again and rebuild the index from it, or list where they differ."""

    help = (
        "Rebuild the index from the log, in ledger order: calls, violations, traces, rollups,"
        " producers and gaps. With --check, change nothing: list the differences, and exit with 1"
        " if there are any. Left unchanged: calls with an erased event, what producers and gaps"
        " say about erased events, rows that retention has deleted, the inbox, the registry and"
        " the audit log. Executors may keep sending; they wait while rows are repaired."
    )
    requires_system_checks = []  # they import all pages: half a second

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`[--check] [--tenant SLUG] [--json]`."""
        parser.add_argument("--check", action="store_true", help="compare only; change nothing")
        parser.add_argument("--tenant", metavar="SLUG", help="only this tenant")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Rebuild or check the index.

        Raises CommandError if DATABASE_OWNER_URL is not set or the tenant is unknown; with exit
        code 1 if index and log still differ, or the log is faulty.
        """
        if OWNER not in connections:
            raise CommandError("set DATABASE_OWNER_URL: only the owner can rebuild the index")
        tenants = Tenant.objects.using(OWNER).order_by("slug")
        if options["tenant"] is not None:
            tenants = tenants.filter(slug=options["tenant"])
            if not tenants:
                raise CommandError(f"unknown tenant {options['tenant']!r}")
        reports: dict[str, Report] = {}
        for tenant in tenants:
            progress = Progress(self.stderr, tenant.slug, "events")
            report = reindex(tenant.id, repair=not options["check"], progress=progress)
            reports[tenant.slug] = report
            if report.is_repaired:
                counts = report.comparison.counts
                subject = f"{sum(counts.values())} rows"
                with tenant_scope(tenant.id):
                    record_action(tenant, operator(), "index.repair", subject, tables=counts)
            if not options["json"]:
                self._print(tenant.slug, report)
        if options["json"]:
            documents = {slug: _document(one) for slug, one in reports.items()}
            self.stdout.write(json.dumps(documents, default=str))
        bad = [
            slug
            for slug, one in reports.items()
            if one.log_faults or one.index_faults or not (one.is_clean or one.is_repaired)
        ]
        if bad:
            raise CommandError(f"index and log differ: {', '.join(bad)}", returncode=1)

    def _print(self, slug: str, report: Report) -> None:
        counts = report.comparison.counts
        total = sum(counts.values())
        verdict = "repaired" if report.is_repaired else "differ"
        agree = "no row differs" if report.index_faults else "index and log agree"
        self.stdout.write(
            f"{slug}: {report.events:,} events in {report.batches:,} batches, {report.calls:,}"
            f" calls: {f'{total:,} rows {verdict}' if total else agree}"
        )
        if report.erased or report.unreadable:
            self.stdout.write(
                f"  {report.erased:,} events erased, {report.unreadable:,} unreadable:"
                f" {report.kept_calls:,} calls left unchanged; what producers and gaps say about"
                " these events is not compared"
            )
        if report.index_from is not None:
            self.stdout.write(
                f"  past retention: of days before {report.index_from} only calls that are left"
                " are compared"
            )
        for fault in report.log_faults:
            self.stdout.write(f"  log: {fault}")
        for fault in report.index_faults:
            self.stdout.write(f"  index: {fault}")
        for table, count in counts.items():
            shown = [each for each in report.comparison.examples if each.table == table]
            for each in shown:
                # As JSON, which escapes control characters in hostile text.
                key = " ".join(json.dumps(value) for value in each.key.values())
                index, log = (
                    "no row" if side is None else json.dumps(side)
                    for side in (each.index, each.log)
                )
                self.stdout.write(f"  {table} {key}\n    index: {index}\n    log:   {log}")
            if count > len(shown):
                self.stdout.write(f"  {table}: and {count - len(shown):,} more")


def _document(report: Report) -> dict[str, Any]:
    document = asdict(report)
    comparison = document.pop("comparison")
    return document | {
        "agrees": report.is_clean,
        "differing_rows": comparison["counts"],
        "differences": comparison["examples"],
    }
