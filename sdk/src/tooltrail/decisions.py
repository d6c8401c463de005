"""Makes decisions about calls, and writes their parts that may quote arguments, without secrets.

Owns when and where a decision is made, and the redaction of its violations, reason and decider.
`Trail.emit` writes the rest of the event.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import ValidationError

from tooltrail.call_ids import call_id_of
from tooltrail.capture import Capture, encode_json
from tooltrail.errors import ValidationException
from tooltrail.events import ID_MAX_LENGTH, VIOLATIONS_MAX, decided_call_id
from tooltrail.guard.violations import Violation
from tooltrail.guard_report import without_quotes
from tooltrail.redact import Note
from tooltrail.scope import current_scope, make_scope
from tooltrail.tools.refusals import violations_of

TYPE: Final = "toolCallDecision"


def refusal(
    tool: str, version: str | None, args: Any, error: ValidationException
) -> dict[str, Any]:
    """The members of the decision that these arguments violate the tool's input schema."""
    return {
        "tool_name": tool,
        "tool_version": version,
        "decision": "rejectedArguments",
        "call_id": call_id_of(tool, args),
        "definition_digest": version,
        "args": args,
        "violations": violations_of(error),
    }


def placed(
    members: Mapping[str, Any], ids: Callable[[], str], clock: Callable[[], datetime] | None
) -> dict[str, Any]:
    """A decision with these members, made now, in the current trace and call.

    Members without a value are left out. Without an invocation id, all decisions with the same
    provider's id in the trace are about one call; one without that id is about a call of its own.
    """
    scope = current_scope() or make_scope(None, None, {})
    now = datetime.now(UTC) if clock is None else clock()
    event = {
        "type": TYPE,
        **scope.members,
        "trace_id": scope.trace_id,
        "parent_invocation_id": scope.parent_id,
        "decided_at": now.isoformat(),
        **{name: value for name, value in members.items() if value is not None},
    }
    provider_id = str(event.pop("tool_call_id", None) or "")[:ID_MAX_LENGTH]
    if provider_id:
        event["tool_call_id"] = provider_id
    if "invocation_id" not in event:
        named = decided_call_id(event["trace_id"], provider_id) if provider_id else ids()
        event["invocation_id"] = str(named)
    return {name: value for name, value in event.items() if value is not None}


def private_members(
    event: Mapping[str, Any], capture: Capture, notes: list[Note]
) -> dict[str, Any]:
    """The decision's violations, reason and decider as they may be sent.

    Removals are added to `notes`. Only members that the event has are returned.
    """
    members: dict[str, Any] = {}
    if "violations" in event:
        members["violations"] = _violations(event["violations"], capture, notes)
    for name in ("reason", "by"):
        if event.get(name) is not None:
            members[name] = _text(event[name], name, capture, notes)
    return members


def _text(value: Any, name: str, capture: Capture, notes: list[Note]) -> Any:
    if name == "reason" and capture.mode != "full":
        notes.append({"path": "$.reason", "reason": "not captured"})
        return None
    if capture.redactor is None:
        return value
    cleaned, removed = capture.redactor.clean(value, f"$.{name}")
    if name == "by" and isinstance(value, Mapping) and isinstance(cleaned, dict):
        # Kind and id say who decided; a decision without them is invalid or means nothing.
        kept = {each: value[each] for each in ("kind", "id") if each in value}
        cleaned |= kept
        removed = [note for note in removed if note["path"].rpartition(".")[2] not in kept]
    notes += removed
    return cleaned


def _violations(listed: Sequence[Any], capture: Capture, notes: list[Note]) -> list[Any]:
    try:
        read = [Violation.model_validate(each) for each in listed[:VIOLATIONS_MAX]]
    except (ValidationError, TypeError):  # the server will report what is wrong with it
        return [] if capture.mode != "full" or capture.redactor is not None else list(listed)
    return [_cleaned(each, index, capture, notes) for index, each in enumerate(read)]


def _cleaned(
    violation: Violation, index: int, capture: Capture, notes: list[Note]
) -> dict[str, Any]:
    """A violation without the parts that quote a secret argument."""
    members: dict[str, Any] = violation.model_dump(exclude_unset=True)
    redactor, place = capture.redactor, f"$.violations[{index}]"
    if capture.mode == "full" and redactor is None:
        return members
    reason: str | None = "not captured"
    if capture.mode == "full" and redactor is not None:
        # The user's paths refer to the arguments.
        reason = redactor.reason_at(f"$.args{violation.path[1:]}")
        if reason is None:
            members, removed = redactor.clean(members, place)
            notes += removed
            return members
    notes.append({"path": place, "reason": str(reason)})
    return without_quotes(members)


def members_text(members: Mapping[str, Any]) -> bytes:
    """Members as JSON text, each after a comma."""
    return b",%b" % encode_json(members)[1:-1] if members else b""
