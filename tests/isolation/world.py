"""A tenant with rows in every table, and a marker in each of its texts.

Only members of the tenant may see the marker, called the canary.
"""

import json
import re
import secrets
import uuid
from collections.abc import Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

import uuid_utils.compat
from django.db import connection, connections
from django.test import Client
from tooltrail.ledger.cosignature import WitnessKey

from audit.queries.call_query import quoted
from audit.queries.time_range import TimeRange
from audit.reports.clauses.record import record_figures
from audit.reports.figures import gather
from tenants.keys import create_key
from tenants.members import add_member
from tenants.models import ApiKey, Membership, Role, Scope, Tenant, User
from tenants.provision import ensure_tenant
from tenants.scope import tenant_scope
from tenants.service_accounts import create_account
from tests.support.factories import make_user
from tests.support.ledger_log import signed_batch

# Tables of tenants that hold no text, hence no canary.
WITHOUT_TEXT = {
    "archive_segment": "numbers and hashes",
    "audit_sample_part": "hashes and ids",
    "erasure_call": "ids",
    "ledger_erasure": "numbers, and an id",
    "ledger_head": "a number",
    "ledger_tile": "hashes",
    "membership": "a role",
    "payload_search_hit": "ids, and which of a call's two events",
    "report_schedule": "kinds of reports, and the name of a zone",
}

# Only the worker writes these, as the role of the keeper.
_KEEPERS = {"ledger_tile", "ledger_checkpoint", "ledger_signer", "ledger_erasure"}

# These have rows as soon as the tenant has a member and a key.
_PROVISIONED = {"api_key", "membership"}

