"""Turns one call of a tool into its two event lines.

Owns the members of the lines and their order, and the `Call` that a running tool gets.
`capture` decides what is kept of payloads, and the spool where lines go. This code runs in every
call: it builds no models, and JSON that two lines or many calls share is written once.
"""

import time
from collections.abc import Callable, Mapping
from contextvars import Token
from datetime import datetime
from typing import Any, Literal

from pydantic_core import to_json

from tooltrail.call_ids import call_id_of
from tooltrail.capture import Capture, encode_json
from tooltrail.contracts import describe_failure
from tooltrail.current_span import current_span
from tooltrail.envelopes import as_envelope
from tooltrail.guard import GuardOutcome
from tooltrail.guard_report import OUTPUT_DATA, PASSED, guard_text
from tooltrail.instants import instant_text, to_ns
from tooltrail.mcp_results import CALL_TOOL_RESULT, TOOL_ERROR, CallState, document_of, read_result
from tooltrail.redact import Note
from tooltrail.scope import (
    Scope,
    current_scope,
    enter_scope,
    leave_scope,
    scope_of_call,
    trace_id_in,
)

Clock = Callable[[], datetime]
"""Returns the current time, with offset. The default is the system's clock."""

Append = Callable[[bytes], bool]
"""Keeps one event, given as JSON text without its closing brace. False if it could not."""

MESSAGE_MAX_CHARACTERS = 8192

_MCP_OUTPUT = b'"output_type":"%b",' % CALL_TOOL_RESULT.encode()
_META = ("token_usage", "cache_hit", "source_counts", "routing", "attempt")
_FIGURES = ("took_ms", "token_usage", "cache_hit", "source_counts", "attempt")


class ToolSpec:
    """What all calls of one tool share. `text` holds it as JSON members, each with a comma."""

    __slots__ = ("capture", "name", "text", "version")

    def __init__(
        self, name: str, version: str | None, timeouts_ms: int | None, capture: Capture
    ) -> None:
        self.name = name
        self.version = version
        self.capture = capture
        members: dict[str, Any] = {"tool_name": name}
        if version is not None:
            members["tool_version"] = version
        if timeouts_ms is not None:
            members["timeouts_ms"] = timeouts_ms
        self.text = encode_json(members)[1:-1] + b","


