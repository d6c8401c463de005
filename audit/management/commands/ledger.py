"""`manage.py ledger status | join | rotate-key | new-epoch`: how ledgers are signed."""

import json
from argparse import ArgumentParser
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.utils import timezone
from tooltrail.ledger.lines import to_base64

from audit.ledger import keys, signer_state
from audit.ledger.epochs import NoEpochError, announce_keys, begin_epoch
from audit.ledger.hsm import TokenError
from audit.ledger.memory import Comparison
from audit.ledger.signer import keep
from audit.ledger.status import ledger_status
from audit.ledger.takeover import NoMemoryError
from config.instants import iso
from config.postgresql.aliases import KEEPER, OWNER
from config.private_files import PrivateFileError
from tenants.actions import operator
from tenants.models import Tenant
from tenants.scope import tenant_scope

_SLICE_S = 5.0


class Command(BaseCommand):
    """For the operator, on a machine whose worker signs: the command reads the private key."""

    help = "Show the status of ledgers, let another machine sign, rotate the key, begin an epoch."
    requires_system_checks = []  # they import all pages: half a second

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`status`, `join`, `rotate-key [--overlap-days N]`, `new-epoch SLUG --reason TEXT`."""
        commands = parser.add_subparsers(dest="command", required=True)
        status = commands.add_parser(
            "status", help="show for each tenant: entries, signed entries, why signing is refused"
        )
        commands.add_parser(
            "join",
            help="let this machine sign, too; it continues from the newest published checkpoints",
        )
        rotate = commands.add_parser(
            "rotate-key",
            help="create a new key; the old one also signs until the overlap ends",
        )
        rotate.add_argument(
            "--overlap-days",
            type=int,
            default=keys.OVERLAP.days,
            metavar="N",
            help="days in which both keys sign (%(default)s)",
        )
        epoch = commands.add_parser(
            "new-epoch",
            help="after a restore: start a new log with an entry that names the last checkpoint",
        )
        epoch.add_argument("slug")
        epoch.add_argument("--reason", required=True, help="recorded in the entry")
        epoch.add_argument(
            "--previous",
            type=Path,
            metavar="FILE",
            help="the last checkpoint, if the signer lost its own; an auditor may have a copy",
        )
        epoch.add_argument(
            "--differs",
            action="store_true",
            help="begin the epoch although signed entries were changed; the entry records that",
        )
        for each in (status, rotate, epoch):
            each.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the subcommand.

        Raises CommandError if DATABASE_KEEPER_URL is not set (for `new-epoch` also
        DATABASE_OWNER_URL), for an unknown tenant, or if keys or epoch cannot be changed; with
        exit code 1 if the signer refuses to sign (`status`, `new-epoch`).
        """
        if KEEPER not in connections:
            raise CommandError("set DATABASE_KEEPER_URL: only that role can sign ledgers")
        try:
            if options["command"] == "status":
                self._status(is_json=options["json"])
            elif options["command"] == "join":
                self._join()
            elif options["command"] == "rotate-key":
                self._rotate(timedelta(days=max(0, options["overlap_days"])), options["json"])
            else:
                self._begin(options)
        except (
            PrivateFileError,
            TokenError,
            NoEpochError,
            NoMemoryError,
            keys.NoKeyError,
        ) as error:
            raise CommandError(str(error)) from error

    def _status(self, *, is_json: bool) -> None:
        documents = {}
        for tenant in Tenant.objects.order_by("slug"):
            with tenant_scope(tenant.id):
                status = ledger_status(tenant.id)
            documents[tenant.slug] = {
                "entries": status.size,
                "folded": status.folded,
                "signed": status.signed_size or 0,
                "signed_at": status.signed_at and iso(status.signed_at),
                "refusal": status.refusal,
            }
            if not is_json:
                self.stdout.write(
                    f"{tenant.slug}: {status.size:,} entries, {status.signed_size or 0:,} signed"
                    + (f": SIGNING REFUSED: {status.refusal}" if status.refusal else "")
                )
        if is_json:
            self.stdout.write(json.dumps(documents))
        if refused := [slug for slug, each in documents.items() if each["refusal"]]:
            raise CommandError(f"ledgers not signed: {', '.join(refused)}", returncode=1)

    def _join(self) -> None:
        if not keys.load():
            raise CommandError(
                "this machine has no key: copy signing-keys.json of another one first"
            )
        signer_state.join(timezone.now())
        self.stdout.write(
            "This machine signs from now on. It continues from the newest published checkpoints."
        )

    def _rotate(self, overlap: timedelta, is_json: bool) -> None:
        now = timezone.now()
        new, old = keys.rotate(now, overlap)
        for tenant in Tenant.objects.order_by("slug"):
            with tenant_scope(tenant.id):
                has_entries = ledger_status(tenant.id).size > 0
            if has_entries:
                announce_keys(tenant, new, old, operator(), now)
        document = {
            "public_key": to_base64(new.public()),
            "replaces": [to_base64(key.public()) for key in old],
        }
        if is_json:
            self.stdout.write(json.dumps(document))
        else:
            self.stdout.write(
                f"New key: {document['public_key']}\n"
                + (
                    f"Older keys that also sign until the overlap ends: {len(old)}"
                    if old
                    else "It is the only key that signs."
                )
            )

    def _begin(self, options: dict[str, Any]) -> None:
        if OWNER not in connections:
            raise CommandError("set DATABASE_OWNER_URL: only the owner can rebuild tiles")
        tenant = Tenant.objects.filter(slug=options["slug"]).first()
        if tenant is None:
            raise CommandError(f"unknown tenant {options['slug']!r}")
        try:
            previous = options["previous"] and options["previous"].read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{options['previous']}: {error}") from error
        now = timezone.now()
        state, compared = begin_epoch(
            tenant,
            options["reason"],
            operator(),
            now,
            previous=previous,
            differs=options["differs"],
        )
        while keep(tenant.id, now, seconds=_SLICE_S):
            pass
        with tenant_scope(tenant.id):
            status = ledger_status(tenant.id)
        if options["json"]:
            document = {
                "epoch": state.epoch,
                "origin": state.origin,
                "size": status.signed_size,
                "proved": compared.proved,
                "gone": compared.gone,
            }
            self.stdout.write(json.dumps(document))
        else:
            self.stdout.write(
                f"{tenant.slug}: epoch {state.epoch}, {state.origin}: {status.signed_size or 0:,}"
                f" entries signed\n{_compared(compared)}"
            )
        if status.refusal:
            raise CommandError(f"still not signed: {status.refusal}", returncode=1)


def _compared(compared: Comparison) -> str:
    """Up to where the log is what was signed, in words."""
    parts = [f"The first {compared.proved:,} entries are the signed ones."]
    if compared.gone:
        parts.append(f"{compared.gone:,} signed entries after them are gone or were changed.")
    return " ".join(parts)
