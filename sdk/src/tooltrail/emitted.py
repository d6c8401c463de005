"""Writes an event that is given by its members, such as a decision or an event of an ADK turn.

`recording` writes those of decorated calls, faster.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tooltrail import decisions
from tooltrail.capture import Capture, encode_json
from tooltrail.guard_report import report_text
from tooltrail.redact import Note

_NOT_PLAIN = frozenset(
    {"args", "output", "guard", "removed", "auth", "producer_id", "producer_seq"}
)
_PRIVATE = frozenset({"violations", "reason", "by"})


def emitted_text(event: Mapping[str, Any], capture: Capture, ids: Callable[[], str]) -> bytes:
    """The event as JSON text without its closing brace; its payloads as `capture` keeps them.

    An event without an `event_id` gets one. A value that is not plain data may raise
    any exception.
    """
    notes: list[Note] = list(event.get("removed", ()))
    is_decision = event.get("type") == decisions.TYPE
    left_out = _NOT_PLAIN | _PRIVATE if is_decision else _NOT_PLAIN
    head = {name: value for name, value in event.items() if name not in left_out}
    head.setdefault("event_id", ids())
    if is_decision:  # its line begins with its type, by which the shipper knows it
        head = {"type": decisions.TYPE, **head}
    elif head.get("call_state") is not None:  # likewise
        head = {"type": head.get("type"), "call_state": head["call_state"], **head}
    text = encode_json(head)[:-1]
    for name in ("args", "output"):
        if name in event:
            payload = capture.encode(event[name], f"$.{name}", notes)
            text += b',"%b":%b' % (name.encode(), payload)
    if "guard" in event:
        text += b',"guard":' + report_text(event["guard"], capture, notes)
    if is_decision:
        text += decisions.members_text(decisions.private_members(event, capture, notes))
    if notes:
        text += b',"removed":' + encode_json(notes)
    return text
