"""`manage.py registry export | import SLUG`."""

import getpass
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tenants.models import Tenant
from tenants.scope import tenant_scope
from tools_registry.changes import Publisher
from tools_registry.exchange.applying import PlanChangedError, Way, apply_import
from tools_registry.exchange.export import export_registry
from tools_registry.exchange.planning import PlannedTool, plan_import
from tools_registry.exchange.reading import UnreadableError, read_document


class Command(BaseCommand):
    """Take a tenant's registry out as JSON, or tools in."""

    help = (
        "Export a tenant's registry as JSON, or import one: an export, or definitions of OpenAI,"
        " Anthropic or MCP."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`export SLUG [FILE]`, `import SLUG FILE [--publish --reason …] [--dry-run]`."""
        commands = parser.add_subparsers(dest="command", required=True)
        export = commands.add_parser("export", help="write the registry to a file")
        export.add_argument("slug")
        export.add_argument("file", nargs="?", default="-", help="- is standard output")
        taken = commands.add_parser("import", help="take over a file, of any size")
        taken.add_argument("slug")
        taken.add_argument("file", help="- is standard input")
        taken.add_argument("--publish", action="store_true", help="not as drafts; needs --reason")
        taken.add_argument("--reason", default="", help="goes on record with every change")
        taken.add_argument("--dry-run", action="store_true", help="only say what would be done")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError for an unknown slug, and a file that cannot be taken."""
        tenant = Tenant.objects.filter(slug=options["slug"]).first()
        if tenant is None:
            raise CommandError(f"there is no tenant {options['slug']!r}")
        if options["command"] == "export":
            self._export(tenant, options["file"])
        else:
            self._import(tenant, options)

    def _export(self, tenant: Tenant, file: str) -> None:
        if file == "-":
            for piece in export_registry(tenant.pk):
                self.stdout.write(piece.decode(), ending="")
            return
        with Path(file).open("wb") as written:
            written.writelines(export_registry(tenant.pk))

    def _import(self, tenant: Tenant, options: dict[str, Any]) -> None:
        if options["publish"] and not options["dry_run"] and not options["reason"].strip():
            raise CommandError("publishing asks for a --reason")
        try:
            data = (
                sys.stdin.buffer.read()
                if options["file"] == "-"
                else Path(options["file"]).read_bytes()
            )
            document = read_document(data, limit=None)
        except (OSError, UnreadableError) as error:
            raise CommandError(str(error)) from error
        as_drafts = not options["publish"]
        with tenant_scope(tenant.pk):
            if options["dry_run"]:
                plan = plan_import(tenant.pk, document.tools, as_drafts=as_drafts)
            else:
                way = Way(as_drafts, Publisher(operator=_operator()), options["reason"].strip())
                try:
                    plan = apply_import(tenant, document, way)
                except PlanChangedError as error:
                    raise CommandError(str(error)) from error
        self._tell(plan)

    def _tell(self, plan: list[PlannedTool]) -> None:
        counts: dict[str, int] = {}
        for one in plan:
            counts[one.status] = counts.get(one.status, 0) + 1
            said = one.problems or [step.said for step in one.steps]
            if one.status != "unchanged":
                self.stdout.write(f"{one.read.name or one.read.path}  {one.status}")
                for line in [*said, *one.notes]:
                    self.stdout.write(f"    {line}")
        self.stdout.write(", ".join(f"{count} {status}" for status, count in counts.items()))


def _operator() -> str:
    try:
        return f"operator {getpass.getuser()}"
    except OSError:  # a container's user often has no name
        return "operator"
