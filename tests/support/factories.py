"""Functions that make valid rows; a test overrides what it is about."""

import json
import secrets
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import uuid_utils.compat
from django.contrib.auth.hashers import make_password
from django.test import Client

from tenants.keys import create_key
from tenants.models import Membership, Role, Scope, Tenant, User
from tenants.scope import tenant_scope

PASSWORD = "correct horse battery staple"


@dataclass(frozen=True)
class Cast:
    """A tenant and one member of each role, with password `PASSWORD`."""

    tenant: Tenant
    admin: User
    editor: User
    auditor: User
    viewer: User


def make_user(name: str) -> User:
    """A user whose name starts with `name` and is unique."""
    return User.objects.create_user(f"{name}-{secrets.token_hex(4)}", password=PASSWORD)


def make_tenant(name: str) -> Tenant:
    """A tenant whose slug starts with `name` and is unique."""
    return Tenant.objects.create(slug=f"{name}-{secrets.token_hex(4)}", name=name.capitalize())


def make_cast(name: str) -> Cast:
    """A tenant of its own for one test, with a member of each role.

    Most tests begin with it, so there are few statements: 3.3 ms instead of 4.5.
    """
    tenant = make_tenant(name)
    unique = secrets.token_hex(4)
    users = User.objects.bulk_create(
        User(username=f"{name}-{role.value}-{unique}", password=make_password(PASSWORD))
        for role in Role
    )
    members = dict(zip(Role, users, strict=True))
    with tenant_scope(tenant.id):
        Membership.objects.bulk_create(
            Membership(tenant=tenant, user=user, role=role) for role, user in members.items()
        )
    return Cast(
        tenant=tenant,
        admin=members[Role.ADMIN],
        editor=members[Role.EDITOR],
        auditor=members[Role.AUDITOR],
        viewer=members[Role.VIEWER],
    )


def make_call(
    *,
    started_at: datetime | None = None,
    duration_ms: float = 20.0,
    is_open: bool = False,
    **members: Any,
) -> list[dict[str, Any]]:
    """A call's start and end event, or with `is_open` its start alone; begun a minute ago.

    `members` are those of the wire contract. `args` goes into the start, `is_error`, `output`
    and `guard` into the end, all others into both.
    """
    started_at = started_at or datetime.now(UTC) - timedelta(minutes=1)
    args = members.pop("args", {"city": "London"})
    ending = {
        "is_error": members.pop("is_error", False),
        "output": members.pop("output", {"status": "ok", "data": {}, "meta": {"took_ms": 20}}),
        "guard": members.pop("guard", None),
    }
    shared = {
        "invocation_id": str(uuid.uuid4()),
        "trace_id": "trace-123",
        "tool_name": "get_weather",
        "call_id": "c" * 64,
        "started_at": started_at.isoformat(),
        **members,
    }
    start = {"type": "toolExecutionStart", "event_id": _new_event_id(), **shared, "args": args}
    ended_at = (started_at + timedelta(milliseconds=duration_ms)).isoformat()
    end = {
        "type": "toolExecutionEnd",
        "event_id": _new_event_id(),
        **shared,
        "ended_at": ended_at,
        "duration_ms": duration_ms,
        **ending,
    }
    return [start] if is_open else [start, end]


def make_decision(
    decision: str = "denied", *, decided_at: datetime | None = None, **members: Any
) -> dict[str, Any]:
    """A decision about a call of its own, made a minute ago; `members` are of the wire contract."""
    decided_at = decided_at or datetime.now(UTC) - timedelta(minutes=1)
    return {
        "type": "toolCallDecision",
        "event_id": _new_event_id(),
        "invocation_id": str(uuid.uuid4()),
        "trace_id": "trace-123",
        "tool_name": "get_weather",
        "decided_at": decided_at.isoformat(),
        "decision": decision,
        "args": {"city": "London"},
        **members,
    }


def _new_event_id() -> str:
    return str(uuid_utils.compat.uuid7())


def make_ingest_key(tenant: Tenant) -> str:
    """The text of a key that may send events and read figures."""
    return create_key(tenant, "executor", [Scope.INGEST, Scope.READ])[1]


def send_events(
    tenant: Tenant, events: Iterable[dict[str, Any]], *, key: str | None = None
) -> dict[str, Any]:
    """Send events through the real endpoint as one batch; the answer, which must be a 200."""
    answer = Client().post(
        "/api/v1/events",
        data="\n".join(json.dumps(event) for event in events).encode(),
        content_type="application/x-ndjson",
        headers={
            "Authorization": f"Bearer {key or make_ingest_key(tenant)}",
            "Idempotency-Key": str(uuid_utils.compat.uuid7()),
        },
    )
    assert answer.status_code == 200, answer.content
    document: dict[str, Any] = answer.json()
    return document


def make_definitions(
    *tools: dict[str, Any], server: str = "weather", seen_at: datetime | None = None, **members: Any
) -> dict[str, Any]:
    """A list of tools that a server served a minute ago; `members` are of the wire contract."""
    seen_at = seen_at or datetime.now(UTC) - timedelta(minutes=1)
    return {
        "type": "toolDefinitions",
        "seen_at": seen_at.isoformat(),
        "server": {"name": server, "version": "1.0"},
        "client": {"name": "agent", "version": "2.0"},
        "tools": list(tools or (make_definition(),)),
        **members,
    }


def make_definition(name: str = "get_weather", **members: Any) -> dict[str, Any]:
    """What an MCP server says of a tool."""
    return {
        "name": name,
        "description": "The weather of a city.",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
        **members,
    }
