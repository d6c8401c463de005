"""A small Tooltrail server on loopback that fails on demand."""

import gzip
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tooltrail.events import CONTRACT_HEADER, CONTRACT_VERSION, EVENT


@dataclass
class Request:
    """One received request; `events` are its parsed lines."""

    path: str
    batch_id: str
    body: bytes
    headers: dict[str, str]

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.body.splitlines()]


Reply = tuple[int, dict[str, Any], dict[str, str]]


@dataclass
class Server:
    """What arrived, and what is answered: `plan` is asked first, None means a good answer.

    As the real one it stores an event once per slot: (invocation, type).
    """

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    slots: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    gaps: dict[str, dict[str, Any]] = field(default_factory=dict)
    batches: dict[str, tuple[bytes, dict[str, Any]]] = field(default_factory=dict)
    duplicates: int = 0
    entries: int = 0
    """The size of its ledger."""
    plan: Callable[[Request], Reply | None] = lambda request: None
    arrived: threading.Condition = field(default_factory=threading.Condition)
    failures: list[BaseException] = field(default_factory=list)
    contract: int = CONTRACT_VERSION
    """Its version of the wire contract. Version 1 names none and rejects decisions."""
    was_asked: int = 0
    """How often it was asked for its version."""

    @property
    def contract_headers(self) -> dict[str, str]:
        """What names its version."""
        return {} if self.contract == 1 else {CONTRACT_HEADER: str(self.contract)}

    def take(self, request: Request) -> Reply:
        with self.arrived:
            self.requests.append(request)
            planned = self.plan(request)
            reply = planned or self._store(request)
            self.arrived.notify_all()
        return reply

    def wait(self, fulfilled: Callable[[], bool], timeout: float = 20.0) -> None:
        """Wait until a condition is true; fail after `timeout` seconds."""
        with self.arrived:
            assert self.arrived.wait_for(fulfilled, timeout), "nothing arrived in time"

    @property
    def events(self) -> list[dict[str, Any]]:
        """Every event stored, in order of arrival."""
        return list(self.slots.values())

    def _store(self, request: Request) -> Reply:
        if request.path == "/api/v1/tools":
            return 200, {"unknown": []}, {}
        known = self.batches.get(request.batch_id)
        if known is not None:
            assert known[0] == request.body, "one batch id, two bodies"
            return 200, known[1], {}
        accepted = 0
        for line in request.body.splitlines():
            EVENT.validate_json(line)
            event = json.loads(line)
            if event["type"] == "gap":
                self.gaps[event["event_id"]] = event
                continue
            if event["type"] == "toolDefinitions":
                assert self.contract > 1, "definitions at a server of version 1"
                accepted += 1
                continue
            is_decision = event["type"] == "toolCallDecision"
            assert not is_decision or self.contract > 1, "a decision at a server of version 1"
            slot = event["event_id" if is_decision else "invocation_id"], event["type"]
            if slot in self.slots:
                assert self.slots[slot] == event, "one slot, two events"
                self.duplicates += 1
            else:
                self.slots[slot] = event
                accepted += 1
        count = len(request.body.splitlines())
        answer = {
            "batch_id": request.batch_id,
            "accepted": accepted,
            "duplicates": 0,
            "rejected": [],
            "ledger": {"first_index": self.entries, "size": self.entries + count},
        }
        self.entries += count
        self.batches[request.batch_id] = request.body, answer
        return 200, answer, {}


@contextmanager
def serving() -> Iterator[Server]:
    """Run a server for the block."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = self.rfile.read(length)
            if len(body) < length:  # the sender ended in the middle of the body
                self.close_connection = True
                return
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            batch_id = self.headers.get("Idempotency-Key", "")
            request = Request(self.path, batch_id, body, dict(self.headers))
            status, document, headers = server.take(request)
            if status == 0:  # close the connection without an answer
                self.close_connection = True
                return
            text = json.dumps(document).encode()
            self.send_response(status)
            if request.path == "/api/v1/events":
                headers = headers | server.contract_headers
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_GET(self) -> None:
            server.was_asked += 1
            self.send_response(405)
            for name, value in server.contract_headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Http(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            error = sys.exception()
            if error is not None and not isinstance(error, OSError):  # a client hung up
                server.failures.append(error)

    http = Http(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_port}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join(5)
    assert not server.failures, server.failures
