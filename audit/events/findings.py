"""Findings: what the server found wrong with an output, as events of the log. Pure.

The raw bytes are JSON: `type` ("finding"), `event_id`, `at`, `invocation_id`, `end_position` (the
position of its end event in the same batch), the version it was validated against, and the
violations.
"""

from uuid import UUID

import msgspec

from audit.events import wire
from audit.events.decode import without_unsafe_escapes

STRATEGY, OUTCOME = "on-arrival", "unguarded"
"""Strategy and outcome stored with such violations, in place of a guard's."""


class Finding(msgspec.Struct, frozen=True, gc=False):
    """The violations in one output."""

    members: bytes
    """JSON members of the finding event; empty for findings read from the log, which need none."""
    violations: tuple[wire.Violation, ...]


class FindingEvent(msgspec.Struct, tag_field="type", tag="finding", frozen=True, gc=False):
    """A finding event as read from the log."""

    event_id: UUID
    invocation_id: UUID
    end_position: int
    violations: tuple[wire.Violation, ...]


class _Members(msgspec.Struct):
    violations: tuple[wire.Violation, ...]


_MEMBERS = msgspec.json.Decoder(_Members)
_EVENT = msgspec.json.Decoder(FindingEvent)


def read_finding(members: bytes) -> Finding:
    """Make a finding from its JSON members. Its texts can be stored by PostgreSQL."""
    return Finding(members, _MEMBERS.decode(without_unsafe_escapes(members)).violations)


def read_finding_event(raw: bytes) -> FindingEvent | None:
    """Read a logged event as a finding; None if it is another event."""
    if not raw.startswith(b'{"type": "finding"'):
        return None
    try:
        return _EVENT.decode(without_unsafe_escapes(raw))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
