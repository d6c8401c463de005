"""`manage.py reindex`: rebuilds the index from the log, or checks that they agree (`--check`).

`--remap` reads kept spans again (`audit.intake.otlp.remapping`).
"""

import json
from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from audit.index.reindex import Report, reindex
from audit.intake.otlp.conventions import MAPPING_VERSION
from audit.intake.otlp.remapping import Remapped, remap
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
        " the audit log. Executors may keep sending; they wait while rows are repaired. With"
        "  --remap, count the calls that this version reads differently from their spans than the"
        " version that stored them; with --remap --yes, write new events for those calls. An"
        " interrupted run continues where it stopped."
    )
    requires_system_checks = []  # they import all pages: half a second

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`[--check | --remap [--yes]] [--tenant SLUG] [--json]`."""
        instead = parser.add_mutually_exclusive_group()
        instead.add_argument("--check", action="store_true", help="compare only; change nothing")
        instead.add_argument(
            "--remap",
            action="store_true",
            help="count the calls that a newer mapping changes",
        )
        parser.add_argument("--yes", action="store_true", help="with --remap: write what changes")
        parser.add_argument("--tenant", metavar="SLUG", help="only this tenant")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Rebuild or check the index.

        Raises CommandError if DATABASE_OWNER_URL is not set or the tenant is unknown; with exit
        code 1 if index and log still differ, or the log is faulty.
        """
        if options["yes"] and not options["remap"]:
            raise CommandError("--yes can only be used with --remap")
        if OWNER not in connections and not options["remap"]:
            raise CommandError("set DATABASE_OWNER_URL: only the owner can rebuild the index")
        tenants = Tenant.objects.order_by("slug")
        if options["tenant"] is not None:
            tenants = tenants.filter(slug=options["tenant"])
            if not tenants:
                raise CommandError(f"unknown tenant {options['tenant']!r}")
        if options["remap"]:
            self._remap(tenants, is_dry=not options["yes"], as_json=options["json"])
            return
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

    def _remap(self, tenants: Iterable[Tenant], *, is_dry: bool, as_json: bool) -> None:
        documents = {}
        for tenant in tenants:
            progress = Progress(self.stderr, tenant.slug, "calls")
            result = remap(tenant.id, is_dry=True, progress=progress)
            if not is_dry and result.changed:
                # Before the first change: an interrupted run has its entry, too.
                subject = f"{result.changed} calls"
                with tenant_scope(tenant.id):
                    record_action(
                        tenant, operator(), "index.remap", subject, mapping_version=MAPPING_VERSION
                    )
                result = remap(tenant.id, is_dry=False, progress=progress)
            documents[tenant.slug] = asdict(result) | {"members": dict(result.members)}
            if not as_json:
                self._print_remapped(tenant.slug, result, is_dry=is_dry)
        if as_json:
            self.stdout.write(json.dumps(documents))

    def _print_remapped(self, slug: str, result: Remapped, *, is_dry: bool) -> None:
        verb = "would change" if is_dry else "changed"
        self.stdout.write(
            f"{slug}: {result.calls:,} calls of spans, {result.older:,} of them made by an older"
            f" mapping than version {MAPPING_VERSION}: {result.changed:,} {verb}"
        )
        for name, count in result.members.most_common():
            self.stdout.write(f"  {name}: {count:,}")
        if result.left:
            self.stdout.write(f"  left: {result.left:,}, whose spans are not one call any more")
        if result.erased:
            self.stdout.write(f"  erased: {result.erased:,}")
        if is_dry and result.changed:
            self.stdout.write("  write them with --yes")

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
