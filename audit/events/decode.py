"""Decode one line of a request: validate it and keep only what the index needs.

Pure. The fast path is `audit.events.wire`. Lines that it does not accept go to the contract itself,
`tooltrail.events.EVENT`, whose verdict and message count. The raw bytes are never changed. Some
valid JSON cannot be stored by PostgreSQL or read by a parser: U+0000, lone surrogates, numbers of
thousands of digits. It is replaced in a copy, and the index is made from that copy.
"""

import json
import re
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in its stubs
from typing import Any
from uuid import UUID

import msgspec
from pydantic import ValidationError
from tooltrail import events
from tooltrail.guard.violations import Violation
from tooltrail.ledger import Kind

from audit.events import wire
from audit.events.definitions import Sighting, sighting_of
from audit.events.envelope import lenient_envelope
from audit.events.instants import Instants
from audit.events.limits import MAX_DEPTH

_UNSAFE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_ESCAPE = re.compile(
    rb"\\(?:u(?:[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|[dD][89a-fA-F][0-9a-fA-F]{2}|0000)|.)",
    re.DOTALL,
)
_DIGITS_MAX = 4300  # Python refuses to convert an integer of more digits
_LONG_NUMBER = re.compile(rb"(\d{%d})\d+" % _DIGITS_MAX)
_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)  # the last string may not be closed
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # signed: +1 opens, -1 closes a level
_SPACE = re.compile(r"[ \t\n\r]*")
_MESSAGE_MAX = 500
_TYPES = "toolExecutionStart, toolExecutionEnd, toolCallDecision, toolDefinitions or gap"


class RefusedLineError(Exception):
    """A line is not a valid event and goes to the inbox. `raw` is the part that may be kept."""

    def __init__(self, code: str, message: str, raw: bytes) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.raw = raw


class TooDeepError(Exception):
    """A line's JSON is nested deeper than `MAX_DEPTH`."""


def decode_line(raw: bytes, instants: Instants) -> wire.WireEvent | Sighting:
    """Decode one line: an event of the log, or definitions, which are stored in another way.

    Raises RefusedLineError, or TooDeepError if it is nested too deeply.
    """
    line = without_unsafe_escapes(raw)
    if is_too_deep(line):
        _thorough(line, raw)  # an invalid event goes to the inbox, whatever its depth
        raise TooDeepError
    try:
        event = _fast(line)
        _check(event, instants)
    except RecursionError:
        raise TooDeepError from None
    except (msgspec.MsgspecError, ValueError):
        thorough = _thorough(line, raw)
        if isinstance(thorough, Sighting):
            return thorough
        event = thorough
    if event.kind is not Kind.GAP:
        event.trace_id = event.trace_id or event.turn_id
        if isinstance(event.tool_version, int):
            event.tool_version = str(event.tool_version)
    return event


def without_unsafe_escapes(line: bytes) -> bytes:
    """Replace the escapes of U+0000 and of half surrogate pairs in JSON by U+FFFD."""
    if b"\\" in line and _UNSAFE.search(line):
        return _ESCAPE.sub(_replacement, line)
    return line


def is_too_deep(line: bytes, depth: int = MAX_DEPTH) -> bool:
    """Whether JSON is nested deeper than `depth`, at least in the part before its first error.

    Call it before any decoder. CPython limits recursion in C by a count that assumes a stack of
    8 MiB. A web server's thread has 2 MiB, and 20,000 brackets in `msgspec.json.decode` end the
    process with a segmentation fault.
    """
    # bytes.count checks every byte; replace jumps from match to match at half the cost.
    squares = len(line) - len(line.replace(b"[", b""))
    if squares + len(line) - len(line.replace(b"{", b"")) <= depth:
        return False
    steps = array("b", _STRINGS.sub(b"", line).translate(_STEPS, _NO_BRACKET))
    return max(accumulate(steps), default=0) > depth


def event_id_in(raw: bytes) -> UUID | None:
    """The event id of a rejected line, or None if it has no readable id."""
    for name, start, end in members_of(raw):
        if name in ("event_id", "eventId"):
            try:
                return events.parse_uuid(json.loads(raw[start:end]))
            except ValueError:
                return None
    return None


