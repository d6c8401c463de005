"""`manage.py tenant create | list | suspend | resume | delete`."""

import json
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.utils import timezone
from django.utils.text import slugify

from config.postgresql.aliases import OWNER
from config.progress import Progress
from tenants.actions import operator, record_action
from tenants.deletion import FloorInForceError, delete_tenant
from tenants.models import Role, Tenant, Tombstone
from tenants.provision import ensure_member, ensure_tenant
from tenants.scope import tenant_scope


class Command(BaseCommand):
    """Create, list, suspend and delete tenants; all else is managed on the tenant's pages."""

    help = "Create, list, suspend, resume or delete tenants."
    requires_system_checks = []  # they import all pages: half a second

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`create NAME`, `list`, `suspend SLUG`, `resume SLUG`, `delete SLUG`; each `--json`."""
        commands = parser.add_subparsers(dest="command", required=True)
        create = commands.add_parser("create", help="create a tenant and print its id")
        create.add_argument("name")
        create.add_argument("--slug", help="default: derived from the name")
        create.add_argument(
            "--admin",
            metavar="USERNAME",
            help="make this user its admin; set a new user's password with changepassword",
        )
        listing = commands.add_parser("list", help="print id, slug, name and state of each tenant")
        listing.add_argument("--deleted", action="store_true", help="list the tombstones instead")
        suspend = commands.add_parser(
            "suspend", help="reject requests of its keys and members; nothing is deleted"
        )
        resume = commands.add_parser("resume", help="resume a suspended tenant")
        delete = commands.add_parser(
            "delete",
            help="permanently delete a tenant and all its data; a tombstone remains",
        )
        delete.add_argument("--yes", metavar="NAME", help="the tenant's name, instead of a prompt")
        for each in (suspend, resume, delete):
            each.add_argument("slug")
        for each in (create, listing, suspend, resume, delete):
            each.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError for a slug that is taken, invalid or unknown, and a wrong name."""
        if options["command"] == "create":
            self._create(options)
        elif options["command"] == "list":
            self._list(is_json=options["json"], of_deleted=options["deleted"])
        else:
            tenant = Tenant.objects.filter(slug=options["slug"]).first()
            if tenant is None:
                raise CommandError(f"unknown tenant {options['slug']!r}")
            if options["command"] == "delete":
                self._delete(tenant, options)
            else:
                self._suspend(tenant, options)

    def _create(self, options: dict[str, Any]) -> None:
        slug = options["slug"] or slugify(options["name"])
        if Tenant.objects.filter(slug=slug).exists():
            raise CommandError(f"the slug {slug} is taken; choose another with --slug")
        try:
            tenant = ensure_tenant(slug, options["name"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        if options["admin"]:
            ensure_member(tenant, options["admin"], role=Role.ADMIN)
        self._print(_of_tenant(tenant), str(tenant.id), is_json=options["json"])

    def _list(self, *, is_json: bool, of_deleted: bool) -> None:
        if of_deleted:
            stones = [_of_tombstone(each) for each in Tombstone.objects.order_by("begun_at")]
            lines = [
                f"{each['id']}  {each['slug']}  {each['name']}  {each['state']}"
                f"  {each['ledger_size']:,} events  {each['ledger_root']}"
                for each in stones
            ]
            self._print(stones, *lines, is_json=is_json)
            return
        tenants = [_of_tenant(each) for each in Tenant.objects.order_by("slug")]
        lines = [
            f"{each['id']}  {each['slug']}  {each['name']}"
            + (f"  {each['state']}" if each["state"] != "active" else "")
            for each in tenants
        ]
        self._print(tenants, *lines, is_json=is_json)

    def _suspend(self, tenant: Tenant, options: dict[str, Any]) -> None:
        verb = options["command"]
        if verb == "resume" and Tombstone.objects.filter(pk=tenant.pk).exists():
            raise CommandError(f"{tenant.slug} is being deleted")
        wanted = (tenant.suspended_at or timezone.now()) if verb == "suspend" else None
        if (wanted is None) != (tenant.suspended_at is None):
            with tenant_scope(tenant.pk):
                Tenant.objects.filter(pk=tenant.pk).update(suspended_at=wanted)
                record_action(tenant, operator(), f"tenant.{verb}", tenant.name, rows=[tenant])
            tenant.suspended_at = wanted
        outcome = "suspended; its keys are rejected within 5 seconds" if wanted else "resumed"
        self._print(_of_tenant(tenant), f"{tenant.slug} {outcome}", is_json=options["json"])

    def _delete(self, tenant: Tenant, options: dict[str, Any]) -> None:
        if OWNER not in connections:
            raise CommandError("set DATABASE_OWNER_URL: only the owner can delete a tenant")
        given = options["yes"]
        if given is None:
            self.stderr.write(
                f"This permanently deletes {tenant.name}: all its data and its members' access."
                " Only a backup can restore it.",
                str,
            )
            try:
                given = input("Enter the tenant's name to confirm: ")
            except EOFError:
                raise CommandError("cannot prompt for the name; pass it with --yes") from None
        if given != tenant.name:
            raise CommandError(f"{given!r} is not the tenant's name; nothing was deleted")
        progress = Progress(self.stderr, tenant.slug, "rows")
        try:
            stone = _of_tombstone(delete_tenant(tenant, operator(), progress))
        except FloorInForceError as error:
            raise CommandError(str(error)) from error
        self._print(
            stone,
            f"{stone['name']} deleted; its ledger had {stone['ledger_size']:,} events and the root"
            f" {stone['ledger_root']}",
            is_json=options["json"],
        )

    def _print(self, document: Any, *lines: str, is_json: bool) -> None:
        for line in (json.dumps(document),) if is_json else lines:
            self.stdout.write(line)


def _of_tenant(tenant: Tenant) -> dict[str, Any]:
    is_dying = Tombstone.objects.filter(pk=tenant.pk).exists()
    state = "active" if tenant.suspended_at is None else "suspended"
    return {
        "id": str(tenant.id),
        "slug": tenant.slug,
        "name": tenant.name,
        "created_at": tenant.created_at.isoformat(),
        "state": "being deleted" if is_dying else state,
        "suspended_at": _instant(tenant.suspended_at),
    }


def _of_tombstone(stone: Tombstone) -> dict[str, Any]:
    return {
        "id": str(stone.id),
        "slug": stone.slug,
        "name": stone.name,
        "state": "deleted" if stone.ended_at else "being deleted",
        "begun_at": stone.begun_at.isoformat(),
        "ended_at": _instant(stone.ended_at),
        "operator": stone.operator,
        "ledger_size": stone.ledger_size,
        "ledger_root": bytes(stone.ledger_root).hex(),
    }


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
