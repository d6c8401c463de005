"""`manage.py export-config [SLUG…]`: what `manage.py apply` would need to make it again."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from audit.declared.document import Document
from audit.declared.exporting import as_text, export_installation, export_tenant
from tenants.actions import operator
from tenants.models import Tenant


class Command(BaseCommand):
    """For operators. The file has no secrets, only the places where `apply` looks for them."""

    help = "Write tenants with members, keys, settings, alerts and tools as a file for apply."
    requires_system_checks = []  # they import all pages: half a second

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`[SLUG…] [--format yaml|json] [--output FILE] [--schema]`."""
        parser.add_argument("slugs", nargs="*", metavar="SLUG", help="tenants (default: all)")
        parser.add_argument("--format", choices=("yaml", "json"), default="yaml")
        parser.add_argument("--output", default="-", help="output file; -: standard output")
        parser.add_argument(
            "--schema", action="store_true", help="write the JSON Schema of such files instead"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError for an unknown slug and a file that cannot be written."""
        text = self._schema() if options["schema"] else self._tenants(options)
        if options["output"] == "-":
            self.stdout.write(text, ending="")
            return
        try:
            Path(options["output"]).write_text(text)
        except OSError as error:
            raise CommandError(f"{options['output']}: {error.strerror}") from error

    def _schema(self) -> str:
        return json.dumps(Document.model_json_schema(), indent=2) + "\n"

    def _tenants(self, options: dict[str, Any]) -> str:
        tenants = {tenant.slug: tenant for tenant in Tenant.objects.order_by("slug")}
        for slug in options["slugs"]:
            if slug not in tenants:
                raise CommandError(f"unknown tenant {slug!r}")
        wanted = options["slugs"] or list(tenants)
        now, actor = timezone.now(), operator()
        exported = [export_tenant(tenants[slug], actor, now) for slug in dict.fromkeys(wanted)]
        installation = {} if options["slugs"] else {"installation": export_installation()}
        return as_text({"version": 1, **installation, "tenants": exported}, options["format"])
