"""Which session of MCP an HTTP request belongs to.

Owns the sessions of a proxy by their keys, and the requests that a client is to repeat.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakSet

from tooltrail.mcp_recorder.session import Recorder, Session
from tooltrail.mcp_rounds import brief

_SESSIONS_MAX: Final = 1000
_MOVED_MAX: Final = 100


@dataclass(slots=True)
class ClientRequest:
    """A request of a client while it is passed on."""

    session: Session
    ids: list[Any] = field(default_factory=list)
    """Of its JSON-RPC requests."""
    digest: bytes = b""
    """Of its body."""
    endpoint: str = ""
    """Where the client sends the messages of this stream (2024-11-05)."""


class Sessions:
    """The sessions of one proxy. May be used from any thread.

    A key is the header `Mcp-Session-Id`, or the path that a stream of 2024-11-05 names.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._moved: OrderedDict[bytes, ClientRequest] = OrderedDict()
        self._alive: WeakSet[Session] = WeakSet()
        self._lock = threading.Lock()

    def get(self, key: str) -> Session:
        """The session with this key; a new one if there is none."""
        with self._lock:
            session = self._sessions.get(brief(key))
            if session is not None:
                self._sessions.move_to_end(brief(key))
                return session
            session = Session(self._recorder)
            self._alive.add(session)
            return session

    def keep(self, key: str, session: Session) -> None:
        """Remember a session by its key."""
        with self._lock:
            self._sessions[brief(key)] = session
            self._sessions.move_to_end(brief(key))
            oldest = next(iter(self._sessions)) if len(self._sessions) > _SESSIONS_MAX else None
        if oldest is not None:
            self.forget(oldest, ConnectionAbortedError("the session was given up"))

    def forget(self, key: str, reason: Exception | None = None) -> None:
        """Remember a session no longer. With a reason, its open calls end."""
        with self._lock:
            session = self._sessions.pop(brief(key), None)
        if session is not None and reason is not None:
            session.fail(reason)

    def move(self, request: ClientRequest) -> None:
        """Remember a request that the client is to repeat at another address (RFC 9110, 15.4)."""
        with self._lock:
            self._moved[request.digest] = request
            given_up = self._moved.popitem(last=False)[1] if len(self._moved) > _MOVED_MAX else None
        if given_up is not None:
            given_up.session.fail(ConnectionAbortedError("redirected"), given_up.ids)

    def moved(self, digest: bytes) -> ClientRequest | None:
        """The request that one with the same body repeats."""
        with self._lock:
            return self._moved.pop(digest, None)

    def end(self) -> None:
        """Record that no further answers come."""
        with self._lock:
            sessions = list(self._alive)
        for session in sessions:
            session.fail(ConnectionAbortedError("the recorder was stopped"))
