"""`manage.py key create | list | revoke`: API keys without a browser."""

import json
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from tenants.actions import operator
from tenants.admin_acts import WantedKey, end_key, make_key
from tenants.keys import IDLE_FOR, idle_keys
from tenants.members import members_of
from tenants.models import ApiKey, Scope, Tenant, User
from tenants.scope import tenant_scope

_NAME_MAX = ApiKey._meta.get_field("name").max_length or 0
_PURPOSE_MAX = ApiKey._meta.get_field("purpose").max_length or 0


class Command(BaseCommand):
    """For operators and automation; admins create, rotate and revoke keys on the tenant's pages."""

    help = "Create an API key (printed once), list a tenant's keys, or revoke a key."
    requires_system_checks = []  # they import all pages: half a second

    def add_arguments(self, parser: ArgumentParser) -> None:
        """`create SLUG --name NAME --scope SCOPE`, `list SLUG`, `revoke SLUG KEY_ID`; `--json`."""
        commands = parser.add_subparsers(dest="command", required=True)
        create = commands.add_parser("create", help="create a key and print it once")
        listing = commands.add_parser("list", help="print id, name, scopes and state of each key")
        revoke = commands.add_parser("revoke", help="revoke a key permanently")
        for each in (create, listing, revoke):
            each.add_argument("tenant", metavar="SLUG")
            each.add_argument("--json", action="store_true", help="print the result as JSON")
        create.add_argument("--name", required=True, help="display name, at most 100 characters")
        create.add_argument(
            "--scope",
            action="append",
            required=True,
            choices=Scope.values,
            help="what the key may do; repeat for several scopes",
        )
        create.add_argument(
            "--expires",
            metavar="TIME",
            help="expiry, RFC 3339, such as 2027-01-31 or 2027-01-31T12:00Z",
        )
        create.add_argument("--purpose", default="", help="what the key is for")
        create.add_argument("--owner", metavar="USER", help="the member who answers for the key")
        create.add_argument(
            "--allow",
            action="append",
            default=[],
            metavar="NETWORK",
            help="accept the key only from this network, such as 10.0.0.0/8; repeat for several",
        )
        listing.add_argument(
            "--idle",
            action="store_true",
            help=f"only keys that work and that nobody used for {IDLE_FOR.days} days",
        )
        revoke.add_argument("key_id", metavar="KEY_ID")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError for an unknown tenant or key and an invalid expiry or name."""
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"unknown tenant {options['tenant']!r}")
        with tenant_scope(tenant.pk):
            if options["command"] == "create":
                self._create(tenant, options)
            elif options["command"] == "list":
                self._list(tenant, is_idle=options["idle"], is_json=options["json"])
            else:
                self._revoke(tenant, options)

    def _create(self, tenant: Tenant, options: dict[str, Any]) -> None:
        name = options["name"].strip()
        if not name or len(name) > _NAME_MAX:
            raise CommandError("--name must have 1 to 100 characters")
        if len(options["purpose"].strip()) > _PURPOSE_MAX:
            raise CommandError(f"--purpose must have at most {_PURPOSE_MAX} characters")
        try:
            scopes = [Scope(scope) for scope in options["scope"]]
            wanted = WantedKey(
                name,
                scopes,
                purpose=options["purpose"].strip(),
                owner=self._owner(tenant, options["owner"]),
                expires_at=_instant(options["expires"]),
                allowed_addresses=options["allow"],
            )
            key, text = make_key(tenant, operator(), wanted)
        except ValueError as error:
            raise CommandError(str(error)) from error
        self._print({**_of(key), "key": text}, text, is_json=options["json"])

    def _owner(self, tenant: Tenant, name: str | None) -> User | None:
        owner = members_of(tenant).filter(username=name).first() if name else None
        if name and owner is None:
            raise CommandError(f"tenant {tenant.slug} has no member {name!r}")
        return owner

    def _list(self, tenant: Tenant, *, is_idle: bool, is_json: bool) -> None:
        of_tenant = ApiKey.objects.select_related("owner").filter(tenant=tenant)
        listed = idle_keys(tenant, timezone.now()) if is_idle else of_tenant.order_by("created_at")
        keys = [_of(key) for key in listed]
        lines = [
            f"{each['key_id']}  {','.join(each['scopes'])}  {each['name']}"
            + (f"  revoked {each['revoked_at']}" if each["revoked_at"] else "")
            + (f"  expires {each['expires_at']}" if each["expires_at"] else "")
            for each in keys
        ]
        self._print(keys, *lines, is_json=is_json)

    def _revoke(self, tenant: Tenant, options: dict[str, Any]) -> None:
        key = ApiKey.objects.filter(tenant=tenant, key_id=options["key_id"]).first()
        if key is None:
            raise CommandError(f"tenant {tenant.slug} has no key {options['key_id']!r}")
        if key.revoked_at is None:
            end_key(tenant, operator(), key)
            key = ApiKey.objects.get(tenant=tenant, pk=key.pk)
        message = f"{key} is revoked and stops working within 5 seconds"
        self._print(_of(key), message, is_json=options["json"])

    def _print(self, document: Any, *lines: str, is_json: bool) -> None:
        for line in (json.dumps(document),) if is_json else lines:
            self.stdout.write(line)


def _of(key: ApiKey) -> dict[str, Any]:
    return {
        "key_id": key.key_id,
        "name": key.name,
        "scopes": key.scopes,
        "purpose": key.purpose,
        "owner": key.owner and key.owner.get_username(),
        "allowed_addresses": key.allowed_addresses,
        "created_at": key.created_at.isoformat(),
        "expires_at": key.expires_at and key.expires_at.isoformat(),
        "revoked_at": key.revoked_at and key.revoked_at.isoformat(),
        "last_used_at": key.last_used_at and key.last_used_at.isoformat(),
    }


def _instant(text: str | None) -> datetime | None:
    """Parse a time; without a zone it is UTC. Raises ValueError."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (OverflowError, ValueError):
        raise ValueError(f"--expires must be a time such as 2027-01-31, not {text!r}") from None
