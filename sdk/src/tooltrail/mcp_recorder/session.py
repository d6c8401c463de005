"""What the messages between a client and a server of MCP mean, as calls of tools.

Owns pairing a request with its answer, and what of both is recorded. It sees each message before
the other side does, so what a side has seen is on file. Nothing here raises, except SpoolFullError
before a call is made that could not be recorded (`--fail-closed`).
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from uuid_utils import uuid7

from tooltrail.capture import NotKept
from tooltrail.events import DEFINITIONS_MAX, NAME_MAX_LENGTH
from tooltrail.mcp_recorder.messages import (
    READ_MAX_BYTES,
    Line,
    Message,
    UnreadableError,
    read_messages,
)
from tooltrail.mcp_results import TOOL_ERROR, ResultDocument
from tooltrail.mcp_rounds import OF_TASKS, Rounds, brief
from tooltrail.recording import Call
from tooltrail.spool import SpoolFullError
from tooltrail.tracing.traceparent import parse_traceparent
from tooltrail.trail import Trail

STATELESS_SINCE: Final = "2026-07-28"
"""From this version on a client cancels a request by hanging up (Streamable HTTP)."""
_META_CLIENT: Final = "io.modelcontextprotocol/clientInfo"
_META_SERVER: Final = "io.modelcontextprotocol/serverInfo"
_META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
_PENDING_MAX: Final = 1000
_PENDING_OF_ALL_MAX: Final = 2000
_ROOM_FROM: Final = _PENDING_MAX // 2
_ROOM_SECONDS: Final = 1.0
_LISTS_MAX: Final = 2
_VERSION_CHARACTERS: Final = 100
_PROGRESS_SECONDS: Final = 1.0
_PROGRESS_MAX: Final = 100
_INVALID_PARAMS: Final = -32602
_TYPES: Final = {_INVALID_PARAMS: "VALIDATION"}


class CancelledError(Exception):
    """The client has cancelled the call. `describe_failure` knows the name."""


@dataclass(slots=True)
class Pending:
    """A request without an answer."""

    kind: Literal["call", "initialize", "list", "task"]
    call: Call | None = None
    name: str = ""
    """The tool, the task's id or the cursor of the list."""
    method: str = ""
    reports: int = 0
    reported_at: float = 0.0


@dataclass(slots=True)
class Peers:
    """Who takes part, as far as they have said."""

    client: dict[str, str] | None = None
    server: dict[str, str] | None = None
    protocol_version: str = ""

    def stated(self) -> dict[str, Any]:
        """As the member `mcp` of an event."""
        parts = {
            "client": self.client,
            "server": self.server,
            "protocol_version": self.protocol_version,
        }
        return {name: part for name, part in parts.items() if part}


