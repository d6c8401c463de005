"""Read spans from an ExportTraceServiceRequest, or log records, in OTLP's JSON encoding.

Following the OTLP specification: names are lowerCamelCase, ids are hex in either case, enums are
integers, 64-bit integers are numbers or text. Unknown members are ignored; null means absent.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from audit.events.any_json import ANY_JSON
from audit.events.decode import is_too_deep, without_unsafe_escapes
from audit.events.limits import LimitExceededError
from audit.events.spans import (
    MAX_SPAN_BYTES,
    MAX_SPANS,
    UNSET,
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

_MAX_OBJECTS = 1_000_000
"""Objects and arrays in a body. Their number, not the size, decides how much memory it takes."""
_MAX_DEPTH = 100  # nesting of an attribute's value, the same limit as in protobuf
_MAX_BODY_DEPTH = 4 * _MAX_DEPTH + 100
"""Nesting of brackets. One level of a value takes up to four of them, in `kvlistValue`."""

_INTEGER = re.compile(r"-?\d{1,20}", re.ASCII)

type _Object = dict[str, Any]


class _MalformedError(Exception):
    """A member has the wrong type."""


def read_json(body: bytes) -> Received:
    """The spans of a body. `{}` has none.

    Raises UnreadableTraceError if the body is not JSON of this kind, and LimitExceededError for
    more than `MAX_SPANS` or `_MAX_OBJECTS`. If a span is malformed or larger than `MAX_SPAN_BYTES`,
    only that span is rejected.
    """
    return _read(body, ("resourceSpans", "scopeSpans", "spans"), _span)


def read_json_logs(body: bytes) -> Received:
    """The log records of an ExportLogsServiceRequest, as spans without ids (`log_record`).

    Raises like `read_json`.
    """
    return _read(body, ("resourceLogs", "scopeLogs", "logRecords"), _log)


def _read(
    body: bytes, levels: tuple[str, str, str], make: Callable[[Any, _Object, Scope], Span]
) -> Received:
    if body.count(b"{") + body.count(b"[") > _MAX_OBJECTS:
        raise LimitExceededError("too_many_values", f"more than {_MAX_OBJECTS} objects and arrays")
    if is_too_deep(body, _MAX_BODY_DEPTH):
        raise UnreadableTraceError("the JSON is nested too deeply")
    request = _decode(body)
    received = Received()
    count = 0
    try:
        for resource_spans in _objects(request, levels[0]):
            resource = _attributes(_object(resource_spans, "resource"))
            for scope_spans in _objects(resource_spans, levels[1]):
                named = _object(scope_spans, "scope")
                scope = Scope(_text(named, "name"), _text(named, "version"))
                spans = _list(scope_spans, levels[2])
                count += len(spans)
                if count > MAX_SPANS:
                    raise LimitExceededError(
                        "too_many_spans", f"more than {MAX_SPANS} spans or log records"
                    )
                for span in spans:
                    _take(span, resource, scope, received, make)
    except _MalformedError as error:
        raise UnreadableTraceError(str(error)) from None
    return received


def _decode(body: bytes) -> _Object:
    try:
        try:
            request = ANY_JSON.decode(body)
        except msgspec.DecodeError:
            # Half a surrogate pair is valid JSON. JavaScript writes it when a text is cut in two.
            request = ANY_JSON.decode(without_unsafe_escapes(body))
    except RecursionError:
        raise UnreadableTraceError("the JSON is nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnreadableTraceError(f"the body is not JSON: {error}") from None
    if not isinstance(request, dict):
        raise UnreadableTraceError("the body is not a JSON object")
    return request


def _take(
    data: Any,
    resource: dict[str, Any],
    scope: Scope,
    received: Received,
    make: Callable[[Any, _Object, Scope], Span],
) -> None:
    try:
        span = make(data, resource, scope)
    except _MalformedError as error:
        received.refuse(f"malformed ({error})")
        return
    if make is _span and not (is_id(span.trace_id, 32) and is_id(span.span_id, 16)):
        received.refuse("without a valid trace id and span id")
        return
    if sum(len(text) for text in _texts(span.attributes)) > MAX_SPAN_BYTES:
        received.refuse("larger than 1 MiB")
        return
    received.spans.append(span)


def _log(data: Any, resource: dict[str, Any], scope: Scope) -> Span:
    if not isinstance(data, dict):
        raise _MalformedError("a log record is not an object")
    trace_id, span_id = _hex(data, "traceId"), _hex(data, "spanId")
    is_in_span = is_id(trace_id, 32) and is_id(span_id, 16)
    return log_record(
        trace_id=trace_id if is_in_span else "",
        span_id=span_id if is_in_span else "",
        event_name=_text(data, "eventName"),
        time_unix_nano=_integer(data, "timeUnixNano") or _integer(data, "observedTimeUnixNano"),
        attributes=_attributes(data),
        body=_value(data.get("body"), _MAX_DEPTH),
        severity=_text(data, "severityText"),
        scope=scope,
        resource=resource,
    )


def _span(data: Any, resource: dict[str, Any], scope: Scope) -> Span:
    if not isinstance(data, dict):
        raise _MalformedError("a span is not an object")
    parent_id = _hex(data, "parentSpanId")
    # By position, for each span: by name, msgspec takes several times as long.
    return Span(
        _hex(data, "traceId"),
        _hex(data, "spanId"),
        parent_id if is_id(parent_id, 16) else "",
        _text(data, "name"),
        enum_value(_integer(data, "kind")),
        _integer(data, "startTimeUnixNano"),
        _integer(data, "endTimeUnixNano"),
        _attributes(data),
        _status(_object(data, "status")),
        [
            Event(_text(each, "name"), _integer(each, "timeUnixNano"), _attributes(each))
            for each in _objects(data, "events")
        ],
        [
            Link(_hex(each, "traceId"), _hex(each, "spanId"), _attributes(each))
            for each in _objects(data, "links")
        ],
        _text(data, "traceState"),
        _integer(data, "flags"),
        scope,
        resource,
    )


def _status(data: _Object) -> Status:
    return Status(enum_value(_integer(data, "code")), _text(data, "message")) if data else UNSET


def _attributes(holder: _Object) -> dict[str, Any]:
    return _pairs(_list(holder, "attributes"), _MAX_DEPTH)


def _pairs(pairs: list[Any], depth: int) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for pair in pairs:
        if not isinstance(pair, dict):
            raise _MalformedError("an attribute is not an object")
        attributes[_text(pair, "key")] = _value(pair.get("value"), depth)
    return attributes


def _value(value: Any, depth: int) -> Any:
    if value is None:
        return None
    if not isinstance(value, dict) or not depth:
        raise _MalformedError("an attribute's value is not an object, or nested too deeply")
    for name, content in value.items():
        match name:
            case "stringValue" | "bytesValue":
                return _text(value, name)
            case "boolValue":
                if isinstance(content, bool):
                    return content
                raise _MalformedError("boolValue is neither true nor false")
            case "intValue":
                return _integer(value, name)
            case "doubleValue":
                return _double(content)
            case "arrayValue":
                values = _list(_object(value, name), "values")
                return [_value(each, depth - 1) for each in values]
            case "kvlistValue":
                return _pairs(_list(_object(value, name), "values"), depth - 1)
    return None


def _texts(value: Any) -> list[str]:
    """The texts in an attribute's value. `_value` has limited its depth."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [*value, *(text for each in value.values() for text in _texts(each))]
    if isinstance(value, list):
        return [text for each in value for text in _texts(each)]
    return []