# Values that a constraint or a reader requires; other columns get a value by their type.
_FITTING: dict[str, dict[str, Any]] = {
    "alert_channel": {"kind": "webhook", "secret_box": None},
    "audit_sample": {"state": "drawn", "wanted_size": 1, "confidence": None, "tolerable": None}
    | {"expected": None, "query": "", "commitment": "", "nonce": "", "cursor_id": None}
    | {"prepared_person": None, "prepared_at": None, "reviewed_person": None, "reviewed_at": None}
    | {"finished_at": None, "checkpoint_size": 2},
    "audit_sample_call": {"position": 1, "ledger_index": 0, "conclusion": "", "is_erased": False},
    "incident": {"state": "done", "cursor_at": None, "cursor_id": None, "is_erased": False},
    "alert_delivery": {"state": "delivered", "attempt_count": 1},
    "alert_rule": {"repeat_minutes": 0},
    "alert_trial": {"state": "done", "sums": "{}"},
    "maintenance_window": {"minutes": 60, "repeats": "daily", "time_zone": "UTC"},
    "stream": {"of": "calls", "format": "ocsf", "way": "https", "secret_box": None}
    | {"next_index": 0, "sent_count": 0, "attempt_count": 1, "last_test": None}
    | {"payloads_by": None, "payloads_reason": None, "paused_at": None, "paused_by": None}
    | {"claim": None, "claimed_until": None},
    # Nothing of it is in a storage.
    "archive": {"next_index": 0, "end_index": None, "attempt_count": 1, "payload_days": 30},
    "share_link": {"kind": "report", "revoked_at": None, "revoked_by": None}
    | {"payloads_by": None, "payloads_reason": None},
    "note": {"about": "call", "state": "open", "assignee": "", "fixed_in": ""},
    "tool_regression": {"number": 1, "judged_by": 1, "case_count": 1},
    "tool_regression_case": {"args": "{}", "output": "{}", "is_erased": False},
    "batch": {"first_index": 0, "is_own": False},
    "key_quota": {"events_left": 5.0},
    "identity_provider": {"kind": "oidc", "default_role": "viewer", "role_by_group": "{}"}
    | {"secret_box": None, "disabled_at": None},
    "invitation": {"role": "viewer", "token_sha256": bytes(32), "revoked_at": None},
    "ledger_head": {"size": 2},
    "llm_usage": {"cached_tokens": 0, "written_tokens": 0, "is_inner": False},
    "ledger_check": {"state": "failed", "missing": []},
    "alert": {"state": "open", "severity": "alert", "resolved_at": None, "acknowledged_at": None},
    "erasure": {"state": "done", "step": "inbox"},
    "floor_request": {"from_days": 400, "to_days": 200, "state": "waiting", "decided_at": None}
    | {"decided_by": None, "decided_person": None, "decision_reason": None},
    "tenant_setting": {"floor_days": None},
    "legal_hold": {"released_at": None, "released_by": None, "release_reason": None},
    "ledger_tile": {"level": 0, "tile_index": 0},
    "ledger_checkpoint": {"epoch": 0, "size": 2},
    "witness_answer": {"epoch": 0, "size": 2, "outcome": "refused", "line": ""},
    "tool_version": {"number": 1, "on_collision": "throw"},
    "tool": {"latest_number": 1, "current_number": 1, "change_count": 1}
    | {"is_checked_on_arrival": False},
    "tool_change": {"kind": "published", "number": 1, "ordinal": 1, "attempted_on": None},
    "tool_draft": {"base_number": 1, "revision": 1, "on_collision": "throw"},
    "invocation": {"state": "failed", "violation_count": 1, "attempt": 1},
    "rollup": {"histogram": 1},
    "quarter_rollup": {"histogram": 1},
    "served_definition": {"state": "approved", "approved_during": "{}"},
    "decision": {"decision": "approved", "by_kind": "person", "tool_call_id": None},
    "violation": {"ordinal": 0, "severity": "error", "outcome": "failed"},
    "argument_comparison": {"state": "done", "observed": "", "differences": "[]"},
    "payload_search": {"state": "done", "cursor_at": None, "cursor_id": None},
    "payload_search_hit": {"kind": "start"},
    "tool_replay": {"state": "done", "call_limit": 1, "base_number": 1, "findings": ""}
    | {"cursor_at": None, "cursor_id": None},
    "tool_import": {"state": "previewed", "is_large": False, "user_name": "", "key_id": ""},
    "tool_import_tool": {"ordinal": 0, "twin": "", "is_own": False, "outcome": None},
    "tool_drift": {"state": "done", "call_limit": 1, "base_number": 1, "shape": ""}
    | {"cursor_at": None, "cursor_id": None},
    "saved_view": {"page": "calls", "is_shared": True},
    "page_choice": {"page": "calls", "default_view": None},
    "report": {"kind": "day", "made_as": "person", "time_zone": "UTC", "again_of": None},
    "report_schedule": {"kinds": ["day"], "time_zone": "UTC", "keep_days": 400},
    "rejected_event": {
        "resolution": "discarded",
        "redrive_batch_id": None,
        "redrive_edited": None,
    },
}
_DOCUMENTS = {
    "content",
    "input_schema",
    "output_schema",
    "meta",
    "answer",
    "details",
    "rows",
    "contract",
}
"""Columns whose text is JSON."""


@dataclass(frozen=True)
class World:
    """One tenant with one row in every table, all about the same call."""

    tenant: Tenant
    admin: User
    canary: str
    """Is in every text. Tool, trace and API key have exactly this name."""
    at: datetime
    call_id: UUID
    batch_id: UUID
    tool_id: UUID
    refused_id: UUID
    view_id: UUID
    search_id: UUID
    comparison_id: UUID
    report_id: UUID
    check_id: UUID
    replay_id: UUID
    analysis_id: UUID
    import_id: UUID
    definition_id: UUID
    hold_id: UUID
    floor_request_id: UUID
    alert_id: UUID
    trial_id: UUID
    rule_id: UUID
    erasure_id: UUID
    sample_id: UUID
    channel_id: UUID
    stream_id: UUID
    provider_id: UUID
    directory_user_id: UUID
    directory_group_id: UUID
    window_id: UUID
    note_id: UUID
    board_id: UUID
    """Of a shared board."""
    link_id: UUID
    incident_id: UUID
    invitation_id: UUID
    price_day: date
    """The day of its price list: no other world has one then."""
    api_key: ApiKey
    membership: Membership
    service: Membership
    """A service account."""

    def client(self) -> Client:
        """A client in which the admin is signed in."""
        client = Client()
        client.force_login(self.admin)
        return client

    def key(self, scope: Scope) -> str:
        """The text of a new API key."""
        return create_key(self.tenant, self.canary, [scope], created_by=self.admin)[1]


