"""How fast the registry answers: `uv run bench/registry.py [--tools 1000] [--versions 50]`.

Starts a PostgreSQL of its own and stores tools with many versions each, and calls of all of them in
each of the last 24 hours. Then it requests pages as a signed-in viewer, in this process, through
all of Django. It prints server time without the network, in ms, of `--rounds` requests each. Then
it compares two schemas of 1,000 properties. Fails above a limit. On a busy machine trust `best`.
"""

import argparse
import os
import secrets
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from django.test import Client

LIST, DIFF = 80.0, 150.0  # ms
CHUNK = 5_000  # rows


def main() -> int:
    """Print the table; 1 if a time was above its limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tools", type=int, default=1_000)
    parser.add_argument("--versions", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as folder:
        Path(folder).chmod(0o711)  # as root, PostgreSQL may run as another user
        os.environ["TOOLTRAIL_VAR"] = str(Path(folder) / "var")
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        from config.postgresql.embedded import EmbeddedPostgres

        server = EmbeddedPostgres(Path(folder) / "postgres", settings=("fsync = off",))
        server.start()
        try:
            return measure(server.admin_url, options.tools, options.versions, options.rounds)
        finally:
            server.stop()


def measure(admin_url: str, tools: int, versions: int, rounds: int) -> int:
    """Fill the registry, measure and print; 1 if a time was above its limit."""
    tenant_id, client = prepare(admin_url)
    tool_id = fill(tenant_id, tools, versions)
    print(f"{tools:,} tools × {versions} versions, {rounds} rounds; ms")
    print(f"{'':34}{'best':>8}{'median':>8}{'worst':>8}{'limit':>8}")
    reads = [
        ("list, first page", "/tools/", LIST),
        ("list, a later page", "/tools/?after=tool_0500", LIST),
        ("list, by name", "/tools/?q=99", LIST),
        ("list, deprecated", "/tools/?state=deprecated", LIST),
        (f"a tool of {versions} versions", f"/tools/{tool_id}", LIST),
        ("two versions, 20 properties", f"/tools/{tool_id}/diff?from=1&to={versions}", DIFF),
    ]
    is_slow = False
    for name, address, limit in reads:
        is_slow |= show(name, rounds, limit, partial(ask, client, address))
    from tools_registry.contract_diff import compare_contracts
    from tools_registry.schemas import ToolContract

    old, new = (
        ToolContract(name="t", description="", input_schema=schema(1_000, shift))
        for shift in (0, 1)
    )
    is_slow |= show(
        "diff of 1,000 properties, and raw", rounds, DIFF, lambda: compare_contracts(old, new).raw
    )
    return int(is_slow)


def show(name: str, rounds: int, limit: float, do: Callable[[], Any]) -> bool:
    """Print a line; whether the best round was above the limit."""
    do()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        do()
        times.append((time.perf_counter() - start) * 1000)
    best, median, worst = min(times), statistics.median(times), max(times)
    print(f"{name:34}{best:8.1f}{median:8.1f}{worst:8.1f}{limit:8.0f}")
    return best > limit


def ask(client: "Client", address: str) -> None:
    """Request a page, which must answer 200."""
    answer = client.get(address)
    assert answer.status_code == 200, address


def prepare(admin_url: str) -> tuple[UUID, "Client"]:
    """Create schema, tenant and a signed-in viewer; returns the tenant's id and the client."""
    from config.postgresql import database, roles

    passwords = {role: secrets.token_urlsafe(16) for role in roles.ROLES}
    database.initialise(admin_url, passwords)
    for variable, role in roles.VARIABLES.items():
        os.environ[variable] = database.role_url(admin_url, role, passwords[role], roles.DATABASE)
    import django
    from django.core.management import call_command

    django.setup()
    warnings.filterwarnings("ignore", "No directory at")  # of static files, which are not requested
    call_command("migrate", database="owner", verbosity=0)
    from django.conf import settings
    from django.test import Client

    from audit.index import partitions
    from tenants.members import add_member
    from tenants.models import Role, User
    from tenants.provision import ensure_tenant
    from tenants.scope import tenant_scope

    settings.ALLOWED_HOSTS = ["testserver"]
    settings.STORAGES = {
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    }
    partitions.apply(partitions.missing(datetime.now(UTC).date()))
    tenant = ensure_tenant("bench", "Bench")
    user = User.objects.create_user("viewer", password=secrets.token_urlsafe(16))
    with tenant_scope(tenant.id):
        add_member(tenant, user, Role.VIEWER)
    client = Client()
    client.force_login(user)
    return tenant.id, client


