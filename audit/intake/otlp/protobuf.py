"""Read spans from an ExportTraceServiceRequest, or log records, in OTLP's binary encoding.

The official message classes (`opentelemetry-proto`) parse each span, resource and scope alone. The
levels above are walked here: parsed as one message, twenty megabytes of empty spans would take
1.8 GiB of memory.
"""

import base64
from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.logs.v1 import logs_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from audit.events.limits import LimitExceededError
from audit.events.spans import (
    MAX_SPAN_BYTES,
    MAX_SPANS,
    Event,
    Link,
    Received,
    Scope,
    Span,
    Status,
    UnreadableTraceError,
    enum_value,
    is_id,
)
from audit.intake.otlp.logs import log_record

# Traces and logs have the same numbers.
_RESOURCE_SPANS = 1  # of ExportTraceServiceRequest
_RESOURCE, _SCOPE_SPANS = 1, 2  # of ResourceSpans
_SCOPE, _SPANS = 1, 2  # of ScopeSpans
_MAX_MEMBERS = 4 * MAX_SPANS  # of all upper levels
_MAX_VARINT = 10
_LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}


def read_protobuf(body: bytes) -> Received:
    """The spans of a body. An empty one has none.

    Raises UnreadableTraceError if the body is not protobuf of this kind. Raises LimitExceededError
    for more than `MAX_SPANS` or `_MAX_MEMBERS`, or a resource or scope above `MAX_SPAN_BYTES`. If a
    span cannot be read, or is larger than `MAX_SPAN_BYTES`, only that span is rejected.
    """
    return _read(body, _take)


def read_protobuf_logs(body: bytes) -> Received:
    """The log records of an ExportLogsServiceRequest, as spans without ids (`log_record`).

    Raises like `read_protobuf`.
    """
    return _read(body, _take_log)


def _read(
    body: bytes, take: Callable[[memoryview, dict[str, Any], Scope, Received], None]
) -> Received:
    received = Received()
    walk = _Walk(memoryview(body))
    for resource_start, resource_end in walk.members(0, len(body), _RESOURCE_SPANS):
        resource = walk.resource(resource_start, resource_end)
        for scope_start, scope_end in walk.members(resource_start, resource_end, _SCOPE_SPANS):
            scope = walk.scope(scope_start, scope_end)
            for start, end in walk.members(scope_start, scope_end, _SPANS):
                walk.count_span()
                take(walk.body[start:end], resource, scope, received)
    return received


def _take(data: memoryview, resource: dict[str, Any], scope: Scope, received: Received) -> None:
    if len(data) > MAX_SPAN_BYTES:
        received.refuse("larger than 1 MiB")
        return
    try:
        message = trace_pb2.Span.FromString(data.tobytes())
    except DecodeError:
        received.refuse("not readable")
        return
    trace_id, span_id = message.trace_id.hex(), message.span_id.hex()
    if not (is_id(trace_id, 32) and is_id(span_id, 16)):
        received.refuse("without a valid trace id and span id")
        return
    parent_id = message.parent_span_id.hex()
    # By position, for each span: by name, msgspec takes several times as long.
    span = Span(
        trace_id,
        span_id,
        parent_id if is_id(parent_id, 16) else "",
        message.name,
        enum_value(message.kind),
        message.start_time_unix_nano,
        message.end_time_unix_nano,
        _attributes(message.attributes),
        scope=scope,
        resource=resource,
        trace_state=message.trace_state,
        flags=message.flags,
    )
    if message.HasField("status"):
        span.status = Status(enum_value(message.status.code), message.status.message)
    if message.events:
        span.events = [
            Event(event.name, event.time_unix_nano, _attributes(event.attributes))
            for event in message.events
        ]
    if message.links:
        span.links = [
            Link(link.trace_id.hex(), link.span_id.hex(), _attributes(link.attributes))
            for link in message.links
        ]
    received.spans.append(span)