def without_auth(raw: bytes) -> tuple[bytes, bool]:
    """The line with every non-null `auth` value set to null, and whether there was one.

    A line that cannot be read as an object is cut off where an `auth` member may begin.
    """
    if b"auth" not in raw and b"\\u" not in raw:
        return raw, False
    parts: list[bytes] = []
    copied_to = 0
    try:
        for name, start, end in members_of(raw, strict=True):
            if name == "auth" and raw[start:end] != b"null":
                parts += (raw[copied_to:start], b"null")
                copied_to = end
    except ValueError:
        return raw.partition(b'"auth"')[0], False
    return b"".join(parts) + raw[copied_to:], bool(parts)


def _fast(line: bytes) -> wire.WireEvent:
    if not line.isascii():
        line.decode()  # checks UTF-8, as the decoder does not check the payloads it skips
    try:
        return wire.EVENT.decode(line)
    except msgspec.ValidationError:
        event = wire.WITH_ANY_OUTPUT.decode(line)
        if isinstance(event, wire.EndEvent):
            output: Any = event.output
            event.output = lenient_envelope(output)
        return event


def _check(event: wire.WireEvent, instants: Instants) -> None:
    """Check what the structs cannot. Raises ValueError; the contract then makes the message."""
    if event.kind is Kind.GAP:
        if event.to_seq < event.from_seq:
            raise ValueError
        return
    if event.trace_id is None and event.turn_id is None:
        raise ValueError
    if event.run_id is not None and event.ingestion_run_id is not None:
        raise ValueError
    if event.kind is Kind.DECISION:
        event.started_at = event.decided_at
    instants.read(event.started_at)
    if event.kind is Kind.END:
        instants.read(event.ended_at)
        if event.call_state in events.INTERIM_STATES and event.invocation_id is None:
            raise ValueError


def _thorough(line: bytes, raw: bytes) -> wire.WireEvent | Sighting:
    kept, had_auth = without_auth(raw)
    if had_auth:
        raise RefusedLineError(
            "auth_not_allowed", "auth is never stored; send the event without it", kept
        )
    try:
        event = events.EVENT.validate_json(_LONG_NUMBER.sub(rb"\1", line))
    except ValidationError as error:
        reasons = error.errors(include_url=False, include_input=False, include_context=False)
        if reasons[0]["type"] != "json_invalid":
            raise RefusedLineError("invalid_event", _words(reasons), kept) from None
        if "recursion limit" in reasons[0]["msg"]:
            raise TooDeepError from None
        raise RefusedLineError("not_json", _words(reasons), kept) from None
    if isinstance(event, events.ToolDefinitions):
        try:
            return sighting_of(event)
        except ValueError as error:
            raise RefusedLineError("invalid_event", str(error), kept) from None
    return _with_untyped(_as_wire(event), line)


class _Untyped(msgspec.Struct, gc=False):
    otlp: msgspec.Raw = msgspec.Raw(b"null")
    context: msgspec.Raw = msgspec.Raw(b"")


_UNTYPED = msgspec.json.Decoder(_Untyped)
_SPANS = msgspec.json.Decoder(wire.Spans | None)


def _with_untyped(event: wire.WireEvent, line: bytes) -> wire.WireEvent:
    """The event with the members that the contract ignores and the index uses, if well formed."""
    if event.kind is Kind.GAP:
        return event
    try:
        untyped = _UNTYPED.decode(line)
        if event.kind is Kind.START:
            event.context = untyped.context
        event.otlp = _SPANS.decode(untyped.otlp)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        pass
    return event


def _as_wire(
    event: events.ToolExecutionStart
    | events.ToolExecutionEnd
    | events.ToolCallDecision
    | events.Gap,
) -> wire.WireEvent:
    """Convert the contract's model into the struct that the fast path would have made."""
    if isinstance(event, events.Gap):
        return wire.GapEvent(**{name: getattr(event, name) for name in _fields_of(wire.GapEvent)})
    shared = {name: getattr(event, name) for name in _fields_of(wire.CallEvent)}
    shared["mcp"] = _stated(event.mcp)
    if isinstance(event, events.ToolCallDecision):
        return _decision(event, shared)
    shared["started_at"] = event.started_at.isoformat()
    if isinstance(event, events.ToolExecutionStart):
        return wire.StartEvent(**shared, args=msgspec.Raw(b""), traceparent=event.traceparent)
    guard = None
    if event.guard is not None:
        violations = _violations(event.guard.violations)
        guard = wire.GuardReport(event.guard.strategy, event.guard.outcome, violations)
    return wire.EndEvent(
        **shared,
        ended_at=event.ended_at.isoformat(),
        duration_ms=event.duration_ms,
        is_error=event.is_error,
        call_state=event.call_state,
        output_type=event.output_type,
        output=lenient_envelope(event.output),
        guard=guard,
    )


