"""Every route of the product: how to request it, and which status each method returns.

A route that is missing here fails `test_other_tenants.py`, which says what to add.
`test_matrix.py` checks roles, methods and statuses of each.
"""

import json
import secrets
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import uuid_utils.compat
from django.urls import URLPattern, URLResolver, get_resolver

from audit.intake.otlp.signals import LANGFUSE_PATH, LOGS, METRICS, TRACES
from tenants.models import ApiKey, Membership, Role, Scope, Tenant
from tests.isolation.world import World

READ = MappingProxyType({"GET": 200})
FORM = MappingProxyType({"GET": 200, "POST": 200})
ACTION = MappingProxyType({"POST": 302})
SENT = MappingProxyType({"POST": 200})
WITHOUT_BODY = MappingProxyType({"POST": 400})
WHATEVER = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@dataclass(frozen=True)
class Object:
    """A route whose address contains an object's id: 404 for members of other tenants."""

    path: Callable[[World], str]
    """The address of that object in a world."""
    scope: Scope | None = None
    """Of the API key, for an API route."""
    is_read: bool = True
    """Whether GET shows the object, so that the admin of its tenant sees the canary."""
    role: Role = Role.VIEWER
    """The lowest role that may open the page."""
    needs_payloads: bool = False
    """Whether it is closed to members who may not see payloads."""
    needs_reveal: bool = False
    """Whether it is closed to an auditor who has not revealed the object."""
    answers: Mapping[str, int] = READ
    """For members who may open it: the status by method; other methods get 405. HEAD is as GET."""
    scopes: Mapping[str, Scope] = field(default_factory=dict[str, Scope])
    """The scope of the API key, by method, where it differs from `scope`."""


@dataclass(frozen=True)
class Listing:
    """A route without an id: members see data of their own tenant, never another's canary."""

    path: str
    scope: Scope | None = None
    shows_canary: bool = True
    """Whether GET shows the canary to the admin of its tenant."""
    data: Callable[[World], Any] = field(default=lambda world: {})
    """The body of a POST. It may contain ids of the world, which a visitor may know."""
    content_type: str = "application/json"
    """The content type of a POST to an API route."""
    role: Role = Role.VIEWER
    """The lowest role that may open the page."""
    needs_payloads: bool = False
    """Whether it is closed to members who may not see payloads."""
    needs_tenant: bool = True
    """Whether it is closed to a user without a tenant."""
    answers: Mapping[str, int] = READ
    """For members who may open it: the status by method; other methods get 405. HEAD is as GET."""
    scopes: Mapping[str, Scope] = field(default_factory=dict[str, Scope])
    """The scope of the API key, by method, where it differs from `scope`."""
    of_others: Mapping[str, int] = field(default_factory=dict[str, int])
    """The status by method, where it differs because `data` has ids of another tenant."""


@dataclass(frozen=True)
class Open:
    """A route for everybody that shows no data of a tenant; `why` gives the reason."""

    path: str
    why: str
    answers: Mapping[str, int] = READ
    """Without a session: the status by method; other methods get 405."""
    signed_in: Mapping[str, int] = field(default_factory=dict[str, int])
    """With a session: the status by method, where it differs."""


Visit = Object | Listing | Open
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")


def _act_on_service_account(act: str) -> Object:
    return Object(
        lambda world: f"/settings/service-accounts/{world.service.pk}/{act}",
        is_read=False,
        role=Role.ADMIN,
        answers=ACTION,
    )


def _act_on_sample(act: str, status: int) -> Object:
    return Object(
        lambda world: f"/samples/{world.sample_id}/{act}",
        is_read=False,
        role=Role.AUDITOR,
        answers={"POST": status},
    )


def _act_on_floor_request(act: str) -> Object:
    return Object(
        lambda world: f"/settings/floor/{world.floor_request_id}/{act}",
        is_read=False,
        role=Role.ADMIN,
        answers=ACTION,
    )


def _act_on_provider(route: str) -> Object:
    return Object(
        lambda world: f"/settings/{route % world.provider_id}",
        is_read=False,
        role=Role.ADMIN,
        answers=ACTION,
    )


def _act_on_provider_by_api(act: str) -> Object:
    return Object(
        lambda world: f"/api/v1/identity-providers/{world.provider_id}/{act}",
        Scope.ADMIN,
        is_read=False,
        answers=SENT,
    )


def _act_on_stream(
    act: str, *, role: Role = Role.ADMIN, answers: Mapping[str, int] = ACTION
) -> Object:
    return Object(
        lambda world: f"/settings/streams/{world.stream_id}/{act}",
        is_read=False,
        role=role,
        answers=answers,
    )


def _act_on_stream_by_api(act: str, answers: Mapping[str, int] = SENT) -> Object:
    return Object(
        lambda world: f"/api/v1/streams/{world.stream_id}/{act}",
        Scope.ADMIN,
        is_read=False,
        answers=answers,
    )


def _scim(path: str, **answers: int) -> Object:
    """A route of SCIM; the documents about the service itself show nothing of a tenant."""
    return Object(
        lambda world: f"/scim/v2/{world.provider_id}{path}" % vars(world),
        Scope.SCIM,
        is_read=answers.get("GET") == 200 and ("Users" in path or "Groups" in path),
        answers=answers,
    )


_SCIM = "scim/v2/<uuid:provider_id>"

