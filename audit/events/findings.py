"""What the server found in an output, as an event of the log. Pure.

Its raw is JSON: `type` ("finding"), `event_id`, `at`, `invocation_id`, `end_position` (of the end
it is about, in the same batch), the version it was judged by, and the violations.
"""

from uuid import UUID

import msgspec

from audit.events import wire
from audit.events.decode import without_unsafe_escapes

STRATEGY, OUTCOME = "on-arrival", "unguarded"
"""What stands with such a violation in the place of a guard's."""


class Finding(msgspec.Struct, frozen=True, gc=False):
    """What was found in one output."""

    members: bytes
    """The event's members that say it, as JSON; of what is read from the log none are needed."""
    violations: tuple[wire.FoundViolation, ...]


class FindingEvent(msgspec.Struct, tag_field="type", tag="finding", frozen=True, gc=False):
    """Such an event as it is read from the log."""

    event_id: UUID
    invocation_id: UUID
    end_position: int
    violations: tuple[wire.FoundViolation, ...]


class _Members(msgspec.Struct):
    violations: tuple[wire.FoundViolation, ...]


_MEMBERS = msgspec.json.Decoder(_Members)
_EVENT = msgspec.json.Decoder(FindingEvent)


def read_finding(members: bytes) -> Finding:
    """A finding of its members; texts are such as PostgreSQL holds."""
    return Finding(members, _MEMBERS.decode(without_unsafe_escapes(members)).violations)


def read_finding_event(raw: bytes) -> FindingEvent | None:
    """A logged event, if it is one that says what was found."""
    if not raw.startswith(b'{"type": "finding"'):
        return None
    try:
        return _EVENT.decode(without_unsafe_escapes(raw))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
