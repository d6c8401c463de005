"""Records in the manner of the Elastic Common Schema 9. Pure.

The JSON Schema is `docs/schemas/stream-ecs-1.json`. What proves the record is in `tooltrail`.
https://www.elastic.co/docs/reference/ecs
"""

from typing import Any, Final

from audit.stream.facts import Fact, severity_of
from audit.stream.place import Place, rfc3339

VERSION: Final = "9.2.0"
_SEVERITIES: Final = {"informational": 1, "low": 2, "medium": 3, "high": 4}
_TYPES: Final = {
    "start": "start",
    "interim": "info",
    "end": "end",
    "gap": "info",
    "finding": "info",
    "unknown": "info",
}
_CRUD: Final = {
    **dict.fromkeys(("create", "add", "set", "publish", "invite", "make", "start"), "creation"),
    **dict.fromkeys(("view", "read", "reveal", "list", "export", "search", "open"), "access"),
    **dict.fromkeys(("delete", "remove", "erase", "revoke", "discard", "forget"), "deletion"),
}
_OUTCOMES: Final = {
    "ok": "success",
    "approved": "success",
    "failed": "failure",
    "lost": "failure",
    "unguarded": "failure",
}


def document(fact: Fact, place: Place) -> dict[str, Any]:
    """The record of a fact, without what proves it and without the event's bytes."""
    source = place.source
    event: dict[str, Any] = {
        "id": place.uid,
        "kind": "event",
        "category": ["configuration" if fact.what == "action" else "api"],
        "type": [_type(fact)],
        "action": fact.verb or f"tool-call-{fact.what}",
        "outcome": _OUTCOMES.get(fact.outcome, "unknown"),
        "dataset": f"tooltrail.{source.of}",
        "module": "tooltrail",
        "provider": source.host,
        "sequence": place.index,
        "severity": _SEVERITIES[severity_of(fact)],
        "created": rfc3339(place.received_us),
    }
    if fact.started_us is not None:
        event["start"] = rfc3339(fact.started_us)
    if fact.ended_us is not None:
        event["end"] = rfc3339(fact.ended_us)
    if fact.duration_us is not None:
        event["duration"] = fact.duration_us * 1000
    if fact.reason is not None:
        event["reason"] = fact.reason
    record: dict[str, Any] = {
        "@timestamp": rfc3339(fact.at_us),
        "ecs": {"version": VERSION},
        "event": event,
        "message": _message(fact),
        "organization": {"id": source.tenant_id, "name": source.tenant_slug},
        "observer": {"vendor": "Tooltrail", "product": "Tooltrail", "version": source.version},
    }
    if fact.what == "action":
        record["user"] = {"name": fact.actor or "Tooltrail"}
        if fact.subject is not None:
            record["labels"] = {"subject": fact.subject}
    else:
        record |= _call(fact)
    return record


def _call(fact: Fact) -> dict[str, Any]:
    ids = dict(fact.ids)
    members: dict[str, Any] = {}
    if (trace := ids.pop("trace_id", None)) is not None:
        members["trace"] = {"id": trace}
    if fact.service is not None or fact.environment is not None:
        members["service"] = _present(name=fact.service, environment=fact.environment)
    if fact.principal is not None:
        members["user"] = {"id": fact.principal}
    members["gen_ai"] = _gen_ai(fact, ids)
    error = _present(type=fact.error_type, code=fact.error_code, message=fact.error_message)
    if error:
        members["error"] = error
    labels = ids | _present(
        outcome=fact.outcome,
        tool_version=fact.tool_version,
        mcp_server=fact.mcp_server,
        mcp_client=fact.mcp_client,
        mcp_protocol=fact.mcp_protocol,
        decided_by=fact.decided_by,
    )
    if fact.invocation_id is not None:
        labels["invocation_id"] = str(fact.invocation_id)
    members["labels"] = labels
    extras: dict[str, Any] = {}
    if fact.violations:
        extras["violations"] = [
            {"path": each.path, "code": each.code, "severity": each.severity}
            for each in fact.violations
        ]
    if fact.lost is not None:
        extras["lost_events"] = fact.lost
    if extras:
        members["tooltrail_event"] = extras
    return members


def _gen_ai(fact: Fact, ids: dict[str, str]) -> dict[str, Any]:
    gen_ai: dict[str, Any] = {"operation": {"name": "execute_tool"}}
    tool: dict[str, Any] = _present(name=fact.tool)
    if (call := ids.pop("tool_call_id", None)) is not None:
        tool["call"] = {"id": call}
    if tool:
        gen_ai["tool"] = tool
    if fact.agent is not None:
        gen_ai["agent"] = _present(name=fact.agent, version=fact.agent_version)
    if fact.model is not None:
        gen_ai["request"] = {"model": fact.model}
    if fact.provider is not None:
        gen_ai["provider"] = {"name": fact.provider}
    if (run := ids.pop("run_id", None)) is not None:
        gen_ai["conversation"] = {"id": run}
    if fact.prompt_tokens is not None or fact.completion_tokens is not None:
        gen_ai["usage"] = {
            "input_tokens": fact.prompt_tokens or 0,
            "output_tokens": fact.completion_tokens or 0,
        }
    return gen_ai


def _type(fact: Fact) -> str:
    if fact.what == "action":
        return _CRUD.get((fact.verb or "").rpartition(".")[2], "change")
    if fact.what == "decision":
        return {"denied": "denied", "approved": "allowed"}.get(fact.outcome, "info")
    return _TYPES[fact.what]


def _message(fact: Fact) -> str:
    if fact.what == "action":
        return " ".join(filter(None, (fact.actor, fact.verb, fact.subject)))
    why = f" ({fact.error_type})" if fact.error_type else ""
    return f"{fact.tool or 'tooltrail'} {fact.what} {fact.outcome}{why}"


def _present(**members: str | None) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
