"""Decisions about calls in spans: of guardrails, and approvals on spans of tools.

Pure. Sources: the proposed `run_guardrail` span of semantic-conventions-genai (pull requests 262
and 427: `gen_ai.guardrail.*`, `gen_ai.security.*`; before `apply_guardrail`), OpenInference's span
kind GUARDRAIL, and the approval attributes `gen_ai.tool.approval.*` and
`openclaw.tool.approval.*` of spans of tools. They are proposals, so unknown words decide nothing.

A guardrail that lets a call pass makes no decision. Several guardrails judge one call, and a
decision that allows it would hide an earlier one that refused it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from tooltrail.events import NAME_MAX_LENGTH

from audit.events.decode import is_too_deep
from audit.events.instants import instant_of
from audit.events.spans import Span, event_uuid, span_uuid
from audit.intake.otlp.conventions import MAPPING_VERSION, deployed, read_context
from audit.intake.otlp.facts import Facts, read_value, short_id
from audit.intake.otlp.outcomes import ABSENT, ADK_SCOPES, decoded, first_text

GUARDRAIL_OPERATIONS = ("run_guardrail", "apply_guardrail")
_LONGEST_MS = 366 * 86_400_000
"""A longer time to an answer is considered a mistake and ignored."""

_ANSWERS = {
    **dict.fromkeys(("block", "blocked", "deny", "denied", "reject", "rejected"), "denied"),
    **dict.fromkeys(("escalate", "ask", "pending", "pending_approval"), "awaiting"),
    **dict.fromkeys(("requires_approval", "require_approval"), "awaiting"),
    **dict.fromkeys(("cancel", "cancelled", "canceled", "timeout", "expired"), "cancelled"),
}
_APPROVED = frozenset(
    {"allow", "allowed", "approve", "approved", "allow-once", "allow-always", "allow_once"}
)
_TARGETS = ("gen_ai.guardrail.target.", "gen_ai.security.target.")
_TOOL_NAME = ("gen_ai.tool.name", "tool.name", "tool_call.function.name")
_TOOL_CALL_ID = ("gen_ai.tool.call.id", "tool_call.id", "tool.id")
_APPROVALS = ("gen_ai.tool.approval.", "openclaw.tool.approval.")
APPROVERS = tuple(f"{prefix}approver" for prefix in _APPROVALS)
"""Attributes with the person who approved or refused a call."""
_APPROVAL_NAMES = tuple(
    f"{prefix}{name}" for prefix in _APPROVALS for name in ("requested", "resolution")
)
_ADK_ANSWERS = {
    "This tool call requires confirmation, please approve or reject.": "awaiting",
    "This tool call is rejected.": "denied",
}
"""What Google ADK (Python, Java, Go, JavaScript) returns in place of a tool's result."""


class Decided(NamedTuple):
    """A decision that a span states. Instants are nanoseconds since 1970."""

    span: Span
    convention: str
    decision: str
    at_ns: int
    tool_name: str | None
    tool_call_id: str | None
    of_span: tuple[str, str] | None
    """The key of the call's own span, if it is known."""
    by: dict[str, Any] | None
    reason: str | None
    args: Any = ABSENT
    above: Mapping[str, str] = {}
    """The `context` members in the spans above it."""


def guardrail_decision(span: Span, around: Facts | None) -> Decided | None:
    """What a guardrail decided about a call of a tool; None if it decided nothing.

    `around` is the tool's span directly around it, if there is one.
    """
    attributes = span.attributes
    if attributes.get("gen_ai.operation.name") in GUARDRAIL_OPERATIONS:
        if _first(attributes, _TARGETS, "subtype") not in ("tool_call", None):
            return None
        if _first(attributes, _TARGETS, "type") in ("output", "tool_result", "llm_output"):
            return None  # about what the call returned
        call_id = _first(attributes, _TARGETS, "id") or first_text(attributes, _TOOL_CALL_ID)
        word = first_text(
            attributes,
            (
                *("gen_ai.guardrail.action.type", "gen_ai.security.action.type"),
                *("gen_ai.guardrail.verdict.type", "gen_ai.security.verdict.type"),
                "gen_ai.security.decision.type",
            ),
        )
        convention = "gen_ai.guardrail"
    elif attributes.get("openinference.span.kind") == "GUARDRAIL":
        call_id = first_text(attributes, _TOOL_CALL_ID)
        word = first_text(attributes, ("metadata.action", "output.value"))
        convention = "openinference.guardrail"
    else:
        return None
    decision = _ANSWERS.get((word or "").casefold())
    name = first_text(attributes, _TOOL_NAME) or (around.tool_name if around else None)
    if decision is None or (call_id is None and name is None):
        return None
    component = first_text(
        attributes,
        (
            *("gen_ai.guardrail.component.name", "gen_ai.security.guardrail.name"),
            *("gen_ai.guardian.name", "guardrail.name"),
        ),
    )
    reason = ("gen_ai.guardrail.verdict.reason", "gen_ai.security.verdict.reason")
    policy = ("gen_ai.guardrail.security.policy.id", "gen_ai.security.policy.id")
    identity = first_text(attributes, policy) or component
    return Decided(
        span=span,
        convention=convention,
        decision=decision,
        at_ns=max(span.end_time_unix_nano, span.start_time_unix_nano),
        tool_name=name,
        tool_call_id=call_id or (around.tool_call_id if around else None),
        of_span=around.span.key if around else None,
        by={"kind": "guardrail", "id": short_id(identity), "name": component or span.name},
        reason=first_text(attributes, reason),
        args=read_value(attributes.get("gen_ai.guardrail.security.content.input.value", ABSENT)),
    )


