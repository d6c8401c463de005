"""`manage.py key create | list | revoke`: API keys without a browser."""

import json
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from tenants.actions import operator, record_action
from tenants.keys import create_key, revoke_key
from tenants.models import ApiKey, Scope, Tenant
from tenants.scope import tenant_scope

_NAME_MAX = ApiKey._meta.get_field("name").max_length or 0


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
                self._list(tenant, is_json=options["json"])
            else:
                self._revoke(tenant, options)

    def _create(self, tenant: Tenant, options: dict[str, Any]) -> None:
        name = options["name"].strip()
        if not name or len(name) > _NAME_MAX:
            raise CommandError("--name must have 1 to 100 characters")
        try:
            scopes = [Scope(scope) for scope in options["scope"]]
            key, text = create_key(tenant, name, scopes, expires_at=_instant(options["expires"]))
        except ValueError as error:
            raise CommandError(str(error)) from error
        record_action(tenant, operator(), "key.create", str(key), scopes=key.scopes, rows=[key])
        self._print({**_of(key), "key": text}, text, is_json=options["json"])

    def _list(self, tenant: Tenant, *, is_json: bool) -> None:
        keys = [_of(key) for key in ApiKey.objects.filter(tenant=tenant).order_by("created_at")]
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
            revoke_key(key)
            record_action(tenant, operator(), "key.revoke", str(key), rows=[key])
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