def _take_log(data: memoryview, resource: dict[str, Any], scope: Scope, received: Received) -> None:
    if len(data) > MAX_SPAN_BYTES:
        received.refuse("larger than 1 MiB")
        return
    try:
        message = logs_pb2.LogRecord.FromString(data.tobytes())
    except DecodeError:
        received.refuse("not readable")
        return
    trace_id, span_id = message.trace_id.hex(), message.span_id.hex()
    is_in_span = is_id(trace_id, 32) and is_id(span_id, 16)
    received.spans.append(
        log_record(
            trace_id=trace_id if is_in_span else "",
            span_id=span_id if is_in_span else "",
            event_name=message.event_name,
            time_unix_nano=message.time_unix_nano or message.observed_time_unix_nano,
            attributes=_attributes(message.attributes),
            body=_value(message.body),
            severity=message.severity_text,
            scope=scope,
            resource=resource,
        )
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {
        # Most values are texts. Checking which member is set takes as long as all the rest.
        pair.key: value.string_value or _value(value)
        for pair in pairs
        for value in (pair.value,)
    }


def _value(value: common_pb2.AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    content = getattr(value, kind)
    if kind == "bytes_value":
        return base64.b64encode(content).decode()
    if kind == "array_value":
        return [_value(each) for each in content.values]
    if kind == "kvlist_value":
        return _attributes(content.values)
    return content


class _Walk:
    """Finds the positions of a message's members in the wire format (protobuf.dev, Encoding)."""

    def __init__(self, body: memoryview) -> None:
        self.body = body
        self._members = 0
        self._spans = 0

    def members(self, start: int, end: int, wanted: int) -> Iterator[tuple[int, int]]:
        """Start and end of each value of the length-delimited field `wanted` in a message."""
        at = start
        while at < end:
            self._members += 1
            if self._members > _MAX_MEMBERS:
                raise LimitExceededError("too_many_spans", f"more than {_MAX_MEMBERS} members")
            tag, at = self._varint(at, end)
            kind = tag & 7
            if kind == _LENGTH_DELIMITED:
                length, at = self._varint(at, end)
                if length > end - at:
                    raise UnreadableTraceError("a message is longer than its container")
                if tag >> 3 == wanted:
                    yield at, at + length
                at += length
            elif kind == 0:
                _, at = self._varint(at, end)
            elif kind in _FIXED:
                at += _FIXED[kind]
            else:
                raise UnreadableTraceError(f"unknown wire type {kind}")
        if at != end:
            raise UnreadableTraceError("a message ends early")

    def resource(self, start: int, end: int) -> dict[str, Any]:
        """The attributes of a ResourceSpans' resource."""
        merged = self._parsed(start, end, _RESOURCE, resource_pb2.Resource)
        return _attributes(merged.attributes)

    def scope(self, start: int, end: int) -> Scope:
        """The scope of a ScopeSpans."""
        merged = self._parsed(start, end, _SCOPE, common_pb2.InstrumentationScope)
        return Scope(merged.name, merged.version)

    def count_span(self) -> None:
        """Count a span. Raises LimitExceededError for more than `MAX_SPANS`."""
        self._spans += 1
        if self._spans > MAX_SPANS:
            raise LimitExceededError(
                "too_many_spans", f"more than {MAX_SPANS} spans or log records"
            )

    def _parsed(self, start: int, end: int, field: int, message: Any) -> Any:
        # If the field occurs several times, its values are merged, as protobuf requires.
        parsed = message()
        for at, until in self.members(start, end, field):
            if until - at > MAX_SPAN_BYTES:
                raise LimitExceededError("too_large", "a resource or scope is larger than 1 MiB")
            try:
                parsed.MergeFromString(self.body[at:until].tobytes())
            except DecodeError as error:
                raise UnreadableTraceError(f"a {message.__name__} is unreadable: {error}") from None
        return parsed

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        value = 0
        for shift in range(0, 7 * _MAX_VARINT, 7):
            if at >= end:
                break
            byte = self.body[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
        raise UnreadableTraceError("a number ends early or is too long")
