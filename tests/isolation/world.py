"""A tenant with rows in every table, and a marker in each of its texts.

Nobody but its own members may ever be shown the canary.
"""

import json
import secrets
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import uuid_utils.compat
from django.db import connection, connections
from django.test import Client
from tooltrail.ledger import root_of

from audit.log.payload import pack
from audit.queries.time_range import TimeRange
from audit.reports.figures import gather
from tenants.keys import create_key
from tenants.members import add_member
from tenants.models import ApiKey, Membership, Role, Scope, Tenant, User
from tenants.provision import ensure_tenant
from tenants.scope import tenant_scope
from tests.support.factories import make_user

# Tables of tenants that hold no text, hence no canary.
WITHOUT_TEXT = {
    "erasure_call": "ids",
    "ledger_erasure": "numbers, and an id",
    "ledger_head": "a number",
    "ledger_tile": "hashes",
    "membership": "a role",
    "payload_search_hit": "ids, and which of a call's two events",
    "report_schedule": "kinds of reports, and the name of a zone",
}

# What the worker alone writes, as the keeper.
_KEEPERS = {"ledger_tile", "ledger_checkpoint", "ledger_signer", "ledger_erasure"}

# What a constraint or a reader asks for; everything else is filled in by its type.
_LEAVES = bytes(64)
_FITTING: dict[str, dict[str, Any]] = {
    "batch": {"first_index": 0, "is_own": False},
    "invitation": {"role": "viewer", "token_sha256": bytes(32), "revoked_at": None},
    "ledger_head": {"size": 2},
    "ledger_check": {"state": "failed", "missing": []},
    "erasure": {"state": "done", "step": "inbox"},
    "legal_hold": {"released_at": None, "released_by": None, "release_reason": None},
    "ledger_tile": {"level": 0, "tile_index": 0, "hashes": _LEAVES},
    "ledger_checkpoint": {"epoch": 0, "size": 2, "root": root_of([_LEAVES[:32], _LEAVES[32:]])},
    "tool_version": {"number": 1, "on_collision": "throw"},
    "tool": {"latest_number": 1, "current_number": 1, "change_count": 1}
    | {"is_checked_on_arrival": False},
    "tool_change": {"kind": "published", "number": 1, "ordinal": 1, "attempted_on": None},
    "tool_draft": {"base_number": 1, "revision": 1, "on_collision": "throw"},
    "invocation": {"state": "failed", "violation_count": 1, "attempt": 1},
    "rollup": {"histogram": 1},
    "quarter_rollup": {"histogram": 1},
    "violation": {"ordinal": 0, "severity": "error", "outcome": "failed"},
    "payload_search": {"state": "done", "cursor_at": None, "cursor_id": None},
    "payload_search_hit": {"kind": "start"},
    "tool_replay": {"state": "done", "call_limit": 1, "base_number": 1, "findings": ""}
    | {"cursor_at": None, "cursor_id": None},
    "tool_import": {"state": "looked_at", "is_large": False, "user_name": "", "key_id": ""},
    "tool_import_tool": {"ordinal": 0, "twin": "", "is_own": False, "outcome": None},
    "tool_drift": {"state": "done", "call_limit": 1, "base_number": 1, "found": ""}
    | {"cursor_at": None, "cursor_id": None},
    "report": {"kind": "day", "made_as": "person", "time_zone": "UTC", "again_of": None},
    "report_schedule": {"kinds": ["day"], "time_zone": "UTC", "keep_days": 400},
    "rejected_event": {
        "resolution": "discarded",
        "redrive_batch_id": None,
        "redrive_edited": None,
    },
}
_DOCUMENTS = {"input_schema", "output_schema", "meta", "answer", "details", "contract"}
"""Columns whose text is JSON."""


