"""Records in the Open Cybersecurity Schema Framework 1.8: API Activity (6003), and its profile
`ai_operation`. Pure. The JSON Schema is `docs/schemas/stream-ocsf-1.json`.

https://schema.ocsf.io/1.8.0/classes/api_activity. What OCSF has no attribute for is in `unmapped`,
and what proves the record in `tooltrail`, an attribute of the extension of that name.
"""

from collections.abc import Mapping
from typing import Any, Final

from audit.stream.facts import Fact, severity_of
from audit.stream.place import Place, milliseconds

VERSION: Final = "1.8.0"
_CLASS, _CATEGORY = 6003, 6
_CREATE, _READ, _UPDATE, _DELETE, _OTHER = 1, 2, 3, 4, 99
_SEVERITIES: Final[Mapping[str, int]] = {"informational": 1, "low": 2, "medium": 3, "high": 4}
_STATUSES: Final[Mapping[str, int]] = {
    "unknown": 0,
    **dict.fromkeys(("ok", "approved"), 1),
    **dict.fromkeys(("failed", "lost", "unguarded"), 2),
}
"""By the outcome."""
_TOOL_ROLE = 3
EXTENSION: Final[Mapping[str, str]] = {"name": "tooltrail", "uid": "999", "version": "1.0.0"}
"""`uid` is that of extensions which are not registered."""
_EXTENSIONS, _PROFILES = (EXTENSION,), ("ai_operation",)
_ACTIVITIES: Final[Mapping[str, str]] = {
    "start": "Tool call started",
    "interim": "Tool call waits",
    "end": "Tool call ended",
    "decision": "Tool call decided",
    "gap": "Events lost",
    "finding": "Output violates its schema",
    "unknown": "Entry without its event",
}
_CRUD: Final[Mapping[str, int]] = {
    **dict.fromkeys(("create", "add", "set", "publish", "invite", "make", "start"), _CREATE),
    **dict.fromkeys(
        ("view", "read", "reveal", "list", "export", "search", "open", "download", "test"), _READ
    ),
    **dict.fromkeys(
        ("change", "update", "raise", "role", "rotate", "approve", "release", "pause", "resume"),
        _UPDATE,
    ),
    **dict.fromkeys(("delete", "remove", "erase", "revoke", "discard", "forget"), _DELETE),
}
"""The activity by the last word of a verb."""


def document(fact: Fact, place: Place) -> dict[str, Any]:
    """The record of a fact, without what proves it and without the event's bytes."""
    if fact.what == "action":
        activity = _CRUD.get((fact.verb or "").rpartition(".")[2], _OTHER)
        name = fact.verb or "action"
    else:
        activity, name = _OTHER, _ACTIVITIES[fact.what]
    record: dict[str, Any] = {
        "activity_id": activity,
        "activity_name": name,
        "category_uid": _CATEGORY,
        "class_uid": _CLASS,
        "type_uid": _CLASS * 100 + activity,
        "time": milliseconds(fact.at_us),
        "severity_id": _SEVERITIES[severity_of(fact)],
        "status_id": _STATUSES.get(fact.outcome, _OTHER),
        "status": fact.outcome,
        "message": _message(fact),
        "metadata": _metadata(fact, place),
    }
    if fact.what == "action":
        _add_action(record, fact)
    else:
        _add_call(record, fact)
    return record


def _metadata(fact: Fact, place: Place) -> dict[str, Any]:
    source = place.source
    metadata: dict[str, Any] = {
        "version": VERSION,
        "product": {"name": "Tooltrail", "vendor_name": "Tooltrail", "version": source.version},
        "profiles": _PROFILES,
        "extensions": _EXTENSIONS,
        "log_name": source.of,
        "log_provider": source.host,
        "logged_time": milliseconds(place.received_us),
        "event_code": fact.kind,
        "sequence": place.index,
        "tenant_uid": source.tenant_id,
        "uid": place.uid,
    }
    if (trace := fact.ids.get("trace_id")) is not None:
        metadata["correlation_uid"] = trace
    return metadata


