"""One story of every operation that acts, in an order in which each can succeed.

It is told by generated clients of several languages, so steps are data. A value of an earlier
answer is a `Got`, one of the tenant's record a `Given`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from audit.models import RejectedEvent
from tenants.keys import create_key
from tenants.members import people_of
from tenants.models import Scope
from tenants.scope import tenant_scope
from tests.support.api_client import Program
from tests.support.api_record import PAYLOAD, make_record
from tests.support.contracts import make_contract
from tests.support.erasures import preview_erasure
from tests.support.event_requests import post
from tests.support.factories import Cast, make_call
from tests.support.floor import requested_floor
from tests.support.samples import begin_sample, sign_ledger


@dataclass(frozen=True)
class Got:
    """A member of the answer to an earlier step: `create_view.id`, `list.items.0.id`."""

    place: str


@dataclass(frozen=True)
class Given:
    """A value of the record, by its name."""

    name: str


@dataclass(frozen=True)
class Step:
    """A request of one operation."""

    operation: str
    path: Mapping[str, Any] = field(default_factory=dict)
    """Its parameters in the path."""
    body: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    media_type: str = "application/json"
    """Of another type, the body is a text."""


def _step(operation: str, body: Any = None, /, **path: Any) -> Step:
    return Step(operation, path, body)


_PRICES = {
    "currency": "EUR",
    "prices": [{"tool": "search", "amount": "0.004"}],
    "models": [{"model": "gpt-5", "input": "1.25", "output": "10"}],
}
_NOTE = {"note": "seen"}
_REASON = {"reason": "a test"}
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_WITNESS = {
    "url": "https://w1.example",
    "key": "w1.example+befa920a+BAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB",
}
_RULE = {"name": "1 failures", "condition": {"measure": "failed_share", "warning": 5, "alert": 20}}
"""By its name the first of the rules."""
_WINDOW = {
    "name": "backup",
    "reason": "nightly",
    "starts_at": "2026-01-01T01:00:00+01:00",
    "minutes": 60,
    "repeats": "daily",
    "time_zone": "Europe/Berlin",
}
STORY: Sequence[Step] = (
    Step("receive_events", body=Given("events"), media_type="application/x-ndjson"),
    Step("receive_traces", body="", media_type="application/x-protobuf"),
    Step("receive_logs", body="", media_type="application/x-protobuf"),
    Step("receive_metrics", body="", media_type="application/x-protobuf"),
    # Calls
    _step("create_view", {"name": "Failed", "q": "state:error"}),
    _step("edit_view", {"name": "Failures", "shared": True}, view_id=Got("create_view.id")),
    _step("remove_view", view_id=Got("create_view.id")),
    _step("create_board", {"name": "Failures", "panels": [{"shows": "errors"}]}),
    _step("replace_board", {"name": "Failed"}, board_id=Got("create_board.id")),
    _step("remove_board", board_id=Got("create_board.id")),
    _step("start_search", {"text": PAYLOAD, "q": "tool:search"}),
    _step("cancel_search", search_id=Got("start_search.id")),
    _step("start_comparison", {"q": "state:failed tool:search"}),
    _step("cancel_comparison", comparison_id=Got("start_comparison.id")),
    _step("reveal_call", _REASON, invocation_id=Given("call")),
    _step("add_polling_tool", {"tool": "waits"}),
    _step("remove_polling_tool", {"tool": "waits"}),
    # Rejected events
    _step("reveal_inbox_line", _REASON, line_id=Given("line_sent")),
    _step("send_inbox_line", {"line": '{"type": "other"}'}, line_id=Given("line_sent")),
    _step("discard_inbox_line", _REASON, line_id=Given("line_discarded")),
    _step(
        "discard_inbox_lines",
        {"reason": "a test", "code": Given("code"), "until": Given("line_last")},
    ),
    # Reports, ledger, retention
    _step("make_report", {"range": "1h"}),
    _step("change_report_schedule", {"kinds": ["week"], "keep_days": 90}),
    _step("start_ledger_check"),
    _step("cancel_ledger_check", check_id=Got("start_ledger_check.id")),
    _step("set_hold", {"name": "Case 8", "reason": "court order", "trace_id": "loop"}),
    _step("release_hold", {"reason": "over"}, hold_id=Got("set_hold.id")),
    _step("approve_floor_request", _REASON, request_id=Given("floor_request")),
    _step("begin_incident", {"title": "Case 9", "reason": "theft", "q": "trace:loop"}),
    _step("start_erasure", {"q": "tool:tool-2"}),
    _step("cancel_erasure", erasure_id=Got("start_erasure.id")),
    _step(
        "confirm_erasure",
        {"reason": "asked to", "calls": Given("erased_calls"), "digest": Given("digest")},
        erasure_id=Given("erasure"),
    ),
    _step("start_sample", {"name": "refunds", "confidence": 95.0, "tolerable": 5, "expected": 0}),
    _step("cancel_sample", sample_id=Got("start_sample.id")),
    _step("bring_sample_to_witnesses", sample_id=Given("sample")),
    _step("draw_the_sample", {"nonce": ""}, sample_id=Given("sample")),
    _step(
        "conclude_sample_call",
        {"conclusion": "exception", "exception": "paid twice"},
        sample_id=Given("sample"),
        position=1,
    ),
    _step("sign_sample", sample_id=Given("sample")),
    _step("return_sample", _REASON, sample_id=Given("sample")),
    # Alerts
    _step("save_alert_rules", {"rules": [_RULE]}),
    _step(
        "mute_alert_rule",
        {"minutes": 60, "reason": "a test"},
        rule_id=Got("save_alert_rules.items.0.id"),
    ),
    _step("start_alert_trial", {"rule": _RULE}),
    _step("cancel_alert_trial", trial_id=Got("start_alert_trial.id")),
    _step("acknowledge_alert", _NOTE, alert_id=Given("alert")),
    _step("resolve_alert", _NOTE, alert_id=Given("alert")),
    _step("delete_alert_rule", rule_id=Got("save_alert_rules.items.0.id")),
    _step("save_price_list", _PRICES, holds_from="2026-11-01"),
    _step("remove_price_list", holds_from="2026-11-01"),
    _step("save_maintenance_windows", {"windows": [_WINDOW]}),
    _step("delete_maintenance_window", window_id=Got("save_maintenance_windows.items.0.id")),
    _step("save_channel", {"kind": "slack", "url": "https://hooks.example/T1/t"}, name="more"),
    _step("send_channel_test", name="more"),
    _step("remove_channel", name="more"),
    # Share links
    _step("save_stream", {"way": "syslog", "host": "siem.example", "from_index": 0}, name="siem"),
    _step("send_stream_test", name="siem"),
    _step("pause_stream", name="siem"),
    _step("resume_stream", name="siem"),
    _step("replay_stream", {"index": 0}, name="siem"),
    _step("allow_stream_payloads", _REASON, name="siem"),
    _step("stop_stream_payloads", name="siem"),
    _step("remove_stream", name="siem"),
    _step("create_share_link", {"address": "/latency/?range=1h", "days": 1}),
    _step("allow_link_payloads", _REASON, link_id=Got("create_share_link.id")),
    _step("revoke_share_link", link_id=Got("create_share_link.id")),
    # Notes
    _step(
        "create_note",
        {"about": "call", "invocation_id": Given("received"), "label": "regression"},
    ),
    _step(
        "make_a_regression_set",
        {"label": "regression", "reason": "a test"},
        tool_id=Given("tool"),
    ),
    _step("remove_the_regression_set", _REASON, tool_id=Given("tool")),
    _step("edit_note", {"state": "known"}, note_id=Got("create_note.id")),
    _step("remove_note", note_id=Got("create_note.id")),
    # Definitions and tools
    _step("approve_definition", _REASON, definition_id=Given("definition")),
    _step("withdraw_definition_approval", _REASON, definition_id=Given("definition")),
    _step(
        "approve_definitions",
        {"reason": "a test", "server": Given("server"), "definitions": [Given("definition")]},
    ),
    _step("register_tools", {"tools": [make_contract(name="registered")]}),
    _step("create_empty_tool", {"name": "by hand"}),
    _step("describe_the_tool", {"owner": "Ada", "tags": ["weather"]}, tool_id=Given("tool")),
    _step("check_arrivals", {"is_on": True, "reason": "a test"}, tool_id=Given("tool")),
    _step("start_drift_analysis", {"range": "1h", "limit": 10}, tool_id=Given("tool")),
    _step(
        "cancel_drift_analysis",
        tool_id=Given("tool"),
        analysis_id=Got("start_drift_analysis.id"),
    ),
    _step("discard_the_draft", {"revision": Given("revision")}, tool_id=Given("tool")),
    _step("draft_from_drift", tool_id=Given("tool")),
    _step("check_contract", {"input_schema": _SCHEMA}, tool_id=Given("tool")),
    _step(
        "save_the_draft",
        {
            "description": "The weather of a city.",
            "input_schema": _SCHEMA,
            "revision": Got("draft_from_drift.revision"),
        },
        tool_id=Given("tool"),
    ),
    _step("start_replay", {"range": "1h"}, tool_id=Given("tool")),
    _step("cancel_replay", tool_id=Given("tool"), replay_id=Got("start_replay.id")),
    _step(
        "publish_the_draft",
        {"revision": Got("save_the_draft.revision"), "reason": "a test"},
        tool_id=Given("tool"),
    ),
    _step("begin_the_draft", {"version": 1}, tool_id=Given("tool")),
    _step(
        "change_version_state",
        {"change": "deprecate", "reason": "old"},
        tool_id=Given("tool"),
        number=1,
    ),
    Step(
        "compare_definitions",
        body=[{"name": "imported", "description": "I.", "inputSchema": {"type": "object"}}],
    ),
    Step(
        "import_registry",
        body=[{"name": "imported", "description": "I.", "inputSchema": {"type": "object"}}],
        query={"as": "drafts", "reason": "a test"},
    ),
    _step("cancel_import", import_id=Given("import")),
    # Administration
    _step("change_settings", {"name": "Acme Ltd"}),
    _step("raise_floor", {"floor_days": 400, "reason": "a law"}),
    _step("request_lower_floor", {"to_days": 200, "reason": "another law"}),
    _step("refuse_floor_request", _REASON, request_id=Got("request_lower_floor.id")),
    _step("try_redaction", {"names": ["iban"], "patterns": [], "sample": '{"iban": "DE1"}'}),
    _step("change_redaction", {"names": ["iban"], "patterns": []}),
    _step("change_witnesses", {"needed": 1, "witnesses": [_WITNESS]}),
    _step(
        "change_sign_in_settings",
        {
            "second_factor_roles": ["admin"],
            "step_up": False,
            "session_idle_minutes": 60,
            "session_max_hours": None,
        },
    ),
    _step(
        "add_identity_provider",
        {
            "name": "Acme's sign-in",
            "issuer": "https://id.acme.example",
            "client_id": "tooltrail",
            "secret": "a secret",
            "role_by_group": {"platform": "editor"},
        },
    ),
    _step(
        "change_identity_provider",
        {
            "name": "Acme's sign-in",
            "issuer": "https://id.acme.example",
            "client_id": "tooltrail",
            "default_role": "viewer",
        },
        provider_id=Got("add_identity_provider.id"),
    ),
    _step("disable_identity_provider", provider_id=Got("add_identity_provider.id")),
    _step("enable_identity_provider", provider_id=Got("add_identity_provider.id")),
    _step("change_sso_only", {"sso_only": False, "break_glass": None}),
    _step("look_up_principal", {"person": "ada"}),
    _step("create_service_account", {"name": "deploy"}),
    _step(
        "create_key",
        {"name": "ci", "scopes": ["read"], "owner": Got("create_service_account.user")},
    ),
    _step("rotate_key", {"overlap_seconds": 60}, key_pk=Got("create_key.id")),
    _step("revoke_key", key_pk=Got("rotate_key.id")),
    _step("disable_service_account", account_id=Got("create_service_account.id")),
    _step("enable_service_account", account_id=Got("create_service_account.id")),
    _step("delete_service_account", account_id=Got("create_service_account.id")),
    _step("create_invitation", {"label": "Eve", "role": "viewer"}),
    _step("revoke_invitation", invitation_id=Got("create_invitation.id")),
    _step("change_member_role", {"role": "editor"}, member_id=Given("member")),
    _step("remove_member", member_id=Given("member")),
)
"""Each operation that acts, once."""


def make_story(cast: Cast) -> tuple[str, list[Step]]:
    """A key with all scopes, and the steps with the values of a new record in them."""
    record = make_record(cast)
    key = create_key(cast.tenant, "story", list(Scope), created_by=cast.admin)[1]
    api = Program(cast.tenant, key)
    for under_way in (
        f"ledger/checks/{record.check}",
        f"searches/{record.search}",
        f"tools/{record.tool}/replays/{record.replay}",
    ):
        Program(cast.tenant, record.auditor).do(f"{under_way}/cancel")  # one at a time may run
    for _ in range(2):
        post(key, json.dumps({"type": "neither", "args": PAYLOAD}).encode())
    erasure = preview_erasure(cast, "tool:tool-3")
    sample = begin_sample(cast, size=1)
    sign_ledger(cast)
    with tenant_scope(cast.tenant.id):
        lines = list(RejectedEvent.objects.for_tenant(cast.tenant.id).order_by("id"))
        member = people_of(cast.tenant).get(user=cast.viewer)
    call = make_call(tool_name="get_weather", args={"city": "Bern", "days": 3})
    preview = api.get(f"erasures/{erasure.id}")["preview"]
    given = {
        "events": "\n".join(json.dumps(event) for event in call),
        "received": call[0]["invocation_id"],
        "call": str(record.failed),
        "line_sent": str(lines[0].id),
        "line_discarded": str(lines[1].id),
        "code": lines[2].code,
        "line_last": str(lines[2].id),
        "erasure": str(erasure.id),
        "erased_calls": preview["calls"],
        "digest": preview["digest"],
        "sample": str(sample),
        "floor_request": str(requested_floor(cast)),
        "alert": str(record.alert),
        "definition": str(record.definition),
        "server": api.get(f"definitions/{record.definition}")["server"],
        "tool": str(record.tool),
        "revision": api.get(f"tools/{record.tool}/draft")["revision"],
        "import": str(record.imported),
        "member": str(member.pk),
    }
    return key, [
        Step(
            one.operation,
            _filled(one.path, given),
            _filled(one.body, given),
            one.query,
            one.media_type,
        )
        for one in STORY
    ]


def _filled(value: Any, given: Mapping[str, Any]) -> Any:
    match value:
        case Given(name):
            return given[name]
        case Mapping():
            return {name: _filled(member, given) for name, member in value.items()}
        case list():
            return [_filled(one, given) for one in value]
        case _:
            return value