@dataclass(frozen=True)
class World:
    """One tenant with one row of everything, all of the same call."""

    tenant: Tenant
    admin: User
    canary: str
    """Stands in every text, and as a whole is the tool's, the trace's and the key's name."""
    at: datetime
    call_id: UUID
    batch_id: UUID
    tool_id: UUID
    refused_id: UUID
    view_id: UUID
    search_id: UUID
    report_id: UUID
    check_id: UUID
    replay_id: UUID
    analysis_id: UUID
    import_id: UUID
    hold_id: UUID
    erasure_id: UUID
    invitation_id: UUID
    api_key: ApiKey
    membership: Membership

    def client(self) -> Client:
        """A browser in which the admin is signed in."""
        client = Client()
        client.force_login(self.admin)
        return client

    def key(self, scope: Scope) -> str:
        """The text of a new API key."""
        return create_key(self.tenant, self.canary, [scope])[1]


def make_world(name: str) -> World:
    """A world of its own for one test."""
    canary = f"canary{secrets.token_hex(4)}"
    tenant = ensure_tenant(f"{name}-{secrets.token_hex(4)}", f"{name} {canary}")
    admin = make_user(canary)
    at = datetime.now(UTC)
    with tenant_scope(tenant.id):
        membership = add_member(tenant, admin, Role.ADMIN)
    world = World(
        tenant=tenant,
        admin=admin,
        canary=canary,
        at=at,
        call_id=uuid_utils.compat.uuid7(),
        batch_id=uuid_utils.compat.uuid7(),
        tool_id=uuid.uuid4(),
        refused_id=uuid_utils.compat.uuid7(),
        view_id=uuid_utils.compat.uuid7(),
        search_id=uuid_utils.compat.uuid7(),
        report_id=uuid_utils.compat.uuid7(),
        check_id=uuid_utils.compat.uuid7(),
        replay_id=uuid_utils.compat.uuid7(),
        analysis_id=uuid_utils.compat.uuid7(),
        import_id=uuid.uuid4(),
        hold_id=uuid_utils.compat.uuid7(),
        erasure_id=uuid_utils.compat.uuid7(),
        invitation_id=uuid_utils.compat.uuid7(),
        api_key=create_key(tenant, canary, list(Scope))[0],
        membership=membership,
    )
    with tenant_scope(tenant.id):
        for table in tenant_tables():
            if count_rows(table) == 0 and table not in _KEEPERS:
                _insert(world, table)
    with tenant_scope(tenant.id, using="keeper"):
        for table in sorted(_KEEPERS):
            _insert(world, table, using="keeper")
    return world


def tenant_tables() -> list[str]:
    """Every table with a tenant_id, tools before their versions; partitions are their parents'."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE a.attname = 'tenant_id' AND NOT a.attisdropped AND c.relkind IN ('r', 'p')"
            " AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace"
            " ORDER BY c.relname"
        )
        return [name for (name,) in cursor.fetchall()]


def count_rows(table: str, containing: str = "") -> int:
    """The open scope's rows of a table whose text contains something."""
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT count(*) FROM "{table}" t WHERE strpos(t::text, %s) > 0', [containing]
        )
        return int(cursor.fetchone()[0])


def _insert(world: World, table: str, *, using: str = "default") -> None:
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            [table],
        )
        row = {column: _value(world, table, column, kind) for column, kind in cursor.fetchall()}
        names = ", ".join(f'"{column}"' for column in row)
        places = ", ".join("%s" for _ in row)
        cursor.execute(f'INSERT INTO "{table}" ({names}) VALUES ({places})', list(row.values()))


