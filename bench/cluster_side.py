"""Part of `cluster.py` and `cluster_cost.py`: runs in the environment of one side, and prints JSON.

tenants N          make them: id, slug, API key, and the session of an admin of each
contents           what is stored of each tenant, as counts and digests
pages              the addresses to compare, by tenant: those of every listing, and of some calls
store SLUG         store calls of this tenant for each line of stdin: events, seconds, processor
                   time of Python; at its end the statements of a request
"""

import hashlib
import json
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

OBJECTS = 3
"""Traces and calls of each tenant whose pages are compared."""
_NAMESPACE = uuid.UUID("6f1c6a30-5d0c-4b6e-9d0e-5a8f6c1b2a77")
CHUNK = 2_500
"""Calls stored for a line."""
SIZE = 500
"""Events in a request."""
_TABLES = """
    SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE a.attname = 'tenant_id' AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND c.relnamespace = 'public'::regnamespace ORDER BY 1
"""
_BY_TIME = {
    # How often the signer came by, and which requests were stored together.
    "ledger_checkpoint",
    "ledger_signer",
    "ledger_tile",
    "batch",
}


def make_tenants(count: int) -> list[dict[str, str]]:
    """Make tenants with the same ids on both sides."""
    from django.test import Client

    from tenants.keys import create_key
    from tenants.models import Scope, Tenant
    from tenants.provision import ensure_member

    made = []
    for number in range(count):
        slug = f"tenant-{number}"
        tenant = Tenant.objects.create(id=uuid.uuid5(_NAMESPACE, slug), slug=slug, name=slug)
        browser = Client()
        admin = ensure_member(tenant, f"{slug}-admin")
        browser.force_login(admin)
        made.append(
            {
                "slug": slug,
                "tenant_id": str(tenant.id),
                "api_key": create_key(tenant, "cluster", list(Scope), owner=admin)[1],
                "session": browser.cookies["sessionid"].value,
            }
        )
    return made


def contents() -> dict[str, dict[str, Any]]:
    """What is stored of each tenant, by name."""
    from tenants.models import Tenant
    from tests.support.index_contents import index_contents

    found = {}
    for tenant in Tenant.objects.order_by("slug"):
        of_tenant: dict[str, Any] = dict(_counts(tenant))
        for table, rows in index_contents(tenant).items():
            of_tenant[f"{table}: rows"] = _digest(row.encode() for row in rows)
        found[tenant.slug] = of_tenant | _log(tenant)
    return found


def _counts(tenant: Any) -> Iterator[tuple[str, int]]:
    from django.db import connection

    from tenants.scope import tenant_scope

    with tenant_scope(tenant.id), connection.cursor() as cursor:
        cursor.execute(_TABLES)
        for (table,) in cursor.fetchall():
            if table not in _BY_TIME:
                cursor.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", [tenant.id])
                yield f"{table}: count", cursor.fetchone()[0]


def _log(tenant: Any) -> dict[str, Any]:
    """The events of senders; and the signed root beside that of the stored leaves."""
    from tooltrail.ledger import root_of

    from audit.ledger.status import ledger_status
    from audit.log.payload import unpack
    from audit.models import Batch
    from tenants.scope import tenant_scope

    raws, leaves = list[bytes](), list[bytes]()
    with tenant_scope(tenant.id):
        status = ledger_status(tenant.id)
        for batch in Batch.objects.for_tenant(tenant.id).order_by("first_index").iterator():
            assert batch.first_index == len(leaves)
            stored = bytes(batch.leaves)
            leaves += [stored[at : at + 32] for at in range(0, len(stored), 32)]
            if not batch.is_own:
                raws += [raw for _, raw in unpack(bytes(batch.payload or b""))]
    signed = leaves[: status.signed_size or 0]
    return {
        "ledger: events of senders": len(raws),
        "ledger: their bytes": _digest(sorted(hashlib.sha256(raw).digest() for raw in raws)),
        "ledger: all entries are signed": status.signed_size == len(leaves) == status.size,
        "ledger: signed root is that of the leaves": status.signed_root == root_of(signed),
    }


def _digest(parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def pages() -> dict[str, list[str]]:
    """The addresses by tenant. Those of listings are those of the isolation tests."""
    from audit.models import Invocation
    from tenants.models import Tenant
    from tenants.scope import tenant_scope
    from tests.isolation.routes import ROUTES, Listing

    listings = [
        route.path
        for route in ROUTES.values()
        if isinstance(route, Listing) and "GET" in route.answers
    ]
    found = {}
    for tenant in Tenant.objects.order_by("slug"):
        with tenant_scope(tenant.id):
            calls = list(
                Invocation.objects.for_tenant(tenant.id)
                .order_by("invocation_id")
                .values_list("started_on", "invocation_id", "trace_id")[:OBJECTS]
            )
        found[tenant.slug] = [
            *listings,
            *(f"/calls/{day}/{call_id}" for day, call_id, _ in calls),
            *sorted({f"/traces/{trace_id}" for _, _, trace_id in calls}),
        ]
    return found


def store(slug: str) -> dict[str, float]:
    """Store requests for each line of stdin, as the view does, without HTTP; then trace some."""
    from django.db import connection

    from audit.events import body
    from audit.events.batch_ids import choose_batch_id
    from audit.intake import ingest
    from bench.generated import make_requests
    from tenants.provision import ensure_tenant

    tenant_id = ensure_tenant(slug, slug).id

    def take(seed: int) -> dict[str, float]:
        requests = make_requests(CHUNK, SIZE, seed).ready
        began, used = time.perf_counter(), time.process_time()
        for batch_id, sent, _ in requests:
            now = datetime.now(UTC)
            raw = body.inflate(sent, "gzip")
            batch = choose_batch_id(batch_id, now)
            ingest.record_batches(
                [ingest.read_request(tenant_id, raw, body.split_lines(raw), batch, now)]
            )
        return {
            "requests": len(requests),
            "events": sum(count for _, _, count in requests),
            "seconds": time.perf_counter() - began,
            "python": time.process_time() - used,
        }

    take(seed=0)  # statements are prepared, pages are warm
    print("ready", flush=True)
    for seed, _ in enumerate(sys.stdin, 1):
        print(json.dumps(take(seed)), flush=True)
    with tempfile.TemporaryFile() as messages:
        raw = connection.connection.pgconn
        raw.trace(messages.fileno())
        traced = take(seed=10_000)
        raw.untrace()
        messages.seek(0)
        executed = sum(
            line.split(b"\t")[1:4:2] in ([b"F", b"Execute"], [b"F", b"Query"]) for line in messages
        )
    return {"statements": executed / traced["requests"]}


def main() -> None:
    """Run the command of the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    command, *rest = sys.argv[1:]
    if command == "tenants":
        print(json.dumps(make_tenants(int(rest[0]))))
    elif command == "contents":
        print(json.dumps(contents()))
    elif command == "pages":
        print(json.dumps(pages()))
    else:
        print(json.dumps(store(*rest)))


if __name__ == "__main__":
    main()