def make_world(name: str, canary: str = "") -> World:
    """A new world. Its texts, ids and canary are in no other, unless a canary is given."""
    canary = canary or f"canary{secrets.token_hex(4)}"
    tenant = ensure_tenant(f"{name}-{secrets.token_hex(4)}", f"{name} {canary}")
    admin = make_user(canary)
    at = datetime.now(UTC)
    with tenant_scope(tenant.id):
        membership = add_member(tenant, admin, Role.ADMIN)
        service = create_account(tenant, admin, re.sub("[^a-z0-9]+", "-", canary).strip("-")[:60])
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
        comparison_id=uuid_utils.compat.uuid7(),
        report_id=uuid_utils.compat.uuid7(),
        check_id=uuid_utils.compat.uuid7(),
        replay_id=uuid_utils.compat.uuid7(),
        analysis_id=uuid_utils.compat.uuid7(),
        import_id=uuid.uuid4(),
        definition_id=uuid_utils.compat.uuid7(),
        hold_id=uuid_utils.compat.uuid7(),
        floor_request_id=uuid_utils.compat.uuid7(),
        alert_id=uuid_utils.compat.uuid7(),
        trial_id=uuid_utils.compat.uuid7(),
        rule_id=uuid_utils.compat.uuid7(),
        erasure_id=uuid_utils.compat.uuid7(),
        sample_id=uuid_utils.compat.uuid7(),
        channel_id=uuid_utils.compat.uuid7(),
        stream_id=uuid_utils.compat.uuid7(),
        provider_id=uuid_utils.compat.uuid7(),
        directory_user_id=uuid_utils.compat.uuid7(),
        directory_group_id=uuid_utils.compat.uuid7(),
        window_id=uuid_utils.compat.uuid7(),
        note_id=uuid_utils.compat.uuid7(),
        board_id=uuid_utils.compat.uuid7(),
        link_id=uuid_utils.compat.uuid7(),
        incident_id=uuid_utils.compat.uuid7(),
        invitation_id=uuid_utils.compat.uuid7(),
        price_day=date(2000, 1, 1) + timedelta(days=secrets.randbelow(9_000)),
        api_key=create_key(tenant, canary, list(Scope))[0],
        membership=membership,
        service=service,
    )
    columns = _columns()
    values = _values(world)
    with tenant_scope(tenant.id):
        _insert(values, columns, columns.keys() - _PROVISIONED - _KEEPERS - {"report"})
        days = TimeRange(at - timedelta(days=1), at, UTC)
        values["report.figures"] = json.dumps(
            {**gather(days, at), "record": record_figures(days, at)}
        )
        _insert(values, columns, {"report"})
    with tenant_scope(tenant.id, using="keeper"):
        _insert(values, columns, _KEEPERS, using="keeper")
    return world


@cache
def _columns() -> dict[str, list[tuple[str, str]]]:
    """Names and types of the columns of each table of tenants."""
    columns = {}
    with connection.cursor() as cursor:
        for table in tenant_tables():
            cursor.execute(
                "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
                " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
                [table],
            )
            columns[table] = cursor.fetchall()
    return columns