@dataclass(slots=True)
class Recorder:
    """What all sessions of one process share. `server_name` is used until the server says one."""

    trail: Trail
    server_name: str
    rounds: Rounds = field(default_factory=Rounds)
    lists: dict[str, tuple[list[Any], int]] = field(default_factory=dict)
    """The pages of lists whose next page is awaited, and their bytes, by its cursor."""
    pending_count: int = 0
    """How many requests of all sessions have no answer."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    @contextmanager
    def harmless(self) -> Iterator[None]:
        """Take the lock, and declare a mistake of ours as a lost event instead of raising it."""
        with self.lock:
            try:
                yield
            except SpoolFullError:
                raise
            except Exception as error:
                self.trail._complain(error)
                self.trail.lose("recorder-error")


class Session:
    """The messages of one client and one server. May be used from any thread."""

    def __init__(self, recorder: Recorder) -> None:
        self.peers = Peers()
        self._recorder = recorder
        self._trail = recorder.trail
        self._id = str(uuid7())
        self._pending: dict[str, Pending] = {}
        self._by_token: dict[str, Pending] = {}
        self._room = threading.Condition()

    def from_client(self, line: Line) -> list[Any]:
        """Record what the client sends. Returns the ids of its requests.

        Raises SpoolFullError with `--fail-closed`.
        """
        messages: list[Message] = []
        with self._recorder.harmless():
            try:
                messages = read_messages(line)
            except UnreadableError as error:
                self._trail.lose(str(error))
                if self._trail.settings.when_full == "raise":
                    raise SpoolFullError(str(error)) from error
            for message in messages:
                self._request(message)
        return [each.document["id"] for each in messages if "id" in each.document]

    def wait_for_room(self) -> None:
        """Let a client with many open requests wait for answers; not long, as one may need more."""
        with self._room:
            self._room.wait_for(lambda: len(self._pending) < _ROOM_FROM, _ROOM_SECONDS)

    def from_server(self, line: Line) -> None:
        """Record what the server sends. A text that is no JSON is no message: servers log, too."""
        with self._recorder.harmless():
            try:
                messages = read_messages(line)
            except UnreadableError as error:
                if str(error) != "not-a-message":
                    self._trail.lose(str(error))
                return
            for message in messages:
                document = message.document
                if "method" in document:
                    self._notification(document["method"], _dict(document.get("params")))
                elif "id" in document:
                    self._answer(message)

    def fail(self, error: Exception, request_ids: list[Any] | None = None) -> None:
        """Record that calls end without an answer: those of these requests, or all."""
        with self._recorder.harmless():
            keys = list(self._pending) if request_ids is None else map(_key, request_ids)
            for key in keys:
                pending = self._take(key)
                if pending is not None and pending.call is not None:
                    pending.call.mcp = self.peers.stated()
                    pending.call.fail(error)

    def refuse(self, request_ids: list[Any], reason: str) -> None:
        """Record that the server refused requests as not allowed; `fail` says how they ended."""
        with self._recorder.harmless():
            for key in map(_key, request_ids):
                pending = self._pending.get(key or "")
                if pending is not None and pending.call is not None:
                    self._decide(pending, pending.call, "denied", reason)

    @property
    def is_waiting(self) -> bool:
        """Whether a request has no answer yet."""
        return bool(self._pending)

    def hung_up(self, request_ids: list[Any]) -> None:
        """Record that the client left its requests; before 2026-07-28 it may come back for them."""
        if self.peers.protocol_version >= STATELESS_SINCE:
            self.fail(CancelledError("the client hung up"), request_ids)

    # From the client

    def _request(self, message: Message) -> None:
        document = message.document
        params = _dict(document.get("params"))
        meta = _dict(params.get("_meta"))
        self._introduce(meta.get(_META_CLIENT), meta.get(_META_VERSION))
        method, key = document.get("method"), _key(document.get("id"))
        if method == "tools/call" and isinstance(params.get("name"), str):
            self._begin(key, params, meta, message.not_kept)
        elif method == "tools/list":
            self._keep(key, Pending("list", name=_key(params.get("cursor")) or ""))
        elif method == "initialize":
            self._introduce(params.get("clientInfo"), params.get("protocolVersion"))
            self._keep(key, Pending("initialize"))
        elif method in OF_TASKS:
            task = params.get("taskId")
            if isinstance(task, str):
                self._keep(key, Pending("task", name=brief(task), method=str(method)))
        elif method == "notifications/cancelled":
            reason = str(params.get("reason") or "cancelled by the client")
            self.fail(CancelledError(reason), [params.get("requestId")])

    def _begin(
        self, key: str | None, params: dict[str, Any], meta: dict[str, Any], not_kept: str | None
    ) -> None:
        tool = params["name"][:NAME_MAX_LENGTH]
        call = self._recorder.rounds.resume(tool, params)
        if call is None:
            args = params.get("arguments", {}) if not_kept is None else NotKept(not_kept)
            span = meta.get("traceparent")
            parent = parse_traceparent(span) if isinstance(span, str) else None
            with self._trail.trace(parent and parent.trace_id, conversation=self._id):
                call = self._trail.begin(
                    tool, args, traceparent=str(span).strip().lower() if parent else None
                )
        pending = Pending("call", call, tool)
        self._keep(key, pending)
        if (token := _key(meta.get("progressToken"))) is not None:
            self._by_token[token] = pending

    def _keep(self, key: str | None, pending: Pending) -> None:
        if key is None:
            return
        replaced = self._take(key)
        is_full = (
            len(self._pending) >= _PENDING_MAX
            or self._recorder.pending_count >= _PENDING_OF_ALL_MAX
        )
        if replaced is None and is_full:
            replaced = self._take(next(iter(self._pending), None)) or pending
        if replaced is not pending:
            self._pending[key] = pending
            self._recorder.pending_count += 1
        if replaced is not None and replaced.call is not None:
            self._trail.lose("too-many-open-calls")  # nobody knows how it ends

    def _take(self, key: str | None) -> Pending | None:
        pending = None if key is None else self._pending.pop(key, None)
        self._recorder.pending_count -= pending is not None
        if len(self._pending) == _ROOM_FROM - 1:
            with self._room:
                self._room.notify_all()
        if pending is not None and self._by_token:
            self._by_token = {k: each for k, each in self._by_token.items() if each is not pending}
        return pending

    # From the server

    def _answer(self, message: Message) -> None:
        document = message.document
        pending = self._take(_key(document.get("id")))
        if pending is None:
            return
        result = document.get("result")
        named = _dict(_dict(result).get("_meta")).get(_META_SERVER)
        self.peers.server = _party(named) or self.peers.server
        if pending.call is not None:
            pending.call.mcp = self.peers.stated()
            self._end(pending, pending.call, message)
        elif pending.kind == "initialize":
            stated = _dict(result)
            self.peers.server = _party(stated.get("serverInfo")) or self.peers.server
            self._introduce(None, stated.get("protocolVersion"))
        elif pending.kind == "list" and message.is_whole:
            self._list(pending.name, _dict(result), message.size)
        elif pending.kind == "list":
            self._trail.lose("message-too-long")
        elif pending.kind == "task" and isinstance(result, dict):
            self._recorder.rounds.follow(pending.name, pending.method, ResultDocument(result))

    def _end(self, pending: Pending, call: Call, message: Message) -> None:
        result, error = message.document.get("result"), message.document.get("error")
        if isinstance(error, Mapping):
            code = error.get("code")
            text = str(error.get("message") or "")
            if code == _INVALID_PARAMS:
                self._decide(pending, call, "rejectedArguments", text)
            data = {"details": {"data": error["data"]}} if "data" in error else {}
            kind = _TYPES.get(code, "FATAL") if isinstance(code, int) else "FATAL"
            detail = {"type": kind, "code": str(code), "message": text, **data}
            call.finish({"status": "error", "error": detail})
        elif message.not_kept is not None:
            if _dict(result).get("isError") is True:
                detail = {"type": TOOL_ERROR, "message": f"The answer is {message.not_kept}"}
                call.finish({"status": "error", "error": detail})
            else:
                call.finish(NotKept(message.not_kept))
        else:
            read = ResultDocument(result) if isinstance(result, dict) else None
            call.finish(result if read is None else read)
            self._recorder.rounds.keep(call, pending.name, read)

    def _decide(
        self,
        pending: Pending,
        call: Call,
        decision: Literal["denied", "rejectedArguments"],
        reason: str,
    ) -> None:
        with self._trail.trace(call.trace_id, conversation=self._id):
            self._trail.decision(pending.name, decision, reason=reason, invocation_id=call.id)

    def _notification(self, method: Any, params: dict[str, Any]) -> None:
        if method == "notifications/progress":
            pending = self._by_token.get(_key(params.get("progressToken")) or "")
            if pending is not None and pending.call is not None:
                self._progress(pending, pending.call, params)
        elif method == "notifications/tasks/status":
            follow = self._recorder.rounds.follow
            follow(str(params.get("taskId")), "tasks/get", ResultDocument(params))

    def _progress(self, pending: Pending, call: Call, params: dict[str, Any]) -> None:
        now = time.monotonic()
        is_early = pending.reports and now - pending.reported_at < _PROGRESS_SECONDS
        if is_early or pending.reports >= _PROGRESS_MAX:
            return
        pending.reports += 1
        pending.reported_at = now
        step = {name: params[name] for name in ("progress", "total", "message") if name in params}
        call.mcp = self.peers.stated()
        call.report("working", step)

    def _list(self, cursor: str, result: dict[str, Any], size: int) -> None:
        """Report a list when its last page has come: what is not in a first list is a change.

        Of a list that is too long, each part is reported when it has come.
        """
        lists = self._recorder.lists
        page = result.get("tools")
        before, before_size = lists.pop(cursor, ([], 0))
        if before_size + size > READ_MAX_BYTES:
            self._report(before)
            before, before_size = [], 0
        tools, size = before + (page if isinstance(page, list) else []), before_size + size
        following = _key(result.get("nextCursor"))
        if following is not None and len(tools) < DEFINITIONS_MAX:
            if len(lists) >= _LISTS_MAX:
                self._report(lists.pop(next(iter(lists)))[0])
            lists[following] = tools, size
        else:
            self._report(tools)

    def _report(self, tools: list[Any]) -> None:
        if tools:
            server = self.peers.server or {"name": self._recorder.server_name}
            self._trail.definitions(server, tools, client=self.peers.client)

    def _introduce(self, client: Any, protocol_version: Any) -> None:
        self.peers.client = _party(client) or self.peers.client
        if isinstance(protocol_version, str) and protocol_version:
            self.peers.protocol_version = protocol_version[:_VERSION_CHARACTERS]


def request_ids(line: Line) -> list[Any]:
    """The ids of the requests in a line, to answer them; none if it cannot be read."""
    try:
        messages = read_messages(line)
    except UnreadableError:
        return []
    return [each.document["id"] for each in messages if "id" in each.document]


def _key(value: Any) -> str | None:
    """A text for a request's id or a progress token; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return brief(f"{'s' if isinstance(value, str) else 'n'}{value}")


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _party(stated: Any) -> dict[str, str] | None:
    """Name and version of a peer; None if it says no name."""
    stated = _dict(stated)
    party = {
        name: stated[name][:NAME_MAX_LENGTH]
        for name in ("name", "version")
        if isinstance(stated.get(name), str) and stated[name]
    }
    return party if "name" in party else None