def _value(world: World, table: str, column: str, kind: str) -> Any:
    if column in _FITTING.get(table, {}):
        return _FITTING[table][column]
    ids = {
        "tenant_id": world.tenant.id,
        "tool_id": world.tool_id,
        "invocation_id": world.call_id,
        "parent_invocation_id": None,
        "batch_id": world.batch_id,
        "start_batch_id": world.batch_id,
        "end_batch_id": world.batch_id,
        "start_pos": 0,
        "end_pos": 1,
        "user_id": world.admin.pk,
        "created_by_id": world.admin.pk,
        "event_count": 2,
        "hour_at": world.at.replace(minute=0, second=0, microsecond=0),
        "quarter_at": world.at.replace(minute=world.at.minute // 15 * 15, second=0, microsecond=0),
        "payload": pack((secrets.token_bytes(32), raw) for raw in _events(world)),
        "leaves": _LEAVES,
    }
    if (table, column) == ("tool", "id"):
        return world.tool_id
    if (table, column) == ("rejected_event", "id"):
        return world.refused_id
    if (table, column) == ("saved_view", "id"):
        return world.view_id
    if (table, column) == ("ledger_check", "id"):
        return world.check_id
    if (table, column) == ("report", "id"):
        return world.report_id
    if (table, column) in {("erasure", "id"), ("erasure_call", "erasure_id")}:
        return world.erasure_id
    if (table, column) == ("invitation", "id"):
        return world.invitation_id
    if (table, column) == ("legal_hold", "id"):
        return world.hold_id
    if (table, column) == ("tool_replay", "id"):
        return world.replay_id
    if (table, column) == ("tool_drift", "id"):
        return world.analysis_id
    if (table, column) in {("tool_import", "id"), ("tool_import_tool", "import_id")}:
        return world.import_id
    if (table, column) == ("tool_import_tool", "content"):
        return json.dumps({"name": world.canary, "inputSchema": {"type": "object"}})
    if (table, column) in {("tool_import_tool", each) for each in ("drafts", "published")}:
        return json.dumps(_planned(world))
    if (table, column) == ("report", "figures"):
        return json.dumps(gather(TimeRange(world.at - timedelta(days=1), world.at, UTC), world.at))
    if (table, column) in {("payload_search", "id"), ("payload_search_hit", "search_id")}:
        return world.search_id
    if column in ids:
        return ids[column]
    if column in _DOCUMENTS:
        return json.dumps({"description": world.canary})
    values: dict[str, Any] = {
        "uuid": uuid.uuid4(),
        "text": world.canary,
        "character varying": world.canary,
        "character varying[]": [world.canary],
        "text[]": [world.canary],
        "bytea": world.canary.encode(),
        "timestamp with time zone": world.at,
        "date": world.at.date(),
        "boolean": True,
        "bigint": 1,
        "integer": 1,
        "bigint[]": [1],
    }
    if kind not in values:
        raise AssertionError(
            f"{table}.{column} has the type {kind}: give it a value in"
            " tests/isolation/world.py, _FITTING or _value"
        )
    return values[kind]


def _planned(world: World) -> dict[str, Any]:
    """What an import would do to a tool (`tools_registry.exchange.summary`)."""
    words = dict.fromkeys(("path", "name"), world.canary)
    lists = {name: [world.canary] for name in ("steps", "problems", "notes")}
    nobody = dict.fromkeys(("callers", "consumers", "tool"))
    return {**words, **lists, **nobody, "status": "added", "changes": [], "more_changes": 0}


def _events(world: World) -> tuple[bytes, bytes]:
    shared = {
        "invocation_id": str(world.call_id),
        "trace_id": world.canary,
        "tool_name": world.canary,
        "call_id": world.canary,
        "started_at": world.at.isoformat(),
    }
    violation = {
        "path": f"$.{world.canary}",
        "code": "WRONG_TYPE",
        "severity": "error",
        "message": world.canary,
        "expected": world.canary,
        "received": world.canary,
        "receivedValue": world.canary,
        "llmMessage": world.canary,
    }
    start = {"type": "toolExecutionStart", **shared, "args": {"q": world.canary}}
    end = {
        "type": "toolExecutionEnd",
        **shared,
        "ended_at": world.at.isoformat(),
        "duration_ms": 0.001,
        "is_error": True,
        "output": {
            "status": "error",
            "error": {"type": "FATAL", "message": world.canary},
            "meta": {"took_ms": 1},
        },
        "guard": {"strategy": "throw", "outcome": "failed", "violations": [violation]},
    }
    return json.dumps(start).encode(), json.dumps(end).encode()