class Call:
    """One execution of a tool, as the tool itself gets it from `trail.current()`.

    The tool may set these members, which go into the `meta` of its end event: `token_usage`
    (counts by kind), `cache_hit`, `source_counts` (number of results by source), `routing`
    (decisions made) and `attempt` (the number of this attempt, from 1). If the call fails, the
    error gets `attempt`, too, as in the AI Core's contracts. `mcp` is what is known of the MCP
    client and server: `client` and `server` (each `name` and `version`) and `protocol_version`.
    """

    __slots__ = (
        "_append",
        "_clock",
        "_complain",
        "_guard",
        "_ids",
        "_is_kept",
        "_is_mcp",
        "_is_open",
        "_received",
        "_scope",
        "_shared",
        "_spec",
        "_started_at",
        "_started_ns",
        "_token",
        "attempt",
        "cache_hit",
        "id",
        "mcp",
        "routing",
        "source_counts",
        "span",
        "token_usage",
        "trace_id",
    )

    def __init__(
        self,
        spec: ToolSpec,
        append: Append | None,
        ids: Callable[[], str],
        clock: Clock | None,
        complain: Callable[[Exception], None],
    ) -> None:
        outer = current_scope()
        self.id = ids()
        self.span = current_span()
        self.trace_id = outer.trace_id if outer is not None else trace_id_in(self.span)
        self.attempt: int | None = None
        self.cache_hit: bool | None = None
        self.mcp: Mapping[str, Any] | None = None
        self.routing: Mapping[str, Any] | None = None
        self.source_counts: Mapping[str, int] | None = None
        self.token_usage: Mapping[str, int] | None = None
        self._append = append
        self._clock = clock
        self._complain = complain
        self._guard: GuardOutcome | None = None
        self._ids = ids
        self._is_kept = False
        self._is_mcp = False  # whether the output is a `CallToolResult`
        self._is_open = False  # whether an end event is to be recorded
        self._received: Any = None
        self._spec = spec
        self._token: Token[Scope | None] | None = None

    def start(self, args: dict[str, Any], raw_args: dict[str, Any]) -> bool:
        """Record that the tool is about to run with `args`; the call id comes from `raw_args`.

        Calls made from here on are nested in this call, until it ends. Returns False if there
        is a spool and it could not keep the event.
        """
        outer = current_scope()
        self._scope = scope_of_call(outer, self)
        self._token = enter_scope(self._scope)
        if self._append is None:
            return True
        try:
            kept = self._start(self._append, outer, args, raw_args)
        except Exception as error:
            self._complain(error)
            return False
        self._is_open = True  # also if the spool was full: it may have room for the end
        self._is_kept = kept
        return kept

    @property
    def is_kept(self) -> bool:
        """Whether its start is in the spool."""
        return self._is_kept

    def judged(self, verdict: GuardOutcome, received: Any) -> None:
        """Note the guard's verdict and what the tool returned."""
        self._guard = verdict
        self._received = received

    def finish(self, result: Any) -> None:
        """Record that the tool returned `result`, an envelope or plain data. Never raises."""
        self.leave()
        if self._append is None or not self._is_open:
            return
        try:
            notes: list[Note] = []
            took_ns = self._took_ns()
            document = document_of(result)
            if document is not None:
                self._finish_mcp(self._append, document, took_ns, notes)
                return
            envelope = as_envelope(result)
            if envelope is None:
                data = self._spec.capture.encode(result, OUTPUT_DATA, notes)
                output = b'{"status":"ok","data":%b,"meta":%b}' % (
                    data,
                    self._meta(took_ns, {}, notes),
                )
            else:
                output = self._envelope_text(envelope, took_ns, notes)
            self._end(self._append, took_ns, False, output, notes)
        except Exception as error:
            self._complain(error)

    def _finish_mcp(self, append: Append, document: Any, took_ns: int, notes: list[Note]) -> None:
        """Record a `CallToolResult`. One that reports an error is a failed call.

        After one that asks for input or returns a task, the call is open: `finish` or `fail` again.
        """
        self._is_mcp = True
        result = read_result(document)
        envelope: dict[str, Any] = {"status": "ok", "data": document}
        is_error = result is not None and result.is_error
        if result is not None and is_error:
            detail = {"type": TOOL_ERROR, "message": result.message}
            envelope = {"status": "error", "error": detail | {"details": {"result": document}}}
        state = None if result is None else result.call_state
        output = self._envelope_text(envelope, took_ns, notes)
        self._end(append, took_ns, is_error, output, notes, state)

    def report(self, state: Literal["waiting", "working"], output: Any = None) -> None:
        """Record that the tool waits for input or works on, such as after each poll of a task.

        `output` is what it said of its progress. The call stays open. Never raises.
        """
        if self._append is None or not self._is_open:
            return
        try:
            notes: list[Note] = []
            text = self._spec.capture.encode(output, "$.output", notes)
            self._end(self._append, self._took_ns(), False, text, notes, state)
        except Exception as error:
            self._complain(error)

    def fail(self, error: BaseException) -> None:
        """Record that the tool raised `error`. Never raises."""
        self.leave()
        if self._append is None or not self._is_open:
            return
        try:
            notes: list[Note] = []
            took_ns = self._took_ns()
            detail = describe_failure(error, attempt=self.attempt).model_dump(mode="json")
            if self._guard is not None and error is self._guard.error:
                # The error's own text quotes the output. The violations quote it redacted.
                places = dict.fromkeys(each.path for each in self._guard.violations)
                detail["message"] = f"The output breaks its schema at {', '.join(places)}"
            envelope = {"status": "error", "error": detail, "meta": {}}
            output = self._envelope_text(envelope, took_ns, notes)
            state: CallState | None = "cancelled" if detail["code"] == "CANCELLED" else None
            self._end(self._append, took_ns, True, output, notes, state)
        except Exception as mistake:
            self._complain(mistake)

    def enter(self) -> None:
        """Make this call the parent of the calls made from here on."""
        self._token = enter_scope(self._scope)

    def leave(self) -> None:
        """Stop being the parent of the calls made from here on."""
        token, self._token = self._token, None
        if token is not None:
            try:  # noqa: SIM105  # suppress() takes a quarter of a microsecond
                leave_scope(token)
            except ValueError:  # the call ended in another task than it started in
                pass

    def enclose_nothing(self) -> None:
        """Let go of the scope inside this call, which refers to it: it is freed when it ends."""
        self._scope.call = None

    def _start(
        self,
        append: Append,
        outer: Scope | None,
        args: dict[str, Any],
        raw_args: dict[str, Any],
    ) -> bool:
        spec = self._spec
        self._started_at = time.time_ns() if self._clock is None else to_ns(self._clock())
        context = self._scope.text if outer is None else outer.text
        parent = None if outer is None else outer.parent_id
        self._shared = b'"invocation_id":"%b",%b%b%b"call_id":"%b","started_at":"%b"' % (
            self.id.encode(),
            context,
            b"" if parent is None else b'"parent_invocation_id":"%b",' % parent.encode(),
            spec.text,
            call_id_of(spec.name, raw_args).encode(),
            instant_text(self._started_at),
        )
        notes: list[Note] = []
        encoded = spec.capture.encode(args, "$.args", notes)
        kept = append(
            b'{"type":"toolExecutionStart","event_id":"%b",%b%b,"args":%b%b'
            % (
                self._ids().encode(),
                self._shared,
                self._span_text(outer),
                encoded,
                _notes_text(notes),
            )
        )
        self._started_ns = time.perf_counter_ns()
        return kept

    def _span_text(self, outer: Scope | None) -> bytes:
        """The span around this call; empty if the enclosing call already reports this span."""
        if self.span is None or (outer is not None and outer.span == self.span):
            return b""
        return b',"traceparent":"%b"' % self.span.encode()

    def _took_ns(self) -> int:
        if self._clock is None:
            return time.perf_counter_ns() - self._started_ns
        # A custom clock also measures durations; otherwise replayed calls would take no time.
        return max(to_ns(self._clock()) - self._started_at, 0)

    def _end(
        self,
        append: Append,
        took_ns: int,
        is_error: bool,
        output: bytes,
        notes: list[Note],
        state: CallState | None = None,
    ) -> None:
        # Not the wall clock: if it was set back meanwhile, the call would end before its start.
        ended_at = self._started_at + took_ns
        guard = b""
        if self._guard is not None:
            received = PASSED if self._guard.outcome == "passed" else self._received
            if received is not PASSED and (document := document_of(received)) is not None:
                self._is_mcp, received = True, document
            guard = b',"guard":' + guard_text(self._guard, self._spec.capture, notes, received)
        append(
            b'{"type":"toolExecutionEnd",%b"event_id":"%b",%b,"ended_at":"%b",'
            b'"duration_ms":%d.%06d,"is_error":%b,%b"output":%b%b%b'
            % (
                # First, so that the shipper knows the line: an older server takes it for the end.
                b"" if state is None else b'"call_state":"%b",' % state.encode(),
                self._ids().encode(),
                self._shared,
                instant_text(ended_at),
                took_ns // 1_000_000,
                took_ns % 1_000_000,
                b"true" if is_error else b"false",
                self._mcp_text(notes),
                output,
                guard,
                _notes_text(notes),
            )
        )

    def _mcp_text(self, notes: list[Note]) -> bytes:
        text = _MCP_OUTPUT if self._is_mcp else b""
        if self.mcp is None:
            return text
        stated = dict(self.mcp)
        if (redactor := self._spec.capture.redactor) is not None:
            stated, removed = redactor.clean(stated, "$.mcp")
            notes += removed
        return b'%b"mcp":%b,' % (text, encode_json(stated))

    def _meta(self, took_ns: int, given: Mapping[str, Any], notes: list[Note]) -> bytes:
        took_ms = took_ns // 1_000_000
        if not given and self._has_no_meta():
            return b'{"took_ms":%d}' % took_ms
        meta: dict[str, Any] = {"took_ms": took_ms}
        for name in _META:
            value = getattr(self, name)
            if value is not None:
                meta[name] = value
        meta |= {name: value for name, value in given.items() if value is not None}
        capture = self._spec.capture
        if capture.mode != "full":  # keep the figures, drop members that may hold anything
            meta = {name: meta[name] for name in _FIGURES if name in meta}
        elif capture.redactor is not None:
            meta, removed = capture.redactor.clean(meta, "$.output.meta")
            notes += removed
        return encode_json(meta)

    def _has_no_meta(self) -> bool:
        return (
            self.token_usage is None
            and self.cache_hit is None
            and self.source_counts is None
            and self.routing is None
            and self.attempt is None
        )

    def _envelope_text(self, envelope: Mapping[str, Any], took_ns: int, notes: list[Note]) -> bytes:
        given = envelope.get("meta")
        meta = self._meta(took_ns, given if isinstance(given, Mapping) else {}, notes)
        capture = self._spec.capture
        if envelope["status"] == "ok":
            data = capture.encode(envelope.get("data"), OUTPUT_DATA, notes)
            return b'{"status":"ok","data":%b,"meta":%b}' % (data, meta)
        detail = {k: v for k, v in envelope["error"].items() if v is not None}
        if self.attempt is not None:
            detail.setdefault("attempt", self.attempt)
        detail["message"] = str(detail.get("message", ""))
        if capture.mode != "full":
            detail = {k: v for k, v in detail.items() if k != "details"} | {"message": ""}
            notes.append({"path": "$.output.error.message", "reason": "not captured"})
        elif capture.redactor is not None:
            detail, removed = capture.redactor.clean(detail, "$.output.error")
            notes += removed
        detail["message"] = detail["message"][:MESSAGE_MAX_CHARACTERS]
        return b'{"status":"error","error":%b,"meta":%b}' % (encode_json(detail), meta)


def _notes_text(notes: list[Note]) -> bytes:
    return b',"removed":' + to_json(notes) if notes else b""
