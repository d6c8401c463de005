"""Which trace, context and call the running code belongs to.

A scope follows the code through `await`, tasks and `asyncio.to_thread`, by `contextvars`. A
plain thread starts without a scope, unless it runs a function made by `Trail.carry`.
"""

import os
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from uuid_utils import uuid4

from tooltrail.capture import encode_json
from tooltrail.current_span import current_span
from tooltrail.events import ID_MAX_LENGTH

if TYPE_CHECKING:
    from tooltrail.recording import Call

DIMENSIONS: Final = (
    "agent",
    "agent_version",
    "model",
    "provider",
    "principal",
    "environment",
    "service",
    "service_version",
)
"""Parts of the member `context` that can be given by name."""
CONTEXT_MEMBERS = frozenset(
    {
        *DIMENSIONS,
        "conversation",
        "turn_id",
        "run_id",
        "ingestion_run_id",
        "workflow_id",
        "collection_id",
        "document_id",
        "document_version_id",
        "case_id",
        "locale",
        "safety_mode",
        "timeouts_ms",
        "budget_tokens",
        "context",
        "model_usage",
        "tool_call_id",
        "idempotency_key",
    }
)
_OF_ONE_CALL = frozenset({"tool_call_id", "model_usage", "idempotency_key", "timeouts_ms"})
"""Not inherited by calls inside the call."""
_OF_AGENT = ("agent_version", "model", "provider")
"""Parts of the context that another agent does not inherit."""
_COUNTS = ("timeouts_ms", "budget_tokens")
_RUNS = {"run_id": "ingestion_run_id", "ingestion_run_id": "run_id"}


@dataclass(slots=True)  # made in half the time of a named tuple; never changed
class Scope:
    """What calls made here have in common. `text` holds it as JSON members, each with a comma.

    `parent_id` is the invocation that encloses them, `call` the handle of the innermost call.
    `span` is the OpenTelemetry span in which that call started, as a traceparent.
    """

    trace_id: str
    members: dict[str, Any]
    text: bytes
    parent_id: str | None = None
    call: "Call | None" = None
    span: str | None = None


_scope: ContextVar[Scope | None] = ContextVar("tooltrail_scope", default=None)
current_scope = _scope.get
enter_scope = _scope.set
leave_scope = _scope.reset


def fresh_trace_id() -> str:
    """The trace id of OpenTelemetry's current span; without one a new id of the same form."""
    return trace_id_in(current_span())


def trace_id_in(span: str | None) -> str:
    """The trace id of a span given as a traceparent; without one a new trace id."""
    return uuid4().hex if span is None else span[3:35]


def make_scope(
    trace_id: str | None, parent_invocation_id: str | None, context: dict[str, Any]
) -> Scope:
    """Make a scope inside the current one, which inherits its trace and context.

    With another trace id the scope leaves the current call: its calls are not nested in it.
    Setting one of the two run ids replaces the other. A conversation is a run.
    """
    outer = _scope.get()
    members = dict(outer.members if outer else deployed())
    parts = {}
    for name, value in context.items():
        if value is None or value in ("", {}):
            continue
        if name in DIMENSIONS:
            parts[name] = value
            continue
        if name == "conversation":
            name = "run_id"
        if name in _RUNS:
            members.pop(_RUNS[name], None)
        if name == "context":
            parts = dict(value) | parts
        elif name == "model_usage":
            members[name] = {part: int(count) for part, count in value.items()}
        else:
            members[name] = value if name in _COUNTS else str(value)[:ID_MAX_LENGTH]
    if parts:
        members["context"] = _context_inside(members.get("context", {}), parts)
    same_trace = outer is not None and trace_id in (None, "", outer.trace_id)
    if outer is not None and same_trace:
        chosen, parent, call, span = outer.trace_id, outer.parent_id, outer.call, outer.span
    else:
        chosen = str(trace_id)[:ID_MAX_LENGTH] if trace_id else fresh_trace_id()
        parent, call, span = None, None, None
    parent = parent_invocation_id or parent
    return Scope(
        trace_id=chosen,
        members=members,
        text=_members_text(chosen, members),
        parent_id=parent,
        call=call,
        span=span,
    )


def scope_of_call(outer: Scope | None, call: "Call") -> Scope:
    """The scope inside a call: the same trace, with the call as parent."""
    # By position, for each call: by name, it takes half as long again.
    if outer is None:
        members = deployed()
        # A trace id is hexadecimal: nothing to escape.
        text = b'"trace_id":"%b",%b' % (call.trace_id.encode(), _deployed_text())
        return Scope(call.trace_id, members, text, call.id, call, call.span)
    if _OF_ONE_CALL.isdisjoint(outer.members):
        return Scope(outer.trace_id, outer.members, outer.text, call.id, call, call.span)
    members = {k: v for k, v in outer.members.items() if k not in _OF_ONE_CALL}
    return Scope(
        outer.trace_id, members, _members_text(outer.trace_id, members), call.id, call, call.span
    )


@cache
def deployed() -> dict[str, Any]:
    """What OpenTelemetry's environment variables say of this process: service and environment."""
    named = {}
    for pair in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        name, _, value = pair.partition("=")
        named[name.strip()] = unquote(value.strip())
    parts = {
        "service": os.environ.get("OTEL_SERVICE_NAME") or named.get("service.name"),
        "service_version": named.get("service.version"),
        "environment": named.get("deployment.environment.name")
        or named.get("deployment.environment"),
    }
    context = _context_inside({}, {name: value for name, value in parts.items() if value})
    return {"context": context} if context else {}


@cache
def _deployed_text() -> bytes:
    members = deployed()
    return encode_json(members)[1:-1] + b"," if members else b""


def _context_inside(outer: Mapping[str, str], parts: Mapping[str, Any]) -> dict[str, str]:
    """The context with these parts. Another agent brings its own version and model."""
    given = {name: str(value)[:ID_MAX_LENGTH] for name, value in parts.items()}
    changes = given.get("agent") not in (None, outer.get("agent"))
    kept = {name: text for name, text in outer.items() if not (changes and name in _OF_AGENT)}
    return kept | given


def _members_text(trace_id: str, members: dict[str, Any]) -> bytes:
    text = encode_json({"trace_id": trace_id, **members})
    return text[1:-1] + b","
