"""Definitions of tools in spans: what an agent offered to a model, as events `toolDefinitions`.

Agents send the attribute with each request to a model, nearly always with the same content. So each
process remembers for `BELIEVED_FOR` seconds which lists it has stored, and leaves equal ones out.
The attribute is a list, or its JSON as text; tools in it that the contract does not take are left
out, too. A span does not name the servers of its tools. Its agent stands in for them.
"""

import hashlib
import json
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from tooltrail.events import NAME_MAX_LENGTH

from audit.events.body import Line
from audit.events.candidates import read_lines
from audit.events.decode import is_too_deep, without_unsafe_escapes
from audit.events.definitions import Sighting, usable_tools
from audit.events.instants import instant_of
from audit.events.limits import MAX_LINE_BYTES
from audit.events.redaction import redacted
from audit.events.spans import Span
from audit.intake.otlp.outcomes import first_text
from tenants.models import new_id

ATTRIBUTE: Final = "gen_ai.tool.definitions"
BELIEVED_FOR: Final = 60.0
"""Seconds in which a process stores an equal list of an agent once."""
LISTS_MAX: Final = 20
"""Different lists of one request that are read."""
UNNAMED: Final = "unnamed agent"

_DEPTH_MAX: Final = 56  # the event around the list needs a few of its 64 levels
_KNOWN_MAX: Final = 10_000

type _Key = tuple[UUID, str, bytes]


class ServedLists:
    """The lists in the spans of one request that this process has not stored lately."""

    def __init__(self, tenant_id: UUID, spans: Iterable[Span]) -> None:
        self._tenant_id = tenant_id
        self._lists: dict[_Key, tuple[Span, bytes]] = {}
        for span in spans:
            if ATTRIBUTE in span.attributes and len(self._lists) < LISTS_MAX:
                self._take(span)

    def sightings(self, now: datetime) -> list[Sighting]:
        """What the lists say, redacted. Raises django.db.OperationalError as `redacted` does."""
        if not self._lists:
            return []
        events = [_event(span, text) for span, text in self._lists.values()]
        lines = [Line(at, raw) for at, raw in enumerate(events, 1) if raw is not None]
        return read_lines(redacted(self._tenant_id, lines, is_otlp=True), new_id(), now).sightings

    def remember(self) -> None:
        """Leave equal lists out for a while. Call it when these are stored."""
        if len(_KNOWN) + len(self._lists) > _KNOWN_MAX:
            _KNOWN.clear()
        until = time.monotonic() + BELIEVED_FOR
        _KNOWN.update(dict.fromkeys(self._lists, until))

    def _take(self, span: Span) -> None:
        value = span.attributes[ATTRIBUTE]
        try:
            text = (value if isinstance(value, str) else json.dumps(value)).encode()
        except (ValueError, RecursionError):  # a lone surrogate
            return
        key = (self._tenant_id, _source(span)[0], hashlib.sha256(text).digest())
        if _KNOWN.get(key, 0.0) <= time.monotonic():
            self._lists.setdefault(key, (span, text))


_KNOWN: dict[_Key, float] = {}


def _event(span: Span, text: bytes) -> bytes | None:
    """The list as a line of the contract; None if it has no usable tool."""
    tools = _parsed(text)
    if isinstance(tools, list):
        tools = [_parsed(each.encode()) if isinstance(each, str) else each for each in tools]
    if not (usable := usable_tools(tools)):
        return None
    name, version = _source(span)
    service = first_text(span.resource, ("service.name",))
    event: dict[str, Any] = {
        "type": "toolDefinitions",
        "seen_at": instant_of(span.start_time_unix_nano // 1000).isoformat(),
        "server": {"name": name, "version": version},
        "client": {"name": service[:NAME_MAX_LENGTH]} if service else None,
        "tools": usable,
    }
    # Not by msgspec, which encodes no lone surrogates and no long numbers.
    raw = json.dumps(event).encode()
    return raw if len(raw) <= MAX_LINE_BYTES else None


def _parsed(text: bytes) -> Any:
    line = without_unsafe_escapes(text)
    if is_too_deep(line, _DEPTH_MAX):
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _source(span: Span) -> tuple[str, str | None]:
    """Name and version of the agent that made a span, else of its service."""
    agent = first_text(span.attributes, ("gen_ai.agent.name",))
    if agent is not None:
        version = first_text(span.attributes, ("gen_ai.agent.version",))
    else:
        agent = first_text(span.resource, ("service.name",))
        version = first_text(span.resource, ("service.version",))
    return (agent or UNNAMED)[:NAME_MAX_LENGTH], version and version[:NAME_MAX_LENGTH]