def _stated(mcp: Any) -> wire.McpStated | None:
    """What is well formed of a member `mcp`."""
    if not isinstance(mcp, dict):
        return None
    client, server = (_peer(mcp.get(name)) for name in ("client", "server"))
    version = mcp.get("protocol_version")
    return wire.McpStated(client, server, version if isinstance(version, str) else None)


def _peer(stated: Any) -> wire.McpPeer | None:
    if not isinstance(stated, dict):
        return None
    texts = (stated.get("name"), stated.get("version"))
    return wire.McpPeer(*(text if isinstance(text, str) else None for text in texts))


def _decision(event: events.ToolCallDecision, shared: dict[str, Any]) -> wire.DecisionEvent:
    by, decided_at = event.by, event.decided_at.isoformat()
    return wire.DecisionEvent(
        **shared,
        started_at=decided_at,
        decided_at=decided_at,
        decision=event.decision,
        by=None if by is None else wire.Decider(by.kind, by.id, by.name),
        requested_by=event.requested_by,
        reason=event.reason,
        definition_digest=event.definition_digest,
        violations=_violations(event.violations),
    )


def _violations(listed: Iterable[Violation]) -> list[wire.Violation]:
    return [
        wire.Violation(each.path, each.code, each.severity, each.expected, each.received)
        for each in listed
    ]


def _fields_of(struct: type[msgspec.Struct]) -> list[str]:
    apart = ("auth", "started_at", "otlp", "context")
    return [name for name in struct.__struct_fields__ if name not in apart]


def _replacement(escape: re.Match[bytes]) -> bytes:
    """U+FFFD for U+0000 or half a pair (six bytes); a whole pair (twelve bytes) is kept."""
    text = escape[0]
    return b"\\ufffd" if len(text) == 6 else text


def members_of(raw: bytes, *, strict: bool = False) -> Iterator[tuple[str, int, int]]:
    """The members of a line's JSON object: name, start and end of the value in the bytes.

    Stops where the line is not a valid JSON object; with `strict`, raises ValueError there.
    """
    # Latin-1 maps each byte to one character; names with non-ASCII characters do not matter here.
    text = raw.decode("latin-1")
    try:
        at = _after_space(text, 0)
        if text[at : at + 1] != "{":
            raise ValueError("not an object")
        at = _after_space(text, at + 1)
        while text[at : at + 1] == '"':
            name, at = scanstring(text, at + 1, False)
            at = _after_space(text, at)
            if text[at : at + 1] != ":":
                raise ValueError("no colon")
            start = _after_space(text, at + 1)
            _, end = _VALUES.raw_decode(text, start)
            yield name, start, end
            at = _after_space(text, end)
            if text[at : at + 1] != ",":
                break
            at = _after_space(text, at + 1)
        if text[at : at + 1] != "}":
            raise ValueError("no end")
    except (ValueError, RecursionError) as error:
        if strict:
            raise ValueError(str(error)) from None


_VALUES = json.JSONDecoder(parse_int=str, strict=False)


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def reason_in_words(reason: Any) -> str:
    """The error message for a line, without any of its values, as viewers may read it.

    `reason` is one of pydantic's errors, whose own message for a wrong `type` quotes the value.
    """
    match reason["type"]:
        case "union_tag_not_found":
            return f"`type` is missing; expected {_TYPES}"
        case "union_tag_invalid":
            return f"`type` is unknown; expected {_TYPES}"
    text: str = reason["msg"]
    return text.removeprefix("Value error, ")


def _words(reasons: list[Any]) -> str:
    messages = [
        ": ".join(filter(None, (".".join(map(str, each["loc"][1:])), reason_in_words(each))))
        for each in reasons[:3]
    ]
    if len(reasons) > 3:
        messages.append(f"and {len(reasons) - 3} more")
    return "; ".join(messages)[:_MESSAGE_MAX]