def _object(holder: _Object, name: str) -> _Object:
    value = holder.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _MalformedError(f"{name} is not an object")
    return value


def _list(holder: _Object, name: str) -> list[Any]:
    value = holder.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise _MalformedError(f"{name} is not an array")
    return value


def _objects(holder: _Object, name: str) -> list[_Object]:
    items = _list(holder, name)
    if not all(isinstance(each, dict) for each in items):
        raise _MalformedError(f"{name} has an item that is not an object")
    return items


def _text(holder: _Object, name: str) -> str:
    value = holder.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _MalformedError(f"{name} is not a string")
    return value


def _hex(holder: _Object, name: str) -> str:
    text = _text(holder, name).lower()
    if text.strip("0123456789abcdef"):
        raise _MalformedError(f"{name} is not hex")
    return text


def _integer(holder: _Object, name: str) -> int:
    value = holder.get(name)
    if value is None:
        return 0
    is_number = isinstance(value, float) and value.is_integer()
    if is_number or (isinstance(value, str) and _INTEGER.fullmatch(value)):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**64:
        raise _MalformedError(f"{name} is not a 64-bit integer")
    return value


def _double(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise _MalformedError("doubleValue is too large") from None
    if value in ("NaN", "Infinity", "-Infinity"):
        return value  # JSON has no such numbers, so the text stays
    raise _MalformedError("doubleValue is not a number")