ROUTES: dict[str, Visit] = {
    # pages of audit
    "": Listing("/"),
    "traces/": Listing("/traces/"),
    "traces/<text:trace_id>": Object(lambda world: f"/traces/{world.canary}"),
    "traces/<text:trace_id>/graph": Object(lambda world: f"/traces/{world.canary}/graph"),
    "traces/<text:trace_id>/text": Object(lambda world: f"/traces/{world.canary}/text"),
    "traces/<text:trace_id>/compare": Object(
        lambda world: f"/traces/{world.canary}/compare?with={world.canary}"
    ),
    "calls/": Listing("/calls/"),
    "calls/complete": Listing("/calls/complete?q=error:"),
    "calls/count": Listing("/calls/count", shows_canary=False),
    "calls/export.<slug:kind>": Listing("/calls/export.ndjson"),
    "calls/open": Listing("/calls/open?kind=running", shows_canary=True),
    "calls/search": Listing(
        "/calls/search",
        shows_canary=False,
        data=lambda world: {"text": "a stranger's"},
        needs_payloads=True,
        answers=ACTION,
    ),
    "calls/search/<uuid:pk>": Object(
        lambda world: f"/calls/search/{world.search_id}", needs_payloads=True
    ),
    "calls/search/<uuid:pk>/cancel": Object(
        lambda world: f"/calls/search/{world.search_id}/cancel",
        is_read=False,
        needs_payloads=True,
        answers=ACTION,
    ),
    # Without `since` the tail begins two minutes ago; the world may be older.
    "calls/tail": Listing(
        f"/calls/tail?since={datetime.now(UTC) - timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}"
    ),
    "views/": Listing(
        "/views/",
        shows_canary=False,
        data=lambda world: {"q": "tool:a", "name": "mine"},
        answers=ACTION,
    ),
    "views/columns": Listing(
        "/views/columns",
        shows_canary=False,
        data=lambda world: {"page": "calls", "column": ["trace"]},
        answers=ACTION,
    ),
    "views/<uuid:pk>/change": Object(
        lambda world: f"/views/{world.view_id}/change", is_read=False, answers=ACTION
    ),
    "views/<uuid:pk>/default": Object(
        lambda world: f"/views/{world.view_id}/default", is_read=False, answers=ACTION
    ),
    "views/<uuid:pk>/delete": Object(
        lambda world: f"/views/{world.view_id}/delete", is_read=False, answers=ACTION
    ),
    "calls/<day:started_on>/<uuid:invocation_id>": Object(lambda world: _call(world)),
    "calls/<day:started_on>/<uuid:invocation_id>/handoff": Object(
        lambda world: f"{_call(world)}/handoff"
    ),
    "calls/handoff": Listing("/calls/handoff?q=since:2020-01-01"),
    "calls/<day:started_on>/<uuid:invocation_id>/<slug:kind>": Object(
        lambda world: _call(world) + "/start", needs_payloads=True, needs_reveal=True
    ),
    "calls/<day:started_on>/<uuid:invocation_id>/reveal": Object(
        lambda world: _call(world) + "/reveal", is_read=False, role=Role.AUDITOR, answers=ACTION
    ),
    "mcp": Listing(
        "/mcp",
        Scope.READ,
        shows_canary=False,
        data=lambda world: {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "get_trace", "arguments": {"trace_id": world.canary}},
        },
        answers=SENT,
    ),
    # With access tokens: tests/isolation/test_access_tokens.py.
    "mcp/<slug:slug>": Open("/mcp/acme", "knows no sessions and no keys", {"POST": 404}),
    ".well-known/oauth-protected-resource/mcp/<slug:slug>": Open(
        "/.well-known/oauth-protected-resource/mcp/acme",
        "what a client reads before it has a token",
        {"GET": 404},
    ),
    "definitions/": Listing("/definitions/"),
    "definitions/approve": Listing(
        "/definitions/approve",
        shows_canary=False,
        data=lambda world: {"definition": str(world.definition_id), "reason": "x", "server": "x"},
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "definitions/<uuid:pk>": Object(lambda world: f"/definitions/{world.definition_id}"),
    "definitions/<uuid:pk>/approve": Object(
        lambda world: f"/definitions/{world.definition_id}/approve",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "definitions/<uuid:pk>/withdraw": Object(
        lambda world: f"/definitions/{world.definition_id}/withdraw",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "approvals/": Listing("/approvals/"),
    "approvals/export.<slug:kind>": Listing("/approvals/export.ndjson"),
    "alerts/": Listing("/alerts/"),
    "alerts/<uuid:pk>": Object(lambda world: f"/alerts/{world.alert_id}"),
    "alerts/<uuid:pk>/acknowledge": Object(
        lambda world: f"/alerts/{world.alert_id}/acknowledge",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "alerts/<uuid:pk>/resolve": Object(
        lambda world: f"/alerts/{world.alert_id}/resolve",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "alerts/maintenance/": Listing("/alerts/maintenance/"),
    "alerts/maintenance/new": Listing(
        "/alerts/maintenance/new",
        shows_canary=False,
        data=lambda world: {"name": "a stranger's"},
        role=Role.EDITOR,
        answers={"POST": 422},
    ),
    "alerts/maintenance/<uuid:pk>/delete": Object(
        lambda world: f"/alerts/maintenance/{world.window_id}/delete",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "s/<str:token>": Open(
        "/s/nothing",
        "the signature in a link says what may be seen: tests/audit/pages/sharing",
        answers={"GET": 404},
    ),
    "share/": Listing("/share/"),
    "share/new": Listing(
        "/share/new?address=/latency/",
        shows_canary=False,
        data=lambda world: {"address": f"/reports/{world.report_id}", "days": 7},
        role=Role.EDITOR,
        answers={"GET": 200, "POST": 200},
        of_others={"POST": 404},
    ),
    "share/<uuid:pk>/payloads": Object(
        lambda world: f"/share/{world.link_id}/payloads",
        is_read=False,
        role=Role.AUDITOR,
        answers=ACTION,
    ),
    "share/<uuid:pk>/revoke": Object(
        lambda world: f"/share/{world.link_id}/revoke",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "boards/": Listing("/boards/"),
    "boards/new": Listing(
        "/boards/new",
        shows_canary=False,
        data=lambda world: {"name": f"of {secrets.token_hex(4)}", "range": "24h"},
        answers=ACTION,
    ),
    "boards/<uuid:pk>": Object(lambda world: f"/boards/{world.board_id}"),
    "boards/<uuid:pk>/edit": Object(
        lambda world: f"/boards/{world.board_id}/edit",
        role=Role.EDITOR,
        answers={"GET": 200, "POST": 422},  # without a name
    ),
    "boards/<uuid:pk>/delete": Object(
        lambda world: f"/boards/{world.board_id}/delete",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "charts/calls": Listing("/charts/calls", shows_canary=False),
    "charts/traces": Listing("/charts/traces", shows_canary=False),
    "notes/": Listing("/notes/"),
    "notes/new": Listing(
        "/notes/new?about=version&tool_name=search&tool_version=4",
        shows_canary=False,
        data=lambda world: {
            "about": "call",
            "invocation_id": str(world.call_id),
            "label": "seen",
            "state": "open",
        },
        role=Role.EDITOR,
        answers={"GET": 200, "POST": 302},
        of_others={"POST": 404},
    ),
    "notes/<uuid:pk>": Object(lambda world: f"/notes/{world.note_id}"),
    "notes/<uuid:pk>/change": Object(
        lambda world: f"/notes/{world.note_id}/change",
        is_read=False,
        role=Role.EDITOR,
        answers={"POST": 422},  # without a state
    ),
    "notes/<uuid:pk>/delete": Object(
        lambda world: f"/notes/{world.note_id}/delete",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "alerts/rules/": Listing("/alerts/rules/"),
    "alerts/rules/new": Listing(
        "/alerts/rules/new",
        shows_canary=False,
        data=lambda world: {"name": "a stranger's"},
        role=Role.EDITOR,
        answers={"GET": 200, "POST": 422},
    ),
    "alerts/rules/event": Listing(
        "/alerts/rules/event",
        shows_canary=False,
        data=lambda world: {"name": "a stranger's"},
        role=Role.EDITOR,
        answers={"GET": 200, "POST": 422},
    ),
    "alerts/rules/starter": Listing(
        "/alerts/rules/starter", shows_canary=False, role=Role.EDITOR, answers=ACTION
    ),
    "alerts/rules/<uuid:pk>": Object(
        lambda world: f"/alerts/rules/{world.rule_id}",
        role=Role.EDITOR,
        answers={"GET": 200, "POST": 422},
    ),
    "alerts/trials/<uuid:pk>": Object(
        lambda world: f"/alerts/trials/{world.trial_id}", role=Role.EDITOR
    ),
    "alerts/trials/<uuid:pk>/cancel": Object(
        lambda world: f"/alerts/trials/{world.trial_id}/cancel",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "alerts/rules/<uuid:pk>/delete": Object(
        lambda world: f"/alerts/rules/{world.rule_id}/delete",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "alerts/rules/<uuid:pk>/mute": Object(
        lambda world: f"/alerts/rules/{world.rule_id}/mute",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    # Only dimensions that differ are shown, and the world has one call.
    "apart/": Listing("/apart/?q=state:failed&range=24h", shows_canary=False),
    "apart/arguments": Listing(
        "/apart/arguments",
        shows_canary=False,
        role=Role.EDITOR,
        data=lambda world: {"q": "state:failed tool:x", "range": "24h"},
        answers=ACTION,
    ),
    "apart/arguments/<uuid:pk>": Object(
        lambda world: f"/apart/arguments/{world.comparison_id}", role=Role.EDITOR
    ),
    "apart/arguments/<uuid:pk>/cancel": Object(
        lambda world: f"/apart/arguments/{world.comparison_id}/cancel",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "compare/": Listing("/compare/?a=state:ok&b=state:failed&range=24h", shows_canary=False),
    "violations/": Listing("/violations/"),
    "violations/export.<slug:kind>": Listing("/violations/export.ndjson"),
    "agents/": Listing("/agents/"),
    "go/": Listing("/go/"),
    "costs/": Listing("/costs/"),
    "costs/export.<slug:kind>": Listing("/costs/export.ndjson"),
    "conversations/": Listing("/conversations/"),
    "conversations/<text:run_id>": Object(lambda world: f"/conversations/{world.canary}"),
    "latency/": Listing("/latency/"),
    "latency/newest": Listing("/latency/newest"),
    "latency/export.<slug:kind>": Listing("/latency/export.ndjson"),
    "repeats/": Listing("/repeats/"),
    "repeats/results": Listing("/repeats/results", shows_canary=False),
    "repeats/export.<slug:kind>": Listing("/repeats/export.ndjson", shows_canary=False),
    "repeats/polling": Listing(
        "/repeats/polling",
        shows_canary=False,
        data=lambda world: {"tool": "a stranger's"},
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "repeats/polling/remove": Listing(
        "/repeats/polling/remove",
        shows_canary=False,
        data=lambda world: {"tool": world.canary},
        role=Role.EDITOR,
        answers=ACTION,
        of_others={"POST": 404},
    ),
    "reports/": Listing("/reports/"),
    # Viewers can read reports and not make them.
    "reports/create": Listing(
        "/reports/create",
        shows_canary=False,
        data=lambda world: {"kind": "day", "day": f"{world.at:%Y-%m-%d}"},
        needs_payloads=True,
        answers=ACTION,
    ),
    "reports/schedule": Listing(
        "/reports/schedule",
        shows_canary=False,
        data=lambda world: {"kinds": "week", "time_zone": "UTC", "keep_days": "90"},
        role=Role.ADMIN,
        answers=ACTION,
    ),
    "reports/<uuid:pk>": Object(lambda world: f"/reports/{world.report_id}"),
    "reports/<uuid:pk>/clauses": Object(
        lambda world: f"/reports/{world.report_id}/clauses", role=Role.AUDITOR
    ),
    "reports/<uuid:pk>/clauses.<slug:kind>": Object(
        lambda world: f"/reports/{world.report_id}/clauses.json", role=Role.AUDITOR
    ),
    "reports/<uuid:pk>/again": Object(
        lambda world: f"/reports/{world.report_id}/again",
        is_read=False,
        needs_payloads=True,
        answers=ACTION,
    ),
    "reports/<uuid:pk>/export.<slug:kind>": Object(
        lambda world: f"/reports/{world.report_id}/export.json"
    ),
    "ledger/": Listing("/ledger/"),
    "ledger/check": Listing(
        "/ledger/check", shows_canary=False, needs_payloads=True, answers=ACTION
    ),
    "ledger/check/<uuid:pk>": Object(lambda world: f"/ledger/check/{world.check_id}"),
    "ledger/check/<uuid:pk>/cancel": Object(
        lambda world: f"/ledger/check/{world.check_id}/cancel",
        is_read=False,
        needs_payloads=True,
        answers=ACTION,
    ),
    # Each tenant counts its own entries: the visitor sees their own entry of the same number.
    "ledger/checkpoints/<int:epoch>/<int:size>": Listing("/ledger/checkpoints/0/2"),
    "ledger/consistency": Listing("/ledger/consistency?old=2"),
    "ledger/entries/<int:index>": Listing("/ledger/entries/1"),
    "ledger/entries/<int:index>.tlog-proof": Listing("/ledger/entries/1.tlog-proof"),
    "ledger/entries/<int:index>.cose": Listing("/ledger/entries/1.cose"),
    "ledger/keys": Listing("/ledger/keys", shows_canary=False),
    "ledger/keys.jwks": Listing("/ledger/keys.jwks", shows_canary=False),
    "actions/": Listing("/actions/", role=Role.AUDITOR),
    "actions/export.<slug:kind>": Listing("/actions/export.ndjson", role=Role.AUDITOR),
    "evidence/": Listing("/evidence/", role=Role.AUDITOR),
    # A zip is compressed, so the canary cannot be found in its bytes.
    "evidence/bundle.zip": Listing(
        "/evidence/bundle.zip?range=24h", shows_canary=False, role=Role.AUDITOR
    ),
    "first-steps/": Listing("/first-steps/"),
    "first-steps/key": Listing(
        "/first-steps/key",
        shows_canary=False,
        role=Role.ADMIN,
        answers=MappingProxyType({"GET": 302, "POST": 200}),
    ),
    "skipped/": Listing("/skipped/"),
    "inbox/": Listing("/inbox/?state=all"),
    "inbox/discard": Listing(
        "/inbox/discard",
        shows_canary=False,
        data=lambda world: {
            "code": world.canary,
            "until": world.refused_id,
            "reason": "a stranger's",
        },
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "inbox/export.<slug:kind>": Listing("/inbox/export.ndjson?state=all", role=Role.AUDITOR),
    "inbox/<uuid:pk>": Object(lambda world: f"/inbox/{world.refused_id}"),
    "inbox/<uuid:pk>/reveal": Object(
        lambda world: f"/inbox/{world.refused_id}/reveal",
        is_read=False,
        role=Role.AUDITOR,
        answers=ACTION,
    ),
    "inbox/<uuid:pk>/send": Object(
        lambda world: f"/inbox/{world.refused_id}/send",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "inbox/<uuid:pk>/discard": Object(
        lambda world: f"/inbox/{world.refused_id}/discard",
        is_read=False,
        role=Role.EDITOR,
        answers=SENT,
    ),
    "tools/<uuid:pk>/draft/review": Object(lambda world: _tool(world) + "/draft/review"),
    # Without a revision nothing is published, and the form shows the error.
    "tools/<uuid:pk>/draft/publish": Object(
        lambda world: _tool(world) + "/draft/publish",
        is_read=False,
        role=Role.EDITOR,
        answers={"POST": 422},
    ),
    "tools/<uuid:pk>/regression-set": Object(lambda world: _tool(world) + "/regression-set"),
    "tools/<uuid:pk>/regression-set/make": Object(
        lambda world: _tool(world) + "/regression-set/make",
        is_read=False,
        role=Role.EDITOR,
        needs_payloads=True,
        answers={"POST": 422},  # without a label
    ),
    "tools/<uuid:pk>/regression-set/remove": Object(
        lambda world: _tool(world) + "/regression-set/remove",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "tools/<uuid:pk>/replays": Object(
        lambda world: _tool(world) + "/replays", is_read=False, role=Role.EDITOR, answers=ACTION
    ),
    "tools/<uuid:pk>/replays/<uuid:replay_id>": Object(
        lambda world: f"{_tool(world)}/replays/{world.replay_id}"
    ),
    "tools/<uuid:pk>/replays/<uuid:replay_id>/cancel": Object(
        lambda world: f"{_tool(world)}/replays/{world.replay_id}/cancel",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "tools/<uuid:pk>/drift": Object(lambda world: _tool(world) + "/drift"),
    "tools/<uuid:pk>/drift/analyze": Object(
        lambda world: _tool(world) + "/drift/analyze",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "tools/<uuid:pk>/drift/analyses/<uuid:analysis_id>/cancel": Object(
        lambda world: f"{_tool(world)}/drift/analyses/{world.analysis_id}/cancel",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "tools/<uuid:pk>/drift/draft": Object(
        lambda world: _tool(world) + "/drift/draft", is_read=False, role=Role.EDITOR, answers=ACTION
    ),
    "tools/<uuid:pk>/effect": Object(lambda world: _tool(world) + "/effect"),
    "tools/<uuid:pk>/overview": Object(lambda world: _tool(world) + "/overview"),
    # pages of the registry
    "tools/": Listing("/tools/"),
    "tools/find": Object(
        lambda world: f"/tools/find?name={quote(world.canary)}", is_read=False, answers={"GET": 302}
    ),
    "tools/export.json": Listing("/tools/export.json"),
    "tools/import": Listing(
        "/tools/import",
        role=Role.EDITOR,
        answers={"GET": 200, "POST": 422},
    ),
    "tools/import/<uuid:pk>": Object(
        lambda world: f"/tools/import/{world.import_id}", role=Role.EDITOR
    ),
    # Without the digest of the preview nothing is imported, and the page shows the preview.
    "tools/import/<uuid:pk>/confirm": Object(
        lambda world: f"/tools/import/{world.import_id}/confirm",
        is_read=False,
        role=Role.EDITOR,
        answers={"POST": 409},
    ),
    "tools/import/<uuid:pk>/preview": Object(
        lambda world: f"/tools/import/{world.import_id}/preview",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "tools/import/<uuid:pk>/cancel": Object(
        lambda world: f"/tools/import/{world.import_id}/cancel",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "tools/import/<uuid:pk>/discard": Object(
        lambda world: f"/tools/import/{world.import_id}/discard",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "tools/definitions": Listing("/tools/definitions"),
    "tools/definitions/<slug:provider>.json": Listing("/tools/definitions/mcp.json"),
    "tools/<uuid:pk>/definitions": Object(lambda world: _tool(world) + "/definitions"),
    "tools/<uuid:pk>/definitions/<slug:provider>.json": Object(
        lambda world: _tool(world) + "/definitions/openai.json"
    ),
    "tools/create": Listing(
        "/tools/create",
        shows_canary=False,
        data=lambda world: {"name": "a stranger's"},
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "tools/<uuid:pk>/diff": Object(lambda world: f"/tools/{world.tool_id}/diff?from=1&to=draft"),
    "tools/<uuid:pk>/arrivals": Object(
        lambda world: f"/tools/{world.tool_id}/arrivals",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "tools/<uuid:pk>/describe": Object(
        lambda world: f"/tools/{world.tool_id}/describe",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "tools/<uuid:pk>/<int:number>/<slug:action>": Object(
        lambda world: f"/tools/{world.tool_id}/1/deprecate",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    "tools/<uuid:pk>": Object(lambda world: f"/tools/{world.tool_id}"),
    "tools/<uuid:pk>/<int:number>": Object(lambda world: f"/tools/{world.tool_id}/1"),
    "tools/<uuid:pk>/draft": Object(
        lambda world: _tool(world) + "/draft", role=Role.EDITOR, answers=FORM
    ),
    "tools/<uuid:pk>/draft/begin": Object(
        lambda world: _tool(world) + "/draft/begin", is_read=False, role=Role.EDITOR, answers=ACTION
    ),
    "tools/<uuid:pk>/draft/check": Object(
        lambda world: _tool(world) + "/draft/check", is_read=False, role=Role.EDITOR, answers=SENT
    ),
    "tools/<uuid:pk>/draft/discard": Object(
        lambda world: _tool(world) + "/draft/discard",
        is_read=False,
        role=Role.EDITOR,
        answers=ACTION,
    ),
    # sign-in and settings
    "login": Open("/login", "signing in", answers=FORM, signed_in={"GET": 302, "POST": 302}),
    "login/code": Open("/login/code", "signing in", answers={"GET": 302, "POST": 302}),
    "login/passkey": Open("/login/passkey", "signing in", answers={"GET": 302, "POST": 302}),
    "sign-in/<slug:slug>": Open("/sign-in/nowhere", "signing in", answers=FORM),
    "sign-in/with/<uuid:tenant_id>/<uuid:pk>": Open(
        f"/sign-in/with/{uuid.UUID(int=0)}/{uuid.UUID(int=0)}",
        "signing in with a provider (tests/tenants/identity)",
        answers={"POST": 404},
    ),
    "sign-in/with/<uuid:tenant_id>/<uuid:pk>/callback": Open(
        f"/sign-in/with/{uuid.UUID(int=0)}/{uuid.UUID(int=0)}/callback",
        "coming back from a provider (tests/tenants/identity)",
        answers={"GET": 404},
    ),
    "sign-in/with/<uuid:tenant_id>/<uuid:pk>/acs": Open(
        f"/sign-in/with/{uuid.UUID(int=0)}/{uuid.UUID(int=0)}/acs",
        "coming back from a SAML provider (tests/tenants/identity/saml)",
        answers={"POST": 404},
    ),
    "sign-in/with/<uuid:tenant_id>/<uuid:pk>/metadata": Open(
        f"/sign-in/with/{uuid.UUID(int=0)}/{uuid.UUID(int=0)}/metadata",
        "this server's metadata for a SAML provider",
        answers={"GET": 404},
    ),
    "sign-in/with/<uuid:pk>": Open(
        f"/sign-in/with/{uuid.UUID(int=0)}",
        "signing in with a provider of the installation (tests/tenants/identity)",
        answers={"POST": 404},
    ),
    "sign-in/with/<uuid:pk>/callback": Open(
        f"/sign-in/with/{uuid.UUID(int=0)}/callback",
        "coming back from a provider of the installation (tests/tenants/identity)",
        answers={"GET": 404},
    ),
    "sign-in/with/<uuid:pk>/acs": Open(
        f"/sign-in/with/{uuid.UUID(int=0)}/acs",
        "coming back from a SAML provider of the installation (tests/tenants/identity)",
        answers={"POST": 404},
    ),
    "sign-in/with/<uuid:pk>/metadata": Open(
        f"/sign-in/with/{uuid.UUID(int=0)}/metadata",
        "this server's metadata for a SAML provider of the installation",
        answers={"GET": 404},
    ),
    # SCIM
    f"{_SCIM}/": _scim("/", GET=404),
    f"{_SCIM}/<path:rest>": _scim("/Nothing", GET=404),
    f"{_SCIM}/ServiceProviderConfig": _scim("/ServiceProviderConfig", GET=200),
    f"{_SCIM}/ResourceTypes": _scim("/ResourceTypes", GET=200),
    f"{_SCIM}/ResourceTypes/<str:name>": _scim("/ResourceTypes/User", GET=200),
    f"{_SCIM}/Schemas": _scim("/Schemas", GET=200),
    f"{_SCIM}/Schemas/<str:name>": _scim(
        "/Schemas/urn:ietf:params:scim:schemas:core:2.0:User", GET=200
    ),
    f"{_SCIM}/Users": _scim("/Users", GET=200, POST=400),
    f"{_SCIM}/Users/<uuid:pk>": _scim(
        "/Users/%(directory_user_id)s", GET=200, PUT=400, PATCH=400, DELETE=204
    ),
    f"{_SCIM}/.search": _scim("/.search", POST=400),
    f"{_SCIM}/Users/.search": _scim("/Users/.search", POST=400),
    f"{_SCIM}/Groups/.search": _scim("/Groups/.search", POST=400),
    f"{_SCIM}/Groups": _scim("/Groups", GET=200, POST=400),
    f"{_SCIM}/Groups/<uuid:pk>": _scim(
        "/Groups/%(directory_group_id)s", GET=200, PUT=400, PATCH=400, DELETE=204
    ),
    "password/forgotten": Open(
        "/password/forgotten", "asking for a link (tests/tenants/passwords)", answers=FORM
    ),
    "password/new/<str:uidb64>/<str:token>": Open(
        "/password/new/nobody/nothing",
        "a new password for who has the link (tests/tenants/passwords)",
        answers=FORM,
    ),
    "logout": Open("/logout", "signing out", answers=ACTION),
    "invitations/<str:token>": Open(
        f"/invitations/{'0' * 32}_{'0' * 32}_{'x' * 43}",
        "joining a tenant: to who has the link (tests/tenants/test_invitations.py)",
        answers={"GET": 404, "POST": 404},
    ),
    "switch-tenant": Object(lambda world: "/switch-tenant", is_read=False, answers=ACTION),
    "settings/keys": Listing("/settings/keys", role=Role.ADMIN, answers=FORM),
    "settings/keys/<uuid:pk>/revoke": Object(
        lambda world: f"/settings/keys/{world.api_key.pk}/revoke",
        is_read=False,
        role=Role.ADMIN,
        answers=ACTION,
    ),
    "settings/keys/<uuid:pk>/rotate": Object(
        lambda world: f"/settings/keys/{world.api_key.pk}/rotate",
        is_read=False,
        role=Role.ADMIN,
        answers=ACTION,
    ),
    "settings/members": Listing(
        "/settings/members",
        data=lambda world: {"label": "", "role": "admin"},
        role=Role.ADMIN,
        answers=FORM,
    ),
    "settings/service-accounts": Listing(
        "/settings/service-accounts",
        data=lambda world: {"name": ""},
        role=Role.ADMIN,
        answers=FORM,
    ),
    **{
        f"settings/service-accounts/<uuid:pk>/{act}": _act_on_service_account(act)
        for act in ("disable", "enable", "delete")
    },
    "settings/members/<uuid:pk>/role": Object(
        lambda world: f"/settings/members/{world.membership.pk}/role",
        is_read=False,
        role=Role.ADMIN,
        answers=ACTION,
    ),
    "settings/members/<uuid:pk>/remove": Object(
        lambda world: f"/settings/members/{world.membership.pk}/remove",
        is_read=False,
        role=Role.ADMIN,
        answers=ACTION,
    ),
    "settings/members/invitations/<uuid:pk>/revoke": Object(
        lambda world: f"/settings/members/invitations/{world.invitation_id}/revoke",
        is_read=False,
        role=Role.ADMIN,
        answers=ACTION,
    ),
    "settings/tenant": Listing("/settings/tenant", role=Role.ADMIN, answers=FORM),
    "settings/redaction": Listing(
        "/settings/redaction",
        data=lambda world: {"names": "", "patterns": "("},
        role=Role.ADMIN,
        answers=FORM,
    ),
    "settings/witnesses": Listing(
        "/settings/witnesses",
        data=lambda world: {"witnesses": "no key", "needed": "1"},
        role=Role.ADMIN,
        answers=FORM,
    ),
    "samples/": Listing(
        "/samples/",
        role=Role.AUDITOR,
        data=lambda world: {"name": "mine", "size": "1"},
        answers={"GET": 200, "POST": 302},
    ),
    "samples/<uuid:pk>": Object(lambda world: f"/samples/{world.sample_id}", role=Role.AUDITOR),
    "samples/<uuid:pk>/cancel": _act_on_sample("cancel", 302),
    "samples/<uuid:pk>/witness": _act_on_sample("witness", 302),
    "samples/<uuid:pk>/draw": _act_on_sample("draw", 422),  # it is drawn
    "samples/<uuid:pk>/calls/<int:position>": _act_on_sample("calls/1", 422),  # nothing concluded
    "samples/<uuid:pk>/sign": _act_on_sample("sign", 302),
    "samples/<uuid:pk>/return": _act_on_sample("return", 422),  # without a reason
    "samples/<uuid:pk>/evidence.zip": Object(
        lambda world: f"/samples/{world.sample_id}/evidence.zip",
        is_read=False,
        role=Role.AUDITOR,
        answers={"GET": 302},  # its actions are not signed
    ),
    "incidents/": Listing(
        "/incidents/",
        role=Role.AUDITOR,
        data=lambda world: {"title": "mine", "reason": "mine", "q": "tool:not-called"},
        answers={"GET": 200, "POST": 422},  # no call matches
    ),
    "incidents/<uuid:pk>": Object(
        lambda world: f"/incidents/{world.incident_id}", role=Role.AUDITOR
    ),
    "incidents/<uuid:pk>/evidence.zip": Object(
        lambda world: f"/incidents/{world.incident_id}/evidence.zip",
        is_read=False,
        role=Role.AUDITOR,
        answers={"GET": 302},  # its entry is not signed
    ),
    "settings/erasures": Listing("/settings/erasures", role=Role.AUDITOR),
    "settings/erasures/start": Listing(
        "/settings/erasures/start",
        shows_canary=False,
        data=lambda world: {"q": "tool:a"},
        role=Role.ADMIN,
        answers=ACTION,
    ),
    "settings/erasures/<uuid:pk>": Object(
        lambda world: f"/settings/erasures/{world.erasure_id}", role=Role.AUDITOR
    ),
    "settings/erasures/<uuid:pk>/confirm": Object(
        lambda world: f"/settings/erasures/{world.erasure_id}/confirm",
        is_read=False,
        role=Role.ADMIN,
        answers=ACTION,
    ),
    "settings/erasures/<uuid:pk>/cancel": Object(
        lambda world: f"/settings/erasures/{world.erasure_id}/cancel",
        is_read=False,
        role=Role.ADMIN,
        answers=ACTION,
    ),
    "settings/prices": Listing("/settings/prices", role=Role.ADMIN),
    "settings/prices/new": Listing("/settings/prices/new", role=Role.ADMIN, answers=FORM),
    "settings/prices/<day:holds_from>": Object(
        lambda world: f"/settings/prices/{world.price_day}", role=Role.ADMIN, answers=FORM
    ),
    "settings/prices/<day:holds_from>/delete": Object(
        lambda world: f"/settings/prices/{world.price_day}/delete",
        is_read=False,
        role=Role.ADMIN,
        answers=ACTION,
    ),
    "settings/streams": Listing("/settings/streams", role=Role.AUDITOR),
    "settings/streams/new/<slug:way>": Listing(
        "/settings/streams/new/https", shows_canary=False, role=Role.ADMIN, answers=FORM
    ),
    "settings/streams/<uuid:pk>": Object(
        lambda world: f"/settings/streams/{world.stream_id}", role=Role.AUDITOR
    ),
    "settings/streams/<uuid:pk>/change": _act_on_stream("change", answers=SENT),
    "settings/streams/<uuid:pk>/test": _act_on_stream("test"),
    "settings/streams/<uuid:pk>/pause": _act_on_stream("pause"),
    "settings/streams/<uuid:pk>/resume": _act_on_stream("resume"),
    "settings/streams/<uuid:pk>/replay": _act_on_stream("replay"),
    "settings/streams/<uuid:pk>/payloads": _act_on_stream("payloads", role=Role.AUDITOR),
    "settings/streams/<uuid:pk>/no-payloads": _act_on_stream("no-payloads", role=Role.AUDITOR),
    "settings/streams/<uuid:pk>/delete": _act_on_stream("delete"),
    "schemas/<slug:name>.json": Open(
        "/schemas/stream-ocsf-1.json", "a published schema, the same for everybody"
    ),
    "settings/channels": Listing("/settings/channels", role=Role.ADMIN),
    "settings/channels/new/<slug:kind>": Listing(
        "/settings/channels/new/webhook", shows_canary=False, role=Role.ADMIN, answers=FORM
    ),
    "settings/channels/<uuid:pk>": Object(
        lambda world: f"/settings/channels/{world.channel_id}", role=Role.ADMIN, answers=FORM
    ),
    "settings/channels/<uuid:pk>/test": Object(
        lambda world: f"/settings/channels/{world.channel_id}/test",
        is_read=False,
        role=Role.ADMIN,
        answers=ACTION,
    ),
    "settings/channels/<uuid:pk>/delete": Object(
        lambda world: f"/settings/channels/{world.channel_id}/delete",
        is_read=False,
        role=Role.ADMIN,
        answers=ACTION,
    ),
    "settings/floor": Listing("/settings/floor", role=Role.AUDITOR),
    "settings/floor/raise": Listing(
        "/settings/floor/raise", role=Role.ADMIN, answers={"POST": 422}, shows_canary=False
    ),
    "settings/floor/request": Listing(
        "/settings/floor/request", role=Role.ADMIN, answers={"POST": 422}, shows_canary=False
    ),
    "settings/floor/<uuid:pk>/approve": _act_on_floor_request("approve"),
    "settings/floor/<uuid:pk>/refuse": _act_on_floor_request("refuse"),
    "settings/holds": Listing(
        "/settings/holds",
        data=lambda world: {"name": "", "reason": ""},
        role=Role.AUDITOR,
        answers=FORM,
    ),
    "settings/holds/<uuid:pk>/release": Object(
        lambda world: f"/settings/holds/{world.hold_id}/release",
        is_read=False,
        role=Role.AUDITOR,
        answers=ACTION,
    ),
    "settings/preferences": Listing(
        "/settings/preferences", data=lambda world: {"time_zone": "No/Where"}, answers=FORM
    ),
    "settings/password": Listing("/settings/password", needs_tenant=False, answers=FORM),
    "settings/sign-in": Listing(
        "/settings/sign-in",
        data=lambda world: {"session_max_hours": 0},
        role=Role.ADMIN,
        answers=FORM,
    ),
    "settings/sign-in/sso-only": Listing(
        "/settings/sign-in/sso-only",
        shows_canary=False,
        data=lambda world: {"break_glass": "nobody"},
        role=Role.ADMIN,
        answers=ACTION,
    ),
    "settings/sign-in/providers/new": Listing(
        "/settings/sign-in/providers/new", shows_canary=False, role=Role.ADMIN, answers=FORM
    ),
    "settings/sign-in/providers/<uuid:pk>": Object(
        lambda world: f"/settings/sign-in/providers/{world.provider_id}",
        role=Role.ADMIN,
        answers=FORM,
    ),
    **{
        f"settings/sign-in/providers/<uuid:pk>/{act}": _act_on_provider(
            f"sign-in/providers/%s/{act}"
        )
        for act in ("disable", "enable")
    },
    **{
        f"settings/security/providers/<uuid:pk>/{act}": replace(
            _act_on_provider(f"security/providers/%s/{act}"), role=Role.VIEWER
        )
        for act in ("connect", "disconnect")
    },
    # Of an account, outside any tenant: what they show is in tests/tenants/accounts.
    "settings/security": Listing(
        "/settings/security",
        needs_tenant=False,
        shows_canary=False,
        answers={"GET": 200, "POST": 302},
    ),
    # Without a confirmation, or without what there is to confirm, they lead there.
    **{
        f"settings/security{route}": Listing(
            f"/settings/security{route}",
            needs_tenant=False,
            shows_canary=False,
            answers={"GET": 302, "POST": 302},
        )
        for route in (
            *("/app", "/codes/new", "/passkeys", "/passkeys/add", "/address"),
            *("/confirm/code", "/confirm/passkey"),
        )
    },
    **{
        f"settings/security{route}": Listing(
            f"/settings/security{route}",
            needs_tenant=False,
            shows_canary=False,
            answers=answers,
        )
        for route, answers in (
            ("/app/remove", {"GET": 404, "POST": 404}),
            ("/confirm/provider", {"GET": 404, "POST": 404}),
            ("/codes", {"GET": 404, "POST": 405}),
        )
    },
    "settings/security/address/<str:token>": Listing(
        "/settings/security/address/nothing",
        needs_tenant=False,
        shows_canary=False,
        answers={"GET": 404, "POST": 404},
    ),
    "settings/security/confirm": Listing(
        "/settings/security/confirm", needs_tenant=False, shows_canary=False, answers=FORM
    ),
    # A passkey belongs to an account, of whatever tenant (tests/tenants/accounts).
    **{
        f"settings/security/passkeys/<int:pk>/{act}": Listing(
            f"/settings/security/passkeys/1/{act}",
            needs_tenant=False,
            shows_canary=False,
            answers={"GET": 302, "POST": 302},
        )
        for act in ("rename", "remove")
    },
    "favicon.ico": Open("/favicon.ico", "leads to the icon", answers={"GET": 302}),
    "theme": Open("/theme", "light or dark, in a cookie", answers=ACTION),
    # Django's admin
    "admin/": Listing("/admin/", role=Role.EDITOR, answers=FORM),
    "admin/jsi18n/": Listing(
        "/admin/jsi18n/", shows_canary=False, role=Role.EDITOR, answers={"GET": 200, "POST": 405}
    ),
    r"admin/^(?P<app_label>tools_registry)/$": Listing(
        "/admin/tools_registry/", role=Role.EDITOR, answers=FORM
    ),
    "admin/tools_registry/tool/": Listing(
        "/admin/tools_registry/tool/", role=Role.EDITOR, answers=FORM
    ),
    "admin/tools_registry/tool/add/": Listing(
        "/admin/tools_registry/tool/add/", role=Role.EDITOR, answers=FORM
    ),
    "admin/tools_registry/tool/<path:object_id>/change/": Object(
        lambda world: f"/admin/tools_registry/tool/{world.tool_id}/change/",
        role=Role.EDITOR,
        answers=FORM,
    ),
    # the API
    "api/v1/": Open(
        "/api/v1/", "the API's name, for reversing its routes", answers=dict.fromkeys(WHATEVER, 404)
    ),
    "api/v1/openapi.json": Open("/api/v1/openapi.json", "the API's description"),
    "docs": Open("/docs", "leads to the documentation", answers={"GET": 302}),
    "docs/": Open("/docs/", "the documentation"),
    "docs/<path:path>": Open("/docs/glossary/", "the documentation"),
    "api/v1/docs": Open("/api/v1/docs", "the API's description as a page"),
    "api/v1/events": Listing(
        "/api/v1/events",
        Scope.INGEST,
        shows_canary=False,
        data=lambda world: make_event(world),
        content_type="application/x-ndjson",
        answers=SENT,
    ),
    "api/v1/apart": Listing("/api/v1/apart?q=state:failed", Scope.READ, shows_canary=False),
    "api/v1/apart/arguments": Listing(
        "/api/v1/apart/arguments",
        Scope.PAYLOADS,
        shows_canary=False,
        data=lambda world: {"q": "state:failed tool:x"},
        answers={"POST": 201},
    ),
    "api/v1/apart/arguments/<uuidstr:comparison_id>": Object(
        lambda world: f"/api/v1/apart/arguments/{world.comparison_id}", Scope.PAYLOADS
    ),
    "api/v1/compare/calls": Listing(
        "/api/v1/compare/calls?a=state:ok&b=state:failed", Scope.READ, shows_canary=False
    ),
    "api/v1/compare/traces": Object(
        lambda world: f"/api/v1/compare/traces?a={world.canary}&b={world.canary}", Scope.READ
    ),
    "api/v1/calls": Listing("/api/v1/calls", Scope.READ),
    "api/v1/calls/<uuidstr:invocation_id>": Object(
        lambda world: f"/api/v1/calls/{world.call_id}", Scope.READ
    ),
    "api/v1/calls/handoff": Listing("/api/v1/calls/handoff?q=since:2020-01-01", Scope.READ),
    "api/v1/calls/<uuidstr:invocation_id>/handoff": Object(
        lambda world: f"/api/v1/calls/{world.call_id}/handoff", Scope.READ
    ),
    "api/v1/open": Listing("/api/v1/open", Scope.READ, shows_canary=False),
    "api/v1/traces": Listing("/api/v1/traces", Scope.READ),
    "api/v1/traces/<path:trace_id>": Object(
        lambda world: f"/api/v1/traces/{world.canary}", Scope.READ
    ),
    "api/v1/approvals": Listing("/api/v1/approvals", Scope.READ),
    "api/v1/approvals/summary": Listing("/api/v1/approvals/summary", Scope.READ),
    "api/v1/violations": Listing("/api/v1/violations", Scope.READ),
    "api/v1/violations/rows": Listing("/api/v1/violations/rows", Scope.READ),
    "api/v1/agents": Listing("/api/v1/agents", Scope.READ),
    "api/v1/conversations": Listing("/api/v1/conversations", Scope.READ),
    "api/v1/latency": Listing("/api/v1/latency", Scope.READ),
    "api/v1/tokens": Listing("/api/v1/tokens", Scope.READ),
    "api/v1/repeats": Listing("/api/v1/repeats", Scope.READ),
    "api/v1/reports": Listing(
        "/api/v1/reports",
        Scope.READ,
        data=lambda world: {"kind": "day", "day": f"{world.at:%Y-%m-%d}"},
        answers={"GET": 200, "POST": 201},
    ),
    "api/v1/reports/<uuidstr:report_id>/clauses": Object(
        lambda world: f"/api/v1/reports/{world.report_id}/clauses", Scope.READ
    ),
    "api/v1/reports/<uuidstr:report_id>": Object(
        lambda world: f"/api/v1/reports/{world.report_id}", Scope.READ
    ),
    "api/v1/evidence": Listing("/api/v1/evidence", Scope.PAYLOADS, shows_canary=False),
    "api/v1/producers": Listing("/api/v1/producers", Scope.READ),
    "api/v1/ledger": Listing("/api/v1/ledger", Scope.READ),
    "api/v1/ledger/checkpoint": Listing("/api/v1/ledger/checkpoint", Scope.READ),
    "api/v1/ledger/checkpoints": Listing("/api/v1/ledger/checkpoints", Scope.READ),
    "api/v1/ledger/consistency": Listing("/api/v1/ledger/consistency?old=2", Scope.READ),
    "api/v1/ledger/entries/<int:index>.tlog-proof": Listing(
        "/api/v1/ledger/entries/1.tlog-proof", Scope.READ
    ),
    "api/v1/ledger/entries/<int:index>.cose": Listing("/api/v1/ledger/entries/1.cose", Scope.READ),
    "api/v1/ledger/inclusion": Listing("/api/v1/ledger/inclusion?index=1", Scope.READ),
    "api/v1/ledger/keys": Listing("/api/v1/ledger/keys", Scope.READ, shows_canary=False),
    "api/v1/ledger/keys.jwks": Listing("/api/v1/ledger/keys.jwks", Scope.READ, shows_canary=False),
    "api/v1/ledger/tile/<path:name>": Listing(
        "/api/v1/ledger/tile/0/000.p/2", Scope.READ, shows_canary=False
    ),
    "api/v1/actions": Listing("/api/v1/actions", Scope.READ),
    "api/v1/inbox": Listing("/api/v1/inbox?state=all", Scope.READ),
    "api/v1/inbox/<uuidstr:line_id>": Object(
        lambda world: f"/api/v1/inbox/{world.refused_id}", Scope.READ
    ),
    "api/v1/tools/<uuidstr:tool_id>": Object(
        lambda world: f"/api/v1/tools/{world.tool_id}", Scope.READ
    ),
    "api/v1/tools/<uuidstr:tool_id>/diff": Object(
        lambda world: f"/api/v1/tools/{world.tool_id}/diff?from=1&to=1",
        Scope.READ,
        is_read=False,
    ),
    "api/v1/tools/<uuidstr:tool_id>/drift": Object(
        lambda world: f"/api/v1/tools/{world.tool_id}/drift",
        Scope.READ,
        is_read=False,
        answers={"GET": 200, "POST": 400},
        scopes={"POST": Scope.REGISTRY},
    ),
    "api/v1/tools/<uuidstr:tool_id>/effect": Object(
        lambda world: f"/api/v1/tools/{world.tool_id}/effect?version=1", Scope.READ, is_read=False
    ),
    **{
        path.removeprefix("/"): Listing(
            path,
            Scope.INGEST,
            shows_canary=False,
            data=lambda world: make_trace(world),
            answers=SENT,
        )
        for path in (*TRACES.paths, LANGFUSE_PATH, *METRICS.paths)
    },
    **{
        path.removeprefix("/"): Listing(
            path,
            Scope.INGEST,
            shows_canary=False,
            data=lambda world: make_log(world),
            answers=SENT,
        )
        for path in LOGS.paths
    },
    # acts; POST to an object is without a body here: 400 if one is needed
    **{
        f"api/v1/{route}": Object(path, scope, is_read=False, answers=answers)
        for route, path, scope, answers in (
            (
                "calls/<uuidstr:invocation_id>/reveal",
                lambda world: f"/api/v1/calls/{world.call_id}/reveal",
                Scope.REVEAL,
                WITHOUT_BODY,
            ),
            (
                "inbox/<uuidstr:line_id>/reveal",
                lambda world: f"/api/v1/inbox/{world.refused_id}/reveal",
                Scope.REVEAL,
                WITHOUT_BODY,
            ),
            (
                "inbox/<uuidstr:line_id>/send",
                lambda world: f"/api/v1/inbox/{world.refused_id}/send",
                Scope.OPERATE,
                WITHOUT_BODY,
            ),
            (
                "inbox/<uuidstr:line_id>/discard",
                lambda world: f"/api/v1/inbox/{world.refused_id}/discard",
                Scope.OPERATE,
                WITHOUT_BODY,
            ),
            (
                "ledger/checks/<uuidstr:check_id>/cancel",
                lambda world: f"/api/v1/ledger/checks/{world.check_id}/cancel",
                Scope.OPERATE,
                SENT,
            ),
            (
                "alert-trials/<uuidstr:trial_id>/cancel",
                lambda world: f"/api/v1/alert-trials/{world.trial_id}/cancel",
                Scope.OPERATE,
                SENT,
            ),
            (
                "apart/arguments/<uuidstr:comparison_id>/cancel",
                lambda world: f"/api/v1/apart/arguments/{world.comparison_id}/cancel",
                Scope.PAYLOADS,
                SENT,
            ),
            (
                "searches/<uuidstr:search_id>/cancel",
                lambda world: f"/api/v1/searches/{world.search_id}/cancel",
                Scope.PAYLOADS,
                SENT,
            ),
            (
                "holds/<uuidstr:hold_id>/release",
                lambda world: f"/api/v1/holds/{world.hold_id}/release",
                Scope.HOLDS,
                WITHOUT_BODY,
            ),
            (
                "erasures/<uuidstr:erasure_id>/confirm",
                lambda world: f"/api/v1/erasures/{world.erasure_id}/confirm",
                Scope.ERASE,
                WITHOUT_BODY,
            ),
            (
                "erasures/<uuidstr:erasure_id>/cancel",
                lambda world: f"/api/v1/erasures/{world.erasure_id}/cancel",
                Scope.ERASE,
                SENT,
            ),
            *(
                (
                    f"floor/requests/<uuidstr:request_id>/{act}",
                    lambda world, act=act: f"/api/v1/floor/requests/{world.floor_request_id}/{act}",
                    Scope.ADMIN,
                    WITHOUT_BODY,
                )
                for act in ("approve", "refuse")
            ),
            *(
                (
                    f"samples/<uuidstr:sample_id>/{route}",
                    lambda world, act=act: f"/api/v1/samples/{world.sample_id}/{act}",
                    Scope.SAMPLES,
                    {"POST": status},
                )
                for route, act, status in (
                    ("cancel", "cancel", 200),
                    ("witness", "witness", 200),
                    ("draw", "draw", 400),
                    ("calls/<int:position>", "calls/1", 400),
                    ("sign", "sign", 409),
                    ("return", "return", 400),
                )
            ),
            (
                "keys/<uuidstr:key_pk>/rotate",
                lambda world: f"/api/v1/keys/{world.api_key.pk}/rotate",
                Scope.ADMIN,
                {"POST": 403},  # a key cannot give scopes that it lacks
            ),
            (
                "keys/<uuidstr:key_pk>/revoke",
                lambda world: f"/api/v1/keys/{world.api_key.pk}/revoke",
                Scope.ADMIN,
                SENT,
            ),
            (
                "members/<uuidstr:member_id>/role",
                lambda world: f"/api/v1/members/{world.membership.pk}/role",
                Scope.ADMIN,
                {"PUT": 400},
            ),
            (
                "members/<uuidstr:member_id>/remove",
                lambda world: f"/api/v1/members/{world.membership.pk}/remove",
                Scope.ADMIN,
                {"POST": 409},  # the last admin
            ),
            *(
                (
                    f"service-accounts/<uuidstr:account_id>/{act}",
                    lambda world, act=act: f"/api/v1/service-accounts/{world.service.pk}/{act}",
                    Scope.ADMIN,
                    SENT,
                )
                for act in ("disable", "enable")
            ),
            (
                "service-accounts/<uuidstr:account_id>",
                lambda world: f"/api/v1/service-accounts/{world.service.pk}",
                Scope.ADMIN,
                {"DELETE": 200},
            ),
            (
                "invitations/<uuidstr:invitation_id>/revoke",
                lambda world: f"/api/v1/invitations/{world.invitation_id}/revoke",
                Scope.ADMIN,
                {"POST": 409},  # accepted long ago
            ),
            *(
                (
                    f"tools/<uuidstr:tool_id>/{act}",
                    lambda world, act=act: f"/api/v1/tools/{world.tool_id}/{act}",
                    Scope.REGISTRY,
                    WITHOUT_BODY,
                )
                for act in (
                    *("draft/begin", "draft/check", "draft/discard", "draft/publish"),
                    "replays",
                )
            ),
            (
                "tools/<uuidstr:tool_id>/description",
                lambda world: f"/api/v1/tools/{world.tool_id}/description",
                Scope.REGISTRY,
                {"PATCH": 422},  # the world's link is no URL
            ),
            (
                "tools/<uuidstr:tool_id>/arrivals",
                lambda world: f"/api/v1/tools/{world.tool_id}/arrivals",
                Scope.REGISTRY,
                {"PUT": 400},
            ),
            (
                "tools/<uuidstr:tool_id>/versions/<int:number>/state",
                lambda world: f"/api/v1/tools/{world.tool_id}/versions/1/state",
                Scope.REGISTRY,
                WITHOUT_BODY,
            ),
            (
                "tools/<uuidstr:tool_id>/replays/<uuidstr:replay_id>/cancel",
                lambda world: f"/api/v1/tools/{world.tool_id}/replays/{world.replay_id}/cancel",
                Scope.REGISTRY,
                SENT,
            ),
            (
                "tools/<uuidstr:tool_id>/drift/<uuidstr:analysis_id>/cancel",
                lambda world: f"/api/v1/tools/{world.tool_id}/drift/{world.analysis_id}/cancel",
                Scope.REGISTRY,
                SENT,
            ),
            (
                "tools/<uuidstr:tool_id>/drift/draft",
                lambda world: f"/api/v1/tools/{world.tool_id}/drift/draft",
                Scope.REGISTRY,
                {"POST": 409},  # there is a draft
            ),
        )
    },
    "api/v1/tools/<uuidstr:tool_id>/draft": Object(
        lambda world: f"/api/v1/tools/{world.tool_id}/draft",
        Scope.READ,
        answers={"GET": 200, "PUT": 400},
        scopes={"PUT": Scope.REGISTRY},
    ),
    "api/v1/tools/<uuidstr:tool_id>/regression-set": Object(
        lambda world: f"/api/v1/tools/{world.tool_id}/regression-set",
        Scope.READ,
        answers={"GET": 200, "POST": 400},
        scopes={"POST": Scope.PAYLOADS},
    ),
    "api/v1/tools/<uuidstr:tool_id>/regression-set/remove": Object(
        lambda world: f"/api/v1/tools/{world.tool_id}/regression-set/remove",
        Scope.REGISTRY,
        is_read=False,
        answers=WITHOUT_BODY,
    ),
    "api/v1/tools/<uuidstr:tool_id>/replays/<uuidstr:replay_id>": Object(
        lambda world: f"/api/v1/tools/{world.tool_id}/replays/{world.replay_id}", Scope.READ
    ),
    "api/v1/ledger/checks/<uuidstr:check_id>": Object(
        lambda world: f"/api/v1/ledger/checks/{world.check_id}", Scope.READ
    ),
    "api/v1/searches/<uuidstr:search_id>": Object(
        lambda world: f"/api/v1/searches/{world.search_id}", Scope.PAYLOADS
    ),
    "api/v1/views/<uuidstr:view_id>": Object(
        lambda world: f"/api/v1/views/{world.view_id}",
        Scope.OPERATE,
        is_read=False,
        answers={"DELETE": 200, "PATCH": 200},
    ),
    "api/v1/erasures/<uuidstr:erasure_id>": Object(
        lambda world: f"/api/v1/erasures/{world.erasure_id}", Scope.READ
    ),
    "api/v1/tools/create": Listing(
        "/api/v1/tools/create",
        Scope.REGISTRY,
        shows_canary=False,
        data=lambda world: {"name": f"stranger {secrets.token_hex(4)}"},
        answers={"POST": 201},
    ),
    "api/v1/views": Listing(
        "/api/v1/views",
        Scope.OPERATE,
        data=lambda world: {"q": "tool:a", "name": "mine"},
        answers={"GET": 200, "POST": 201},
    ),
    "api/v1/searches": Listing(
        "/api/v1/searches",
        Scope.PAYLOADS,
        shows_canary=False,
        data=lambda world: {"text": "a stranger's"},
        answers={"POST": 201},
    ),
    "api/v1/polling-tools": Listing(
        "/api/v1/polling-tools",
        Scope.READ,
        data=lambda world: {"tool": "a stranger's"},
        answers={"GET": 200, "POST": 200},
        scopes={"POST": Scope.OPERATE},
    ),
    "api/v1/polling-tools/remove": Listing(
        "/api/v1/polling-tools/remove",
        Scope.OPERATE,
        shows_canary=False,
        data=lambda world: {"tool": "nobody's"},
        answers={"POST": 404},
    ),
    "api/v1/ledger/checks": Listing(
        "/api/v1/ledger/checks", Scope.OPERATE, shows_canary=False, answers={"POST": 201}
    ),
    "api/v1/inbox/discard": Listing(
        "/api/v1/inbox/discard",
        Scope.OPERATE,
        shows_canary=False,
        data=lambda world: {
            "code": "nothing",
            "until": str(world.refused_id),
            "reason": "a stranger's",
        },
        answers=SENT,
    ),
    "api/v1/reports/schedule": Listing(
        "/api/v1/reports/schedule",
        Scope.READ,
        shows_canary=False,
        answers={"GET": 200, "PUT": 400},
        scopes={"PUT": Scope.ADMIN},
    ),
    "api/v1/settings": Listing(  # the world's time zone is none
        "/api/v1/settings", Scope.ADMIN, answers={"GET": 200, "PATCH": 422}
    ),
    "api/v1/settings/redaction": Listing(
        "/api/v1/settings/redaction", Scope.ADMIN, answers={"GET": 200, "PUT": 400}
    ),
    "api/v1/settings/witnesses": Listing(
        "/api/v1/settings/witnesses", Scope.ADMIN, answers={"GET": 200, "PUT": 400}
    ),
    "api/v1/settings/sign-in": Listing(
        "/api/v1/settings/sign-in",
        Scope.ADMIN,
        shows_canary=False,
        answers={"GET": 200, "PUT": 400},
    ),
    "api/v1/settings/sso-only": Listing(
        "/api/v1/settings/sso-only",
        Scope.ADMIN,
        shows_canary=False,
        answers={"GET": 200, "PUT": 400},
    ),
    "api/v1/identity-providers": Listing(
        "/api/v1/identity-providers", Scope.ADMIN, answers={"GET": 200, "POST": 400}
    ),
    "api/v1/identity-providers/<uuidstr:provider_id>": Object(
        lambda world: f"/api/v1/identity-providers/{world.provider_id}",
        Scope.ADMIN,
        answers={"GET": 200, "PUT": 400},
    ),
    **{
        f"api/v1/identity-providers/<uuidstr:provider_id>/{act}": _act_on_provider_by_api(act)
        for act in ("disable", "enable")
    },
    "api/v1/settings/principals/look-up": Listing(
        "/api/v1/settings/principals/look-up",
        Scope.ADMIN,
        shows_canary=False,
        data=lambda world: {"person": "ada"},
        answers=SENT,
    ),
    "api/v1/settings/redaction/try": Listing(
        "/api/v1/settings/redaction/try",
        Scope.ADMIN,
        shows_canary=False,
        data=lambda world: {"names": ["x"], "patterns": [], "sample": "a stranger's"},
        answers=SENT,
    ),
    "api/v1/floor": Listing(
        "/api/v1/floor",
        Scope.READ,
        shows_canary=False,
        data=lambda world: {"floor_days": 36_500, "reason": "mine"},
        answers={"GET": 200, "POST": 409},  # its retention is shorter
        scopes={"POST": Scope.ADMIN},
    ),
    "api/v1/floor/requests": Listing(
        "/api/v1/floor/requests",
        Scope.READ,
        data=lambda world: {"to_days": None, "reason": "mine"},
        answers={"GET": 200, "POST": 409},  # it has no floor
        scopes={"POST": Scope.ADMIN},
    ),
    "api/v1/holds": Listing(
        "/api/v1/holds",
        Scope.READ,
        data=lambda world: {"name": "mine", "reason": "mine", "trace_id": "mine"},
        answers={"GET": 200, "POST": 201},
        scopes={"POST": Scope.HOLDS},
    ),
    "api/v1/incidents": Listing(
        "/api/v1/incidents",
        Scope.HOLDS,
        data=lambda world: {"title": "mine", "reason": "mine", "q": "tool:not-called"},
        answers={"GET": 200, "POST": 422},  # no call matches
    ),
    "api/v1/incidents/<uuidstr:incident_id>": Object(
        lambda world: f"/api/v1/incidents/{world.incident_id}", Scope.HOLDS
    ),
    "api/v1/samples": Listing(
        "/api/v1/samples",
        Scope.SAMPLES,
        data=lambda world: {"name": "mine", "size": 1},
        answers={"GET": 200, "POST": 201},
    ),
    "api/v1/samples/<uuidstr:sample_id>": Object(
        lambda world: f"/api/v1/samples/{world.sample_id}", Scope.SAMPLES
    ),
    "api/v1/erasures": Listing(
        "/api/v1/erasures",
        Scope.READ,
        data=lambda world: {"q": "tool:a"},
        answers={"GET": 200, "POST": 201},
        scopes={"POST": Scope.ERASE},
    ),
    "api/v1/keys": Listing(
        "/api/v1/keys",
        Scope.ADMIN,
        data=lambda world: {"name": "mine", "scopes": ["admin"]},
        answers={"GET": 200, "POST": 201},
    ),
    "api/v1/members": Listing("/api/v1/members", Scope.ADMIN),
    "api/v1/service-accounts": Listing(
        "/api/v1/service-accounts",
        Scope.ADMIN,
        data=lambda world: {"name": "mine"},
        answers={"GET": 200, "POST": 201},
    ),
    "api/v1/invitations": Listing(
        "/api/v1/invitations",
        Scope.ADMIN,
        shows_canary=False,
        data=lambda world: {"label": "mine"},
        answers={"GET": 200, "POST": 201},
    ),
    "api/v1/alert-rules": Listing(
        "/api/v1/alert-rules",
        Scope.READ,
        answers={"GET": 200, "PUT": 400},  # without rules
        scopes={"PUT": Scope.OPERATE},
    ),
    "api/v1/alert-rules/<uuidstr:rule_id>": Object(
        lambda world: f"/api/v1/alert-rules/{world.rule_id}",
        Scope.OPERATE,
        is_read=False,
        answers={"DELETE": 200},
    ),
    "api/v1/alert-rules/<uuidstr:rule_id>/mute": Object(
        lambda world: f"/api/v1/alert-rules/{world.rule_id}/mute",
        Scope.OPERATE,
        is_read=False,
        answers=WITHOUT_BODY,
    ),
    "api/v1/maintenance-windows": Listing(
        "/api/v1/maintenance-windows",
        Scope.READ,
        answers={"GET": 200, "PUT": 400},  # without windows
        scopes={"PUT": Scope.OPERATE},
    ),
    "api/v1/maintenance-windows/<uuidstr:window_id>": Object(
        lambda world: f"/api/v1/maintenance-windows/{world.window_id}",
        Scope.OPERATE,
        is_read=False,
        answers={"DELETE": 200},
    ),
    "api/v1/share-links": Listing(
        "/api/v1/share-links",
        Scope.READ,
        data=lambda world: {"address": f"/reports/{world.report_id}"},
        answers={"GET": 200, "POST": 201},
        scopes={"POST": Scope.OPERATE},
        of_others={"POST": 404},
    ),
    "api/v1/share-links/<uuidstr:link_id>/revoke": Object(
        lambda world: f"/api/v1/share-links/{world.link_id}/revoke",
        Scope.OPERATE,
        is_read=False,
        answers=SENT,
    ),
    "api/v1/share-links/<uuidstr:link_id>/payloads": Object(
        lambda world: f"/api/v1/share-links/{world.link_id}/payloads",
        Scope.REVEAL,
        is_read=False,
        answers=WITHOUT_BODY,
    ),
    "api/v1/boards": Listing(
        "/api/v1/boards",
        Scope.READ,
        data=lambda world: {"name": f"of {secrets.token_hex(4)}"},
        answers={"GET": 200, "POST": 201},
        scopes={"POST": Scope.OPERATE},
    ),
    "api/v1/boards/<uuidstr:board_id>": Object(
        lambda world: f"/api/v1/boards/{world.board_id}",
        Scope.READ,
        answers={"GET": 200, "PUT": 400, "DELETE": 200},  # PUT without a name
        scopes={"PUT": Scope.OPERATE, "DELETE": Scope.OPERATE},
    ),
    "api/v1/notes": Listing(
        "/api/v1/notes",
        Scope.READ,
        data=lambda world: {"about": "call", "invocation_id": str(world.call_id), "label": "seen"},
        answers={"GET": 200, "POST": 201},
        scopes={"POST": Scope.OPERATE},
        of_others={"POST": 404},
    ),
    "api/v1/notes/<uuidstr:note_id>": Object(
        lambda world: f"/api/v1/notes/{world.note_id}",
        Scope.OPERATE,
        is_read=False,
        answers={"PATCH": 200, "DELETE": 200},
    ),
    "api/v1/alert-trials": Listing(
        "/api/v1/alert-trials",
        Scope.OPERATE,
        shows_canary=False,
        data=lambda world: {
            "rule": {"name": "tried", "condition": {"measure": "failed", "alert": 1}}
        },
        answers={"POST": 201},
    ),
    "api/v1/alert-trials/<uuidstr:trial_id>": Object(
        lambda world: f"/api/v1/alert-trials/{world.trial_id}", Scope.OPERATE
    ),
    "api/v1/alerts": Listing("/api/v1/alerts", Scope.READ),
    "api/v1/alerts/<uuidstr:alert_id>": Object(
        lambda world: f"/api/v1/alerts/{world.alert_id}", Scope.READ
    ),
    "api/v1/alerts/<uuidstr:alert_id>/acknowledge": Object(
        lambda world: f"/api/v1/alerts/{world.alert_id}/acknowledge",
        Scope.OPERATE,
        is_read=False,
        answers=WITHOUT_BODY,
    ),
    "api/v1/alerts/<uuidstr:alert_id>/resolve": Object(
        lambda world: f"/api/v1/alerts/{world.alert_id}/resolve",
        Scope.OPERATE,
        is_read=False,
        answers=WITHOUT_BODY,
    ),
    "api/v1/costs": Listing("/api/v1/costs", Scope.READ),
    "api/v1/price-lists": Listing("/api/v1/price-lists", Scope.READ),
    # A day, and no id: each tenant may have a list of its own then.
    "api/v1/price-lists/<holds_from>": Listing(
        "/api/v1/price-lists/1999-12-31",
        Scope.READ,
        shows_canary=False,
        answers={"GET": 404, "PUT": 400, "DELETE": 404},
        scopes={"PUT": Scope.ADMIN, "DELETE": Scope.ADMIN},
    ),
    "api/v1/stream": Listing("/api/v1/stream", Scope.READ, shows_canary=False),
    "api/v1/streams": Listing("/api/v1/streams", Scope.ADMIN),
    "api/v1/streams/<name>": Object(
        lambda world: f"/api/v1/streams/{world.stream_id}",
        Scope.ADMIN,
        answers={"GET": 200, "PUT": 400, "DELETE": 200},
    ),
    "api/v1/streams/<name>/test": _act_on_stream_by_api("test"),
    "api/v1/streams/<name>/pause": _act_on_stream_by_api("pause"),
    "api/v1/streams/<name>/resume": _act_on_stream_by_api("resume"),
    "api/v1/streams/<name>/replay": _act_on_stream_by_api("replay", answers=WITHOUT_BODY),
    "api/v1/streams/<name>/payloads": Object(
        lambda world: f"/api/v1/streams/{world.stream_id}/payloads",
        Scope.REVEAL,
        is_read=False,
        answers={"POST": 400, "DELETE": 200},
    ),
    "api/v1/channels": Listing("/api/v1/channels", Scope.ADMIN),
    "api/v1/channels/<name>": Object(
        lambda world: f"/api/v1/channels/{world.channel_id}",
        Scope.ADMIN,
        answers={"GET": 200, "PUT": 400, "DELETE": 200},
    ),
    "api/v1/channels/<name>/test": Object(
        lambda world: f"/api/v1/channels/{world.channel_id}/test",
        Scope.ADMIN,
        is_read=False,
        answers=SENT,
    ),
    "api/v1/channels/<name>/deliveries": Object(
        lambda world: f"/api/v1/channels/{world.channel_id}/deliveries", Scope.ADMIN
    ),
    "api/v1/definitions": Listing("/api/v1/definitions", Scope.READ),
    "api/v1/definitions/<uuidstr:definition_id>": Object(
        lambda world: f"/api/v1/definitions/{world.definition_id}", Scope.READ
    ),
    "api/v1/definitions/<uuidstr:definition_id>/approve": Object(
        lambda world: f"/api/v1/definitions/{world.definition_id}/approve",
        Scope.REGISTRY,
        is_read=False,
        answers={"POST": 400},  # without a reason
    ),
    "api/v1/definitions/<uuidstr:definition_id>/withdraw": Object(
        lambda world: f"/api/v1/definitions/{world.definition_id}/withdraw",
        Scope.REGISTRY,
        is_read=False,
        answers={"POST": 400},  # without a reason
    ),
    "api/v1/definitions/approve": Listing(
        "/api/v1/definitions/approve",
        Scope.REGISTRY,
        shows_canary=False,
        data=lambda world: {
            "definitions": [str(world.definition_id)],
            "reason": "x",
            "server": world.canary,
        },
        answers=SENT,
        of_others={"POST": 404},
    ),
    "api/v1/summary": Listing("/api/v1/summary", Scope.READ, shows_canary=False),
    "api/v1/registry": Listing(
        "/api/v1/registry",
        Scope.REGISTRY,
        data=lambda world: [{"name": "a stranger's", "inputSchema": {"type": "object"}}],
        answers={"GET": 200, "POST": 200},
    ),
    "api/v1/registry/compare": Listing(
        "/api/v1/registry/compare",
        Scope.READ,
        shows_canary=False,
        data=lambda world: [{"name": "a stranger's", "inputSchema": {"type": "object"}}],
        answers=SENT,
    ),
    "api/v1/registry/imports/<uuidstr:import_id>": Object(
        lambda world: f"/api/v1/registry/imports/{world.import_id}",
        Scope.REGISTRY,
        answers={"GET": 200, "DELETE": 200},
    ),
    "api/v1/registry/definitions": Listing(
        "/api/v1/registry/definitions?provider=mcp", Scope.REGISTRY
    ),
    "api/v1/tools": Listing(
        "/api/v1/tools",
        Scope.READ,
        data=lambda world: {"tools": [{"name": world.canary, "digest": "sha256:" + "0" * 64}]},
        answers={"GET": 200, "POST": 200},
        scopes={"POST": Scope.REGISTRY},
    ),
}


def opens_to(visit: Object | Listing, role: Role) -> bool:
    """Whether a page opens to members with this role."""
    if visit.needs_payloads and role is Role.VIEWER:
        return False
    return visit.role in {Role.VIEWER, role} or role is Role.ADMIN


def is_read_only(visit: Visit) -> bool:
    """Whether no method of the route changes anything, so that cases may share a tenant."""
    return visit.answers.keys().isdisjoint(UNSAFE)


def make_event(world: World) -> bytes:
    """A start event with the id of the world's call, without its canary."""
    event = {
        "type": "toolExecutionStart",
        "invocation_id": str(world.call_id),
        "trace_id": "a stranger's",
        "tool_name": "stranger",
        "call_id": "stranger",
        "started_at": world.at.isoformat(),
        "args": {},
    }
    return json.dumps(event).encode() + b"\n"


def make_trace(world: World) -> bytes:
    """An OTLP request with a tool call in a trace of another name."""
    ns = int(world.at.timestamp()) * 1_000_000_000
    span = {
        "traceId": "5" * 32,
        "spanId": "5" * 16,
        "name": "execute_tool stranger",
        "startTimeUnixNano": str(ns),
        "endTimeUnixNano": str(ns + 1_000_000),
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
            {"key": "gen_ai.conversation.id", "value": {"stringValue": "a stranger's"}},
        ],
    }
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def make_log(world: World) -> bytes:
    """An OTLP request with a log record about a call in a session of another name."""
    record = {
        "timeUnixNano": str(int(world.at.timestamp()) * 1_000_000_000),
        "body": {"stringValue": "claude_code.tool_result"},
        "attributes": [
            {"key": "tool_name", "value": {"stringValue": "stranger"}},
            {"key": "session.id", "value": {"stringValue": "a stranger's"}},
        ],
    }
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()


def _tool(world: World) -> str:
    return f"/tools/{world.tool_id}"


def _call(world: World) -> str:
    return f"/calls/{world.at.date()}/{world.call_id}"


def all_routes(site_map: str | None = None) -> dict[str, URLPattern]:
    """Every URL pattern by its complete route, as Django writes it."""
    routes: dict[str, URLPattern] = {}

    def walk(patterns: list[URLPattern | URLResolver], prefix: str) -> None:
        for one in patterns:
            route = prefix + str(one.pattern)
            if isinstance(one, URLResolver):
                walk(one.url_patterns, route)
            else:
                routes[route] = one

    walk(get_resolver(site_map).url_patterns, "")
    return routes


def imagined(world: World) -> World:
    """A copy of the world with ids of which none exists."""
    return replace(
        world,
        tenant=Tenant(id=uuid.uuid4(), slug="nowhere", name="Nowhere"),
        canary=f"canary{secrets.token_hex(4)}",
        call_id=uuid_utils.compat.uuid7(),
        batch_id=uuid_utils.compat.uuid7(),
        tool_id=uuid.uuid4(),
        refused_id=uuid_utils.compat.uuid7(),
        view_id=uuid_utils.compat.uuid7(),
        search_id=uuid_utils.compat.uuid7(),
        report_id=uuid_utils.compat.uuid7(),
        import_id=uuid.uuid4(),
        check_id=uuid_utils.compat.uuid7(),
        replay_id=uuid_utils.compat.uuid7(),
        hold_id=uuid_utils.compat.uuid7(),
        floor_request_id=uuid_utils.compat.uuid7(),
        erasure_id=uuid_utils.compat.uuid7(),
        invitation_id=uuid_utils.compat.uuid7(),
        analysis_id=uuid_utils.compat.uuid7(),
        api_key=ApiKey(pk=uuid.uuid4()),
        membership=Membership(pk=uuid.uuid4()),
        service=Membership(pk=uuid.uuid4()),
    )


ASKING: tuple[Callable[[World, World], str], ...] = (
    lambda own, foreign: f"/traces/?trace={foreign.canary}",
    lambda own, foreign: f"/traces/?before={quote(foreign.at.isoformat())},{foreign.canary}",
    lambda own, foreign: f"/traces/{own.canary}?call={foreign.call_id}",
    lambda own, foreign: f"/traces/{own.canary}/compare?with={foreign.canary}",
    lambda own, foreign: f"/calls/?q=tool:{foreign.canary}",
    lambda own, foreign: f"/calls/?q=violation:{foreign.canary}",
    lambda own, foreign: f"/calls/complete?q=error:{foreign.canary[:-1]}",
    lambda own, foreign: f"/calls/?before={quote(foreign.at.isoformat())},{foreign.call_id}",
    lambda own, foreign: (
        f"/violations/?from={own.at:%Y-%m-%d}&to={own.at:%Y-%m-%d}&tool={foreign.canary}"
    ),
    lambda own, foreign: f"/violations/export.csv?code={foreign.canary}",
    lambda own, foreign: f"/inbox/?state=all&code={foreign.canary}",
    lambda own, foreign: f"/traces/{own.canary}?find={foreign.canary}",
    lambda own, foreign: f"/admin/tools_registry/tool/?q={foreign.canary}",
)
"""Addresses of the visitor's own pages whose query contains an id or text of the other tenant."""
