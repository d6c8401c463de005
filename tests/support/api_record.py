"""A tenant with something to read for every operation of the API."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.test import Client

from audit.models import RejectedEvent
from audit.queries.definitions import ToolFilter, served_tools
from tenants.keys import create_key
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.alerts import alert_of_stored_calls
from tests.support.api_client import Program
from tests.support.contracts import make_contract
from tests.support.event_requests import post
from tests.support.factories import Cast, make_call, make_definition, make_definitions, send_events
from tests.support.ledger_log import sign
from tests.support.pages import signed_in
from tools_registry.exchange.job import run_at_once, start_import
from tools_registry.exchange.reading import open_document
from tools_registry.models import Tool

PAYLOAD = "payload7c2d"
"""A text in every payload, and in everything that quotes one."""
ERROR = {"type": "UPSTREAM", "code": "BAD_GATEWAY", "message": PAYLOAD, "upstream_status": 502}
VIOLATION = {
    "path": "$.items[3].id",
    "code": "WRONG_TYPE",
    "severity": "error",
    "expected": "integer",
    "received": PAYLOAD,
}


@dataclass(frozen=True)
class Record:
    """The tenant, its keys for reading, and the ids of what can be read."""

    cast: Cast
    reader: str
    """Scope `read`."""
    auditor: str
    """All scopes but `ingest`; its owner is the auditor."""
    failed: UUID
    open: UUID
    refused: UUID
    tool: UUID
    report: UUID
    imported: UUID
    definition: UUID
    replay: UUID
    check: UUID
    search: UUID
    comparison: UUID
    erasure: UUID
    sample: UUID
    incident: UUID
    board: UUID
    alert: UUID
    trial: UUID
    provider: UUID
    at: datetime

    def get(self, path: str, key: str = "", **query: str | int) -> Any:
        """The answer to GET, with the key that sees payloads by default."""
        authorization = {"Authorization": f"Bearer {key or self.auditor}"}
        return Client(headers=authorization).get(f"/api/v1/{path}", query)

    def ids(self) -> dict[str, dict[str, str | int]]:
        """The ids in the address of each operation that names something."""
        return {
            "read_apart": {"q": "state:error"},
            "compare_calls": {"a": "state:ok", "b": "state:error"},
            "compare_traces": {"a": "a/trace", "b": "a/trace"},
            "read_call": {"invocation_id": str(self.failed)},
            "hand_off_call": {"invocation_id": str(self.failed)},
            "hand_off_newest": {"q": "state:failed"},
            "read_trace": {"trace_id": "a/trace"},
            "read_inbox_line": {"line_id": str(self.refused)},
            "read_definition": {"definition_id": str(self.definition)},
            "read_tool": {"tool_id": str(self.tool)},
            "read_regression_set": {"tool_id": str(self.tool)},
            "diff_tool": {"tool_id": str(self.tool), "from_": 1, "to": 1},
            "read_drift": {"tool_id": str(self.tool)},
            "read_effect": {"tool_id": str(self.tool), "version": 1},
            "define_tools": {"provider": "openai"},
            "read_import": {"import_id": str(self.imported)},
            "read_report": {"report_id": str(self.report)},
            "read_draft": {"tool_id": str(self.tool)},
            "read_replay": {"tool_id": str(self.tool), "replay_id": str(self.replay)},
            "read_ledger_check": {"check_id": str(self.check)},
            "read_comparison": {"comparison_id": str(self.comparison)},
            "read_search": {"search_id": str(self.search)},
            "read_erasure": {"erasure_id": str(self.erasure)},
            "read_sample": {"sample_id": str(self.sample)},
            "read_clauses": {"report_id": str(self.report)},
            "read_incident": {"incident_id": str(self.incident)},
            "read_board": {"board_id": str(self.board)},
            "read_channel": {"name": "chat"},
            "read_stream": {"name": "kept"},
            "read_identity_provider": {"provider_id": str(self.provider)},
            "read_price_list": {"holds_from": "2026-01-01"},
            "list_deliveries": {"name": "chat"},
            "read_alert": {"alert_id": str(self.alert)},
            "read_alert_trial": {"trial_id": str(self.trial)},
            "read_tile": {"name": "0/000.p/24"},
            "prove_inclusion": {"index": 3},
            "prove_consistency": {"old": 24},
            "download_proof": {"index": 3},
            "download_statement": {"index": 3},
        }


def make_record(cast: Cast) -> Record:
    """Twelve calls of which one failed, three are a loop and one is open, and the rest."""
    key = create_key(cast.tenant, "executor", [Scope.INGEST, Scope.REGISTRY])[1]
    at = datetime.now(UTC) - timedelta(minutes=2)
    usage = {"prompt": 800, "completion": 60}
    failed = make_call(
        tool_name="search",
        tool_version="4",
        trace_id="a/trace",
        call_id="f" * 64,
        run_id="run-1",
        started_at=at + timedelta(seconds=9),
        args={"q": PAYLOAD},
        output={"status": "error", "error": ERROR, "meta": {"took_ms": 20, "token_usage": usage}},
        guard={"strategy": "throw", "outcome": "failed", "violations": [VIOLATION]},
        producer_id="executor-1",
    )
    failed[0]["producer_seq"], failed[1]["producer_seq"] = 1, 2
    running = make_call(is_open=True, trace_id="b", call_id="e" * 64, started_at=at)
    loop = [
        event
        for n in range(3)
        for event in make_call(trace_id="loop", started_at=at + timedelta(seconds=n))
    ]
    others = [
        event
        for n in range(7)
        for event in make_call(
            tool_name=f"tool-{n}",
            trace_id=f"trace-{n}",
            call_id=f"{n}" * 64,
            started_at=at + timedelta(seconds=10 + n),
        )
    ]
    gap = {
        "type": "gap",
        "producer_id": "executor-1",
        "from_seq": 3,
        "to_seq": 4,
        "reason": "spool full",
        "count": 2,
    }
    send_events(cast.tenant, [*failed, *running, *loop, *others, gap], key=key)
    post(key, json.dumps({"type": "neither", "args": PAYLOAD}).encode())
    registered = Client().post(
        "/api/v1/tools",
        {"tools": [make_contract(name="get_weather")]},
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )
    assert registered.status_code == 200
    sign(cast.tenant)
    for age, description in ((90, "Before."), (80, "After.")):  # two entries that are not signed
        sighting = make_definitions(
            make_definition(description=description), seen_at=at - timedelta(seconds=age)
        )
        send_events(cast.tenant, [sighting], key=key)
    with tenant_scope(cast.tenant.id):
        refused = RejectedEvent.objects.for_tenant(cast.tenant.id).get()
        tool = Tool.objects.get(tenant=cast.tenant)
        document = open_document(json.dumps([{"name": "other", "inputSchema": {}}]))
        imported = start_import(cast.tenant, document, cast.editor.username)
        run_at_once(imported)
        served = served_tools(ToolFilter(), size=1).tools[0].definition
        assert served is not None
    answer = signed_in(cast.editor).post(
        f"/tools/{tool.pk}/drift/analyze", {"limit": "1000", "range": "24h"}
    )
    assert answer.status_code == 302
    scopes = [scope for scope in Scope if scope is not Scope.INGEST]
    auditor = create_key(cast.tenant, "auditor", scopes, owner=cast.auditor)[1]
    api = Program(cast.tenant, auditor)
    api.do(f"tools/{tool.id}/draft/begin")
    api.do("holds", {"name": "Case 7", "reason": "court order", "trace_id": "a/trace"})
    api.do("views", {"name": "Failed", "q": "state:error"})
    api.do("invitations", {"label": "Eve"})
    api.do("polling-tools", {"tool": "tool-0"})
    api.do("channels/chat", {"kind": "slack", "url": "https://hooks.example/T0/token"}, "PUT")
    api.do("channels/chat/test")
    api.do("streams/soc", {"way": "https", "url": "https://soc.example", "from_index": 0}, "PUT")
    issuer = "https://id.acme.example"
    provider = {"name": "Acme ID", "issuer": issuer, "client_id": "tooltrail"}
    rule = {"name": "tried", "condition": {"measure": "failed", "alert": 1}}
    prices = [{"tool": "tool-0", "amount": "0.004"}]
    incident = {"title": "Case 7", "reason": "court order", "q": "trace:a/trace"}
    api.do("price-lists/2026-01-01", {"currency": "EUR", "prices": prices}, "PUT")
    api.do("streams/kept", {"way": "https", "url": "https://siem.example/in"}, "PUT")
    reported = Client().post(
        "/api/v1/reports",
        {"range": "1h", "clauses": True},
        content_type="application/json",
        headers={"Authorization": f"Bearer {auditor}"},
    )
    assert reported.status_code == 201
    return Record(
        cast=cast,
        reader=create_key(cast.tenant, "wallboard", [Scope.READ])[1],
        auditor=auditor,
        failed=UUID(str(failed[0]["invocation_id"])),
        open=UUID(str(running[0]["invocation_id"])),
        refused=refused.id,
        tool=tool.id,
        report=UUID(reported.json()["id"]),
        imported=imported.pk,
        definition=served.id,
        replay=UUID(api.do(f"tools/{tool.id}/replays", {"range": "1h"})["id"]),
        check=UUID(api.do("ledger/checks")["id"]),
        search=UUID(api.do("searches", {"text": PAYLOAD})["id"]),
        comparison=UUID(api.do("apart/arguments", {"q": "tool:search state:error"})["id"]),
        erasure=UUID(api.do("erasures", {"q": "tool:tool-1"})["id"]),
        sample=UUID(api.do("samples", {"name": "refunds", "size": 3})["id"]),
        incident=UUID(api.do("incidents", incident)["id"]),
        board=UUID(
            api.do("boards", {"name": "Of the record", "panels": [{"shows": "errors"}]})["id"]
        ),
        alert=alert_of_stored_calls(cast),
        trial=UUID(api.do("alert-trials", {"rule": rule})["id"]),
        provider=UUID(api.do("identity-providers", provider)["id"]),
        at=at,
    )
