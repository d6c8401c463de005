"""`manage.py registry export | import SLUG`."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.progress import Progress
from tenants.actions import operator, record_action
from tenants.models import Tenant
from tenants.scope import tenant_scope
from tools_registry.changes import Publisher
from tools_registry.exchange.applying import Way, import_tool
from tools_registry.exchange.export import export_registry
from tools_registry.exchange.planning import plan_import
from tools_registry.exchange.reading import OpenDocument, UnreadableError, open_document
from tools_registry.exchange.summary import count, summarize


class Command(BaseCommand):
    """Export a tenant's registry as JSON, or import tools."""

    help = (
        "Export a tenant's registry as JSON, or import tools from an export or from definitions"
        " of OpenAI, Anthropic or MCP."
    )
    requires_system_checks = []  # they import all pages: half a second

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`export SLUG [FILE]`, `import SLUG FILE [--publish --reason …] [--dry-run]`."""
        commands = parser.add_subparsers(dest="command", required=True)
        export = commands.add_parser("export", help="write the registry to a file")
        export.add_argument("slug")
        export.add_argument("file", nargs="?", default="-", help="output file; -: standard output")
        taken = commands.add_parser("import", help="import tools from a file of any size")
        taken.add_argument("slug")
        taken.add_argument("file", help="input file; -: standard input")
        taken.add_argument(
            "--publish", action="store_true", help="publish instead of drafting; needs --reason"
        )
        taken.add_argument("--reason", default="", help="recorded with every change")
        taken.add_argument("--dry-run", action="store_true", help="only show what would change")
        taken.add_argument("--json", action="store_true", help="print the results as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError for an unknown slug, an unreadable file and a missing reason."""
        tenant = Tenant.objects.filter(slug=options["slug"]).first()
        if tenant is None:
            raise CommandError(f"unknown tenant {options['slug']!r}")
        if options["command"] == "export":
            self._export(tenant, options["file"])
        else:
            self._import(tenant, options)

    def _export(self, tenant: Tenant, file: str) -> None:
        with tenant_scope(tenant.pk):
            record_action(tenant, operator(), "registry.export", "registry")
        if file == "-":
            for piece in export_registry(tenant.pk):
                self.stdout.write(piece.decode(), ending="")
            return
        with Path(file).open("wb") as written:
            written.writelines(export_registry(tenant.pk))

    def _import(self, tenant: Tenant, options: dict[str, Any]) -> None:
        if options["publish"] and not options["dry_run"] and not options["reason"].strip():
            raise CommandError("--publish needs a --reason")
        try:
            data = (
                sys.stdin.buffer.read()
                if options["file"] == "-"
                else Path(options["file"]).read_bytes()
            )
            document = open_document(data, limit=None)
        except (OSError, UnreadableError) as error:
            raise CommandError(str(error)) from error
        way = Way(not options["publish"], Publisher(operator=operator()), options["reason"].strip())
        summaries: list[dict[str, Any]] = []
        try:
            summaries.extend(self._through(tenant, document, way, is_dry_run=options["dry_run"]))
        except KeyboardInterrupt:
            self._report(summaries, as_json=options["json"])
            message = f"interrupted after {len(summaries):,} of {len(document.entries):,} tools;"
            more = "run the command again for the rest: imported tools do not change"
            raise CommandError(f"{message} {more}", returncode=130) from None
        self._report(summaries, as_json=options["json"])

    def _through(
        self, tenant: Tenant, document: OpenDocument, way: Way, *, is_dry_run: bool
    ) -> Iterator[dict[str, Any]]:
        """Import or preview each tool in a transaction of its own; yields the summaries."""
        progress = Progress(self.stderr, tenant.slug, "tools")
        for number, entry in enumerate(document.entries, 1):
            with tenant_scope(tenant.pk):
                if is_dry_run:
                    [plan] = plan_import(tenant.pk, [entry.read()], as_drafts=way.as_drafts)
                else:
                    plan = import_tool(tenant, entry.read(), way)
            yield summarize(plan)
            progress(number, len(document.entries))

    def _report(self, summaries: list[dict[str, Any]], *, as_json: bool) -> None:
        counts = count(summaries)
        if as_json:
            self.stdout.write(json.dumps({**counts, "tools": summaries}))
            return
        for one in summaries:
            if one["status"] != "unchanged":
                self.stdout.write(f"{one['name'] or one['path']}  {one['status']}")
                for line in [*one["problems"], *one["steps"], *one["notes"]]:
                    self.stdout.write(f"    {line}")
        parts = [f"{number:,} {status}" for status, number in counts.items() if number]
        self.stdout.write(", ".join(parts) or "the file has no tools")