def approval_decisions(facts: Facts) -> list[Decided]:
    """What a tool's span says of its approval: the request, and its answer; none without both.

    A span that waits for an approval begins with the request.
    """
    if (answer := _adk_answer(facts)) is not None:
        return [_of_adk(facts, answer)]
    attributes = facts.span.attributes
    if attributes.keys().isdisjoint(_APPROVAL_NAMES):
        return []
    word = (_first(attributes, _APPROVALS, "resolution") or "").casefold()
    answer = "approved" if word in _APPROVED else _ANSWERS.get(word)
    requested = any(attributes.get(f"{prefix}requested") is True for prefix in _APPROVALS)
    start = facts.span.start_time_unix_nano
    approver = first_text(attributes, APPROVERS)
    by = (
        None if approver is None else {"kind": "person", "id": short_id(approver), "name": approver}
    )
    decided = []
    if requested or answer == "awaiting":
        decided.append(_of_tool(facts, "awaiting", start, None))
    if answer not in (None, "awaiting"):
        waited_ms = next(
            (
                value
                for prefix in _APPROVALS
                if isinstance(value := attributes.get(f"{prefix}duration_ms"), int | float)
                and 0 <= value <= _LONGEST_MS
            ),
            # A tool that was refused did not run, so its span ended with the answer.
            0 if answer == "approved" else max(facts.span.end_time_unix_nano - start, 0) / 1e6,
        )
        # After the request, also if both were at the same time.
        at_ns = max(start + round(waited_ms * 1e6), start + 1000 * len(decided))
        decided.append(_of_tool(facts, answer, at_ns, by))
    return decided


def has_run(facts: Facts, approvals: Sequence[Decided]) -> bool:
    """Whether the call of a tool's span ran, by the decisions in the span."""
    if not approvals or approvals[-1].decision == "approved":
        return True
    if _adk_answer(facts) is not None:
        return False
    # A result or a status of a call that only waits shows that it ran without an answer.
    return approvals[-1].decision == "awaiting" and facts.has_failed is not None


def _adk_answer(facts: Facts) -> str | None:
    """The decision for which Google ADK's fixed result of a tool stands; None for any other."""
    if facts.span.scope.name not in ADK_SCOPES:
        return None
    match decoded(facts.result):
        case {"error": str(text), **rest} if not rest:
            return _ADK_ANSWERS.get(text)
    return None


def _of_adk(facts: Facts, decision: str) -> Decided:
    """Its span began and ended with the answer."""
    by = {"kind": "person"} if decision == "denied" else None
    return _of_tool(facts, decision, facts.span.start_time_unix_nano, by)


def to_event(one: Decided, invocation_ids: Mapping[tuple[str, str], UUID]) -> bytes:
    """The decision as a line of JSON of the wire contract.

    The tool call id names the call. Without one, its span does: `invocation_ids` has the ids of
    calls by the keys of their spans.
    """
    span = one.span
    invocation_id = None
    if short_id(one.tool_call_id) is None and one.of_span is not None:
        invocation_id = invocation_ids.get(one.of_span) or span_uuid(*one.of_span)
    event: dict[str, Any] = {
        "type": "toolCallDecision",
        "event_id": event_uuid(f"{span.trace_id}/{span.span_id}", one.decision, [span.span_id]),
        "invocation_id": invocation_id,
        "trace_id": span.trace_id,
        "tool_name": (one.tool_name or span.name or one.convention)[:NAME_MAX_LENGTH],
        "tool_call_id": short_id(one.tool_call_id),
        "run_id": short_id(first_text(span.attributes, ("gen_ai.conversation.id", "session.id"))),
        "requested_by": short_id(first_text(span.attributes, ("user.id", "enduser.id"))),
        "decided_at": instant_of(one.at_ns // 1000).isoformat(),
        "decision": one.decision,
        "by": one.by,
        "reason": one.reason,
        "context": {**one.above, **read_context(span), **deployed(span.resource)} or None,
    }
    event = {name: value for name, value in event.items() if value is not None}
    if one.args is not ABSENT:
        event["args"] = one.args
    source = {"mapping_version": MAPPING_VERSION, "convention": one.convention}
    line = msgspec.json.encode(event | {"otlp": source | {"span": span}})
    return msgspec.json.encode(event | {"otlp": source}) if is_too_deep(line) else line


def _of_tool(facts: Facts, decision: str, at_ns: int, by: dict[str, Any] | None) -> Decided:
    return Decided(
        span=facts.span,
        convention=facts.convention,
        decision=decision,
        at_ns=at_ns,
        tool_name=facts.tool_name,
        tool_call_id=facts.tool_call_id,
        of_span=facts.span.key,
        by=by,
        reason=None,
        args=facts.arguments,
    )


def _first(attributes: dict[str, Any], prefixes: tuple[str, ...], name: str) -> str | None:
    return first_text(attributes, tuple(f"{prefix}{name}" for prefix in prefixes))