def fill(tenant_id: UUID, tools: int, versions: int) -> UUID:
    """Store tools with versions, changes and calls of each hour; returns the first tool's id."""
    from django.db import connection, connections

    from tenants.models import new_id
    from tenants.scope import tenant_scope
    from tools_registry.models import Tool, ToolChange, ToolVersion

    now = datetime.now(UTC)
    rows = [
        Tool(
            id=new_id(),
            tenant_id=tenant_id,
            name=f"tool_{n:04}",
            latest_number=versions,
            current_number=versions,
            change_count=versions,
        )
        for n in range(tools)
    ]
    schemas: list[dict[str, Any]] = [
        {"input_schema": schema(20, number), "output_schema": schema(5, number)}
        for number in range(versions + 1)
    ]
    with tenant_scope(tenant_id):
        Tool.objects.bulk_create(rows)
        for start in range(0, tools, max(1, CHUNK // versions)):
            some = rows[start : start + max(1, CHUNK // versions)]
            pairs = [(tool, number) for tool in some for number in range(1, versions + 1)]
            digests = [f"sha256:{secrets.token_hex(32)}" for _ in pairs]
            ToolVersion.objects.bulk_create(
                ToolVersion(
                    tenant_id=tenant_id,
                    tool=tool,
                    number=number,
                    digest=digest,
                    description=f"Does what tool {tool.name} does. " * 4,
                    **schemas[number],
                    created_by_key="executor",
                )
                for (tool, number), digest in zip(pairs, digests, strict=True)
            )
            ToolChange.objects.bulk_create(
                ToolChange(
                    tenant_id=tenant_id,
                    tool=tool,
                    ordinal=number,
                    at=now,
                    kind="published",
                    number=number,
                    digest=digest,
                    key_id="executor",
                )
                for (tool, number), digest in zip(pairs, digests, strict=True)
            )
        with connection.cursor() as cursor:
            for back in range(25):
                hour = (now - timedelta(hours=back)).replace(minute=0, second=0, microsecond=0)
                cursor.execute(
                    "INSERT INTO rollup SELECT (jsonb_populate_record(NULL::rollup, "
                    "row || jsonb_build_object('tool_name', name))).* "
                    "FROM (SELECT %s::jsonb AS row) AS r, unnest(%s::text[]) AS name",
                    [counters(cursor, tenant_id, hour), [tool.name for tool in rows]],
                )
    with connections["owner"].cursor() as cursor:
        cursor.execute("ANALYZE")
    return rows[0].id


def counters(cursor: Any, tenant_id: UUID, hour: datetime) -> str:
    """A row of `rollup` as JSON with 1 in every numeric column, whatever columns exist."""
    import json

    cursor.execute(
        "SELECT attname, atttypid::regtype::text FROM pg_attribute"
        " WHERE attrelid = 'rollup'::regclass AND attnum > 0 AND NOT attisdropped"
    )
    values = {"uuid": str(tenant_id), "text": "", "timestamp with time zone": hour.isoformat()}
    values["date"] = str(hour.date())
    return json.dumps({name: values.get(kind, 1) for name, kind in cursor.fetchall()})


def schema(size: int, shift: int) -> dict[str, Any]:
    """A schema of an object with `size` properties; another `shift` changes each property."""
    return {
        "type": "object",
        "required": [f"property_{n}" for n in range(shift % 2, size, 2)],
        "properties": {
            f"property_{n}": {
                "type": "string" if (n + shift) % 3 else "integer",
                "description": f"Number {n + shift}",
                "maxLength": n + shift,
            }
            for n in range(size)
        },
        "additionalProperties": False,
    }


if __name__ == "__main__":
    sys.exit(main())
