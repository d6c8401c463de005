"""A span, as all OTLP readers make it and as the log keeps it.

Pure. Attribute values have JSON types: text, numbers, booleans, lists, objects. Bytes are base64
text. Spans form no reference cycles, so the garbage collector can skip them (`gc=False`).
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec
import uuid_utils  # takes a third of the standard library's time

# Namespace of the ids made from span ids. Never change it.
_NAMESPACE = uuid_utils.UUID("0f3ad5d8-3c0b-5b7e-9c1f-7a64e2b9d811")

MAX_SPAN_BYTES = 1024 * 1024
"""Limit of one span as it is sent: the limit of a line of `POST /api/v1/events`."""
MAX_SPANS = 20_000
"""Spans per request. Exporters send 512 by default, the Collector 8,192."""

SERVER, CLIENT = 2, 3  # of SpanKind
EXECUTOR = -1  # not in SpanKind: the call that an executor ran inside a span
MOUNT = -2  # not in SpanKind: a server hands a call on to a server that is mounted in it
STATUS_UNSET, STATUS_OK, STATUS_ERROR = 0, 1, 2  # of StatusCode


class UnreadableTraceError(Exception):
    """A body is not a valid ExportTraceServiceRequest: 400."""


class Status(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How a span ended: 0 unset, 1 ok, 2 error."""

    code: int = 0
    message: str = ""


UNSET = Status()


class Event(msgspec.Struct, omit_defaults=True, gc=False):
    """Something that happened during a span, such as an exception."""

    name: str = ""
    time_unix_nano: int = 0
    attributes: dict[str, Any] = {}


class Link(msgspec.Struct, omit_defaults=True, gc=False):
    """A link to a related span."""

    trace_id: str = ""
    span_id: str = ""
    attributes: dict[str, Any] = {}


class Scope(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The instrumentation that made a span."""

    name: str = ""
    version: str = ""


class Span(msgspec.Struct, omit_defaults=True, gc=False):
    """A span. Ids are lower-case hex; `parent_span_id` is empty for a trace's root."""

    trace_id: str
    span_id: str
    parent_span_id: str = ""
    name: str = ""
    kind: int = 0
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0
    attributes: dict[str, Any] = {}
    status: Status = UNSET
    events: list[Event] = []
    links: list[Link] = []
    trace_state: str = ""
    flags: int = 0
    scope: Scope = Scope()
    resource: dict[str, Any] = {}

    @property
    def key(self) -> tuple[str, str]:
        """Its key: trace id and span id."""
        return self.trace_id, self.span_id


@dataclass(slots=True)
class Received:
    """The spans of a request, and how many were rejected, by reason."""

    spans: list[Span] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)

    def refuse(self, reason: str) -> None:
        """Count a rejected span under its reason."""
        self.refused[reason] = self.refused.get(reason, 0) + 1


def mcp_protocol(otlp: Any) -> str:
    """The version of MCP that the spans of an event state, from its `otlp` member; '' if none."""
    if not isinstance(otlp, dict):
        return ""
    merged = otlp.get("merged")
    for span in (otlp.get("span"), *(merged if isinstance(merged, list) else ())):
        attributes = span.get("attributes") if isinstance(span, dict) else None
        version = attributes.get("mcp.protocol.version") if isinstance(attributes, dict) else None
        if isinstance(version, str):
            return version
    return ""


@lru_cache(maxsize=MAX_SPANS)  # called several times for each span
def span_uuid(trace_id: str, span_id: str) -> UUID:
    """The UUIDv5 of a span. The first span of a call gives the call's `invocation_id`."""
    return UUID(int=_uuid5(f"{trace_id}/{span_id}").int)


def event_uuid(invocation_id: str, kind: str, span_ids: Collection[str]) -> str:
    """The UUIDv5 of an event made from these spans. Ids are texts: converting a UUID takes 2 µs."""
    return str(_uuid5(f"{invocation_id}/{kind}/{','.join(sorted(span_ids))}"))


def enum_value(number: int) -> int:
    """A kind or status code; 0 (unspecified) for a number outside of OTLP's enums."""
    return number if 0 <= number <= 5 else 0


def is_id(text: str, length: int) -> bool:
    """Whether hex text is an id of `length` digits, not only zeros (W3C Trace Context)."""
    return len(text) == length and text.strip("0") != ""


def _uuid5(name: str) -> uuid_utils.UUID:
    return uuid_utils.uuid5(_NAMESPACE, name)