def tenant_tables() -> list[str]:
    """Every table with a tenant_id, tools before their versions, without partitions."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE a.attname = 'tenant_id' AND NOT a.attisdropped AND c.relkind IN ('r', 'p')"
            " AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace"
            " ORDER BY c.relname"
        )
        return [name for (name,) in cursor.fetchall()]


def count_rows(table: str, containing: str = "") -> int:
    """How many rows of the table, in the open tenant scope, contain this text."""
    with connection.cursor() as cursor:
        cursor.execute(
            f'SELECT count(*) FROM "{table}" t WHERE strpos(t::text, %s) > 0', [containing]
        )
        return int(cursor.fetchone()[0])


def _insert(
    values: dict[str, Any],
    columns: dict[str, list[tuple[str, str]]],
    tables: Set[str],
    *,
    using: str = "default",
) -> None:
    """Insert one row in each table, in one round trip: tests make a hundred worlds."""
    inserts: list[str] = []
    parameters: list[Any] = []
    for table in sorted(tables, key=lambda one: (one != "identity_provider", one)):
        row = {column: _value(values, table, column, kind) for column, kind in columns[table]}
        names = ", ".join(f'"{column}"' for column in row)
        inserts.append(f'INSERT INTO "{table}" ({names}) VALUES ({", ".join(["%s"] * len(row))})')
        parameters += row.values()
    with connections[using].cursor() as cursor:
        cursor.execute(";".join(inserts), parameters)


def _value(values: dict[str, Any], table: str, column: str, kind: str) -> Any:
    if column in _FITTING.get(table, {}):
        return _FITTING[table][column]
    for name in (f"{table}.{column}", column, f"a {kind}"):
        if name in values:
            return values[name]
    if kind == "uuid":
        return uuid.uuid4()
    raise AssertionError(
        f"{table}.{column} has the type {kind}: give it a value in"
        " tests/isolation/world.py, _FITTING or _values"
    )


def _witness(world: World) -> str:
    """The public key of a witness with the world's marker in its name."""
    return str(WitnessKey(world.canary, world.tenant.id.bytes * 2))