def _add_call(record: dict[str, Any], fact: Fact) -> None:
    producer = fact.ids.get("producer_id")
    executor = fact.service or producer
    actor: dict[str, Any] = {"app_name": fact.agent or executor or "unknown"}
    if fact.principal is not None:
        actor["user"] = {"uid": fact.principal, "type_id": 99, "type": "Principal"}
    record["api"] = _api(fact)
    record["actor"] = actor
    record["src_endpoint"] = endpoint = {"name": producer or executor or "unknown"}
    if fact.service is not None:
        endpoint["svc_name"] = fact.service
    if fact.started_us is not None:
        record["start_time"] = milliseconds(fact.started_us)
    if fact.ended_us is not None:
        record["end_time"] = milliseconds(fact.ended_us)
    if fact.duration_us is not None:
        record["duration"] = fact.duration_us // 1000
    if fact.model is not None:
        record["ai_model"] = {"name": fact.model, "ai_provider": fact.provider or "unknown"}
    if fact.what != "gap" and fact.what != "unknown":
        record["message_context"] = _context(fact)
    if fact.error_message is not None:
        record["status_detail"] = fact.error_message
    elif fact.reason is not None:
        record["status_detail"] = fact.reason
    if fact.error_type is not None:
        record["status_code"] = fact.error_type
    if unmapped := _unmapped(fact):
        record["unmapped"] = unmapped


def _api(fact: Fact) -> dict[str, Any]:
    api: dict[str, Any] = {"operation": fact.tool or f"tooltrail.{fact.what}"}
    if fact.tool_version is not None:
        api["version"] = fact.tool_version
    if fact.invocation_id is not None:
        api["request"] = {"uid": fact.invocation_id}
    if fact.mcp_server is not None:
        api["service"] = {"name": fact.mcp_server}
    response: dict[str, Any] = {}
    if fact.error_type is not None:
        response["error"] = fact.error_type
    if fact.error_code is not None:
        response["message"] = fact.error_code
    if fact.error_message is not None:
        response["error_message"] = fact.error_message
    if fact.upstream_status is not None:
        response["code"] = fact.upstream_status
    if response:
        api["response"] = response
    return api


def _context(fact: Fact) -> dict[str, Any]:
    ids = fact.ids
    context: dict[str, Any] = {"ai_role_id": _TOOL_ROLE}
    run = ids.get("run_id") or ids.get("turn_id") or ids.get("trace_id")
    if run is not None:
        context["uid"] = run
    else:
        context["name"] = fact.tool or "unknown"
    application = fact.mcp_client or fact.agent or fact.service
    context["application"] = {"name": application or "unknown"}
    if fact.mcp_server is not None:
        context["service"] = {"name": fact.mcp_server}
    if fact.prompt_tokens is not None or fact.completion_tokens is not None:
        took, gave = fact.prompt_tokens or 0, fact.completion_tokens or 0
        context |= {
            "prompt_tokens": took,
            "completion_tokens": gave,
            "total_tokens": took + gave,
        }
    return context


def _unmapped(fact: Fact) -> dict[str, Any]:
    unmapped: dict[str, Any] = {**fact.ids}
    if fact.agent_version is not None:
        unmapped["agent_version"] = fact.agent_version
    if fact.environment is not None:
        unmapped["environment"] = fact.environment
    if fact.mcp_protocol is not None:
        unmapped["mcp_protocol"] = fact.mcp_protocol
    if fact.decided_by is not None:
        unmapped["decided_by"] = fact.decided_by
    if fact.lost is not None:
        unmapped["lost_events"] = fact.lost
    if fact.violations:
        unmapped["violations"] = [
            {"path": each.path, "code": each.code, "severity": each.severity}
            for each in fact.violations
        ]
    return unmapped


def _add_action(record: dict[str, Any], fact: Fact) -> None:
    actor = fact.actor or "Tooltrail"
    record["actor"] = {"app_name": "Tooltrail", "user": {"name": actor}}
    record["api"] = {"operation": fact.verb or "action", "service": {"name": "Tooltrail"}}
    record["src_endpoint"] = {"name": "Tooltrail"}
    if fact.subject is not None:
        kind = (fact.verb or "").partition(".")[0]
        record["resources"] = [{"name": fact.subject, "type": kind or "unknown"}]


def _message(fact: Fact) -> str:
    if fact.what == "action":
        return " ".join(filter(None, (fact.actor, fact.verb, fact.subject)))
    what = fact.tool or fact.tool_version or fact.what
    if fact.tool and fact.tool_version:
        what = f"{fact.tool} {fact.tool_version}"
    why = f" ({fact.error_type})" if fact.error_type else ""
    return f"{what}: {_ACTIVITIES[fact.what].lower()}, {fact.outcome}{why}"
