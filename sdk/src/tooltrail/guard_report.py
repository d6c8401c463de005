"""Writes an output guard's verdict in the form of the wire contract, without secrets.

A verdict quotes the output: in its violations, in the received value, and in the texts of both.
What redaction removes from the output is removed here, too.
"""

from typing import Any

from pydantic import ValidationError

from tooltrail.capture import Capture, encode_json
from tooltrail.events import VIOLATIONS_MAX, GuardReport
from tooltrail.guard import GuardOutcome, Violation
from tooltrail.redact import Note

OUTPUT_DATA = "$.output.data"
"""The path of an output's data in an event. The user's redaction paths refer to it."""

PASSED = object()
"""Marks that the caller got exactly what the tool returned."""

_RECEIVED = "$.guard.received"
_QUOTED_VALUES = ("received_value", "coerced_value")


def guard_text(
    verdict: GuardOutcome | GuardReport, capture: Capture, notes: list[Note], received: Any
) -> bytes:
    """Write a guard's verdict in the form of the wire contract, without secrets.

    `received` is what the tool returned, or `PASSED` if the caller got exactly that. Removals
    are added to `notes`.
    """
    own: list[Note] = []
    violations = [
        _cleaned(violation, index, capture, own)
        for index, violation in enumerate(verdict.violations[:VIOLATIONS_MAX])
    ]
    text = b""
    if received is not PASSED and own:
        # A JSON text can hide a secret that appears only after coercion.
        own.append({"path": _RECEIVED, "reason": own[0]["reason"]})
    elif received is not PASSED:
        # The user's paths refer to the output's data; the notes refer to `received` itself.
        received_notes: list[Note] = []
        text = b',"received":' + capture.encode(received, OUTPUT_DATA, received_notes)
        own += [
            each | {"path": _RECEIVED + each["path"][len(OUTPUT_DATA) :]} for each in received_notes
        ]
    notes += own
    if len(verdict.violations) > VIOLATIONS_MAX:
        reason = f"{len(verdict.violations)} violations, the first are kept"
        notes.append({"path": "$.guard.violations", "reason": reason})
    return b'{"strategy":"%b","outcome":"%b","violations":%b%b}' % (
        verdict.strategy.encode(),
        verdict.outcome.encode(),
        encode_json(violations),
        text,
    )


def report_text(report: Any, capture: Capture, notes: list[Note]) -> bytes:
    """Write a report from another source in the same form. Accepts both styles of names."""
    try:
        read = GuardReport.model_validate(report)
    except ValidationError:  # the server will report what is wrong with it
        return capture.encode(report, "$.guard", notes)
    received = read.received if "received" in read.model_fields_set else PASSED
    return guard_text(read, capture, notes, received)


def _cleaned(
    violation: Violation, index: int, capture: Capture, notes: list[Note]
) -> dict[str, Any]:
    """A violation without the received values that are secret."""
    members: dict[str, Any] = violation.model_dump(exclude_unset=True)
    place = f"$.guard.violations[{index}]"
    redactor = capture.redactor
    if capture.mode != "full":
        reason: str | None = "not captured"
    elif redactor is None:
        return members
    else:
        data_path = f"{OUTPUT_DATA}{violation.path[1:]}"  # the path that the user's paths match
        reason = redactor.reason_at(data_path)
        for name in _QUOTED_VALUES:
            if reason is None and name in members:
                removed = redactor.clean(members[name], data_path)[1]
                reason = removed[0]["reason"] if removed else None
    if reason is None and redactor is not None:
        members, removed = redactor.clean(members, place)
        notes += removed
        return members
    notes.append({"path": place, "reason": str(reason)})
    return without_quotes(members)


def without_quotes(members: dict[str, Any]) -> dict[str, Any]:
    """The members of a violation without the value that was received, and without its quotes."""
    # For enums, constants and patterns these texts quote the value.
    empty = {name: "" for name in ("received", "message", "llm_message") if name in members}
    kept = {name: value for name, value in members.items() if name not in _QUOTED_VALUES}
    return kept | empty