def _values(world: World) -> dict[str, Any]:
    """The values of a world's rows, by table and column, by column, and by type."""
    planned = json.dumps(_planned(world))
    document = json.dumps({"description": world.canary})
    return {
        **dict.fromkeys(_DOCUMENTS, document),
        "alert_channel.id": world.channel_id,
        "identity_provider.id": world.provider_id,
        "identity_provider.settings": json.dumps(
            {
                # An address that no operator opened: nothing connects there.
                "issuer": f"http://127.0.0.1:9/{world.canary}",
                "client_id": world.canary,
                "groups_claim": world.canary,
                "asks_second_factor": False,
                "scim": True,
            }
        ),
        "directory_user.id": world.directory_user_id,
        "directory_group.id": world.directory_group_id,
        "directory_user.identity_provider_id": world.provider_id,
        "directory_group.identity_provider_id": world.provider_id,
        "tenant_setting.witnesses": json.dumps(
            [{"url": f"https://{world.canary}.example", "key": _witness(world)}]
        ),
        "tenant_setting.witnesses_needed": 1,
        "tenant_setting.timestamp_url": f"https://{world.canary}.example/tsr",
        "witness_answer.witness": _witness(world),
        "alert_channel.settings": json.dumps({"url": f"https://{world.canary}.example/"}),
        "stream.id": world.stream_id,
        "stream.settings": json.dumps({"url": f"https://{world.canary}.example/", "ca": ""}),
        "price_list.holds_from": world.price_day,
        "price_list.currency": "EUR",
        "price_list.prices": _prices(world),
        "price_list.in_use": _prices(world),
        "unit_path.path": "output.units",
        "a numeric": 1,
        "alert_delivery.channel_id": world.channel_id,
        "alert_delivery.message": json.dumps(
            dict.fromkeys(("kind", "rule", "title", "text", "link"), world.canary)
        ),
        "alert_delivery.attempts": json.dumps(
            [{"at": world.at.isoformat(), "answer": world.canary, "status": 200}]
        ),
        "tool.id": world.tool_id,
        "rejected_event.id": world.refused_id,
        "saved_view.id": world.view_id,
        "ledger_check.id": world.check_id,
        "report.id": world.report_id,
        "erasure.id": world.erasure_id,
        "erasure_call.erasure_id": world.erasure_id,
        "audit_sample.id": world.sample_id,
        "audit_sample_part.sample_id": world.sample_id,
        "audit_sample_part.records": bytes(60),
        "audit_sample_call.sample_id": world.sample_id,
        "incident.id": world.incident_id,
        "incident.timeline": json.dumps({"traces": [], "items": [], "title": world.canary}),
        "invitation.id": world.invitation_id,
        "legal_hold.id": world.hold_id,
        "floor_request.id": world.floor_request_id,
        "alert.id": world.alert_id,
        "alert.rule_id": world.rule_id,
        "alert_rule.id": world.rule_id,
        "alert_trial.id": world.trial_id,
        "alert_trial.rule_id": None,
        "alert_trial.rule": json.dumps(
            {
                "name": world.canary,
                "condition": {"on": "window", "measure": "failed", "alert": 1},
            }
        ),
        "maintenance_window.id": world.window_id,
        "note.id": world.note_id,
        "board.id": world.board_id,
        "board.user_id": None,
        "board.range": "24h",
        "board.panels": json.dumps([{"shows": "list", "q": f"tool:{quoted(world.canary)}"}]),
        "tool_regression.id": world.tool_id,
        "tool_regression_case.set_id": world.tool_id,
        "tool_regression_case.expected": json.dumps(
            {"args": [[world.canary, "WRONG_TYPE"]], "output": None}
        ),
        "share_link.id": world.link_id,
        "alert_rule.condition": json.dumps(
            {
                "on": "window",
                "measure": "failed",
                "query": f"tool:{quoted(world.canary)}",
                "alert": 1,
            }
        ),
        "a uuid[]": [],
        "a double precision": 1.5,
        "served_definition.id": world.definition_id,
        "tool_replay.id": world.replay_id,
        "tool_drift.id": world.analysis_id,
        "tool_import.id": world.import_id,
        "tool_import_tool.import_id": world.import_id,
        "tool_import_tool.content": json.dumps(
            {"name": world.canary, "inputSchema": {"type": "object"}}
        ),
        "tool_import_tool.drafts": planned,
        "tool_import_tool.published": planned,
        "argument_comparison.id": world.comparison_id,
        "payload_search.id": world.search_id,
        "payload_search_hit.search_id": world.search_id,
        "query": quoted(world.canary),
        "tenant_id": world.tenant.id,
        "tool_id": world.tool_id,
        "invocation_id": world.call_id,
        "parent_invocation_id": None,
        "batch_id": world.batch_id,
        "start_batch_id": world.batch_id,
        "end_batch_id": world.batch_id,
        "interim_batch_id": world.batch_id,
        "start_pos": 0,
        "interim_pos": 1,
        "end_pos": 1,
        "pos": 0,
        "user_id": world.admin.pk,
        "created_by_id": world.admin.pk,
        "event_count": 2,
        "hour_at": world.at.replace(minute=0, second=0, microsecond=0),
        "quarter_at": world.at.replace(minute=world.at.minute // 15 * 15, second=0, microsecond=0),
        **signed_batch(world.batch_id, world.at, _events(world), world.canary),
        "a text": world.canary,
        "a character varying": world.canary,
        "a character varying[]": [world.canary],
        "a text[]": [world.canary],
        "a bytea": world.canary.encode(),
        "a timestamp with time zone": world.at,
        "a date": world.at.date(),
        "a boolean": True,
        "a bigint": 1,
        "a integer": 1,
        "a bigint[]": [1],
    }


def _prices(world: World) -> str:
    tokens = {"input": "1", "cached": None, "written": None, "output": "2"}
    return json.dumps(
        {
            "tools": [{"tool": world.canary, "amount": "0.5", "path": ""}],
            "models": [{"model": world.canary, **tokens}],
        }
    )


def _planned(world: World) -> dict[str, Any]:
    """The preview of one imported tool (`tools_registry.exchange.summary`)."""
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
