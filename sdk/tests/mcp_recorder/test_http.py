"""The recorder between HTTP clients and a server: bodies and headers pass, calls are recorded."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tooltrail.mcp_recorder.http import Proxy
from tooltrail.mcp_recorder.messages import Events
from tooltrail.mcp_recorder.session import Recorder
from tooltrail.testing import MemoryTrail

from sdk.tests.support.mcp_events import TEXT, state

PATIENCE_SECONDS = 60.0
LONG = "x" * 3_000_000


class Upstream(ThreadingHTTPServer):
    """A server of MCP whose path says how it answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[bytes] = []
        self.has_lost_client = threading.Event()
        self.stream = threading.Event()
        self.answers: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            if len(body) < length:
                return
        self.server.bodies.append(body)
        try:
            asked = json.loads(body)
        except ValueError:
            asked = {}
        result = {"jsonrpc": "2.0", "id": asked.get("id"), "result": TEXT}
        match self.path:
            case "/sse":
                event = b"id: 1\r\nevent: message\r\ndata: %b\r\n\r\n" % json.dumps(result).encode()
                self.chunks(b": hello\n\n", event[:20], event[20:])
            case "/long":
                self.whole(200, json.dumps({**result, "result": {"content": [LONG]}}).encode())
            case path if path.startswith("/redirect"):
                to = "https://other.example/mcp" if "?" in path else f"{self.server.url}/?a=%20b"
                self.whole(307, b"", {"Location": to})
            case "/progress":
                step = {"progressToken": "p", "progress": 1, "total": 2}
                told = {"jsonrpc": "2.0", "method": "notifications/progress", "params": step}
                events = [b"data: %b\n\n" % json.dumps(each).encode() for each in (told, result)]
                self.chunks(*events)
            case "/input":
                waiting = {"resultType": "input_required", "requestState": "s1"}
                self.whole(200, json.dumps({**result, "result": waiting}).encode())
            case "/task":
                begun = {"resultType": "task", "taskId": "t1", "status": "working"}
                done = {"taskId": "t1", "status": "completed", "result": TEXT}
                said = done if asked["method"] == "tasks/get" else begun
                self.whole(200, json.dumps({**result, "result": said}).encode())
            case "/unauthorized":
                self.whole(401, b"no", {"WWW-Authenticate": "Bearer"})
            case "/never":
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                self.connection.settimeout(PATIENCE_SECONDS)
                assert self.connection.recv(1) == b""
                self.server.has_lost_client.set()
                self.close_connection = True
            case "/silent/messages":
                self.whole(202, b"")
            case path if path.startswith("/messages"):
                self.server.answers.append(json.dumps(result).encode())
                self.server.stream.set()
                self.whole(202, b"Accepted", {"Content-Type": "text/plain"})
            case _:
                session = {"Mcp-Session-Id": "s1", "X-Own": "kept"}
                self.whole(200, json.dumps(result).encode(), session)

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if self.path == "/many":
            for number in range(3000):
                self.wfile.write(b"event: endpoint\ndata: /old/%d\n\n" % number)
        where = b"/silent/messages" if self.path == "/silent" else b"/messages?session_id=7"
        self.wfile.write(b"event: endpoint\ndata: %b\n\n" % where)
        assert self.server.stream.wait(PATIENCE_SECONDS)
        if self.path == "/silent":
            self.close_connection = True
            return
        self.wfile.write(b"event: message\ndata: %b\n\n" % self.server.answers[0])
        self.close_connection = True

    def do_DELETE(self) -> None:
        self.send_response(204)
        self.end_headers()

    def whole(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def chunks(self, *parts: bytes) -> None:
        self.send_response_only(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in parts:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Running(Upstream()) as server:
        yield server


@pytest.fixture
def trail() -> MemoryTrail:
    return MemoryTrail(clock=None, ids=None)


@pytest.fixture
def proxy(upstream: Upstream, trail: MemoryTrail) -> Iterator[Proxy]:
    with Running(Proxy(upstream.url, "127.0.0.1", 0, Recorder(trail, "up"), 40)) as server:
        yield server


class Running[S: ThreadingHTTPServer]:
    """Serve for the block."""

    def __init__(self, server: S) -> None:
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> S:
        self._thread.start()
        return self._server

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE_SECONDS)


def call_text(meta: dict[str, str] | None = None) -> bytes:
    params = {"name": "weather", "arguments": {"city": "London"}, "_meta": meta or {}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(call).encode()


def ask(
    port: int, path: str, body: bytes | None, method: str = "POST", **headers: str
) -> tuple[int, list[tuple[str, str]], bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()


def wait_for(fulfilled: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not fulfilled():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("path", ["/mcp", "/sse", "/long", "/unauthorized", "/messages?a=%20b"])
def test_answer_is_that_without_the_recorder(proxy: Proxy, upstream: Upstream, path: str) -> None:
    direct = ask(upstream.server_port, path, call_text())
    passed = ask(proxy.server_port, path, call_text())

    assert passed == direct
    assert upstream.bodies == [call_text(), call_text()]


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
def test_call_is_recorded_before_its_answer_passes(
    proxy: Proxy, trail: MemoryTrail, path: str
) -> None:
    _, _, body = ask(proxy.server_port, path, call_text())

    assert b"22.5" in body
    start, end = trail.events
    assert (start["args"], state(end)) == ({"city": "London"}, "ok")
    assert end["output"]["data"] == TEXT


def test_session_of_the_header_has_the_peers_of_its_handshake(
    proxy: Proxy, trail: MemoryTrail
) -> None:
    asked = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "desk", "version": "2"}}
    initialize = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": asked}
    ask(proxy.server_port, "/mcp", json.dumps(initialize).encode())
    ask(proxy.server_port, "/mcp", call_text(), **{"Mcp-Session-Id": "s1"})
    assert ask(proxy.server_port, "/mcp", None, "DELETE")[0] == 204

    _, end = trail.events
    assert end["mcp"]["client"] == {"name": "desk", "version": "2"}
    assert end["mcp"]["protocol_version"] == "2025-11-25"


def test_answer_on_the_stream_of_2024_ends_the_call(proxy: Proxy, trail: MemoryTrail) -> None:
    stream = HTTPConnection("127.0.0.1", proxy.server_port, timeout=PATIENCE_SECONDS)
    stream.request("GET", "/sse")
    answer = stream.getresponse()
    first = answer.readline() + answer.readline()
    assert first == b"event: endpoint\ndata: /messages?session_id=7\n"

    status, _, _ = ask(proxy.server_port, "/messages?session_id=7", call_text())
    rest = answer.read()
    stream.close()

    assert status == 202
    assert b"22.5" in rest
    assert [state(each) for each in trail.events] == ["start", "ok"]


@pytest.mark.parametrize("who", ["client", "server"])
def test_end_of_the_stream_of_2024_ends_its_calls(
    proxy: Proxy, upstream: Upstream, trail: MemoryTrail, who: str
) -> None:
    stream = HTTPConnection("127.0.0.1", proxy.server_port, timeout=PATIENCE_SECONDS)
    stream.request("GET", "/silent")
    answer = stream.getresponse()
    answer.readline()
    ask(proxy.server_port, "/silent/messages", call_text())
    if who == "server":
        upstream.stream.set()
        answer.read()
    assert stream.sock is not None
    stream.sock.shutdown(socket.SHUT_RDWR)
    stream.close()

    wait_for(lambda: len(trail.events) == 2)
    ended = "cancelled" if who == "client" else "failed"
    assert [state(each) for each in trail.events] == ["start", ended]
    upstream.stream.set()


def test_progress_and_result_on_one_stream_are_one_call(proxy: Proxy, trail: MemoryTrail) -> None:
    ask(proxy.server_port, "/progress", call_text({"progressToken": "p"}))

    assert [state(each) for each in trail.events] == ["start", "working", "ok"]
    assert trail.events[1]["output"] == {"progress": 1, "total": 2}


def test_rounds_of_input_without_a_session_are_one_call(proxy: Proxy, trail: MemoryTrail) -> None:
    ask(proxy.server_port, "/input", call_text())
    again = json.loads(call_text())
    again["params"] |= {"requestState": "s1", "inputResponses": {}}
    ask(proxy.server_port, "/mcp", json.dumps(again).encode())

    assert [state(each) for each in trail.events] == ["start", "waiting", "ok"]


def test_task_without_a_session_is_one_call(proxy: Proxy, trail: MemoryTrail) -> None:
    ask(proxy.server_port, "/task", call_text())
    poll = {"jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": {"taskId": "t1"}}
    ask(proxy.server_port, "/task", json.dumps(poll).encode())

    assert [state(each) for each in trail.events] == ["start", "working", "ok"]


@pytest.mark.parametrize("body", [b'{"id":1,"method":"tools/call"', b'{"a":"\xff"}', b"\x00"])
def test_request_that_cannot_be_read_passes_and_is_a_gap(
    proxy: Proxy, upstream: Upstream, trail: MemoryTrail, body: bytes
) -> None:
    assert ask(proxy.server_port, "/mcp", body)[0] == 200
    assert upstream.bodies == [body]
    ask(proxy.server_port, "/mcp", call_text())

    reason = "not-a-message" if body == b"\x00" else "unreadable-message"
    assert sorted(state(each) for each in trail.events) == [f"gap {reason}", "ok", "start"]


def test_calls_that_wait_when_the_recorder_is_stopped_have_ended(
    proxy: Proxy, trail: MemoryTrail
) -> None:
    client = HTTPConnection("127.0.0.1", proxy.server_port, timeout=PATIENCE_SECONDS)
    client.request("POST", "/never", call_text())
    client.getresponse()
    proxy.sessions.end()

    assert [state(each) for each in trail.events] == ["start", "failed"]
    assert trail.events[1]["output"]["error"]["message"] == "the recorder was stopped"
    client.close()


def test_stream_that_names_many_addresses_has_the_last_one(
    proxy: Proxy, upstream: Upstream, trail: MemoryTrail
) -> None:
    stream = HTTPConnection("127.0.0.1", proxy.server_port, timeout=PATIENCE_SECONDS)
    stream.request("GET", "/many")
    answer = stream.getresponse()
    while answer.readline() != b"data: /messages?session_id=7\n":
        pass
    answer.readline()
    ask(proxy.server_port, "/messages?session_id=7", call_text())
    answer.read()
    stream.close()

    assert [state(each) for each in trail.events] == ["start", "ok"]
    assert len(proxy.sessions._sessions) == 0


def test_end_of_the_session_cancels_its_calls(proxy: Proxy, trail: MemoryTrail) -> None:
    ask(proxy.server_port, "/mcp", b'{"jsonrpc":"2.0","id":0,"method":"ping"}')
    held = {"Mcp-Session-Id": "s1"}
    ask(proxy.server_port, "/silent/messages", call_text(), **held)
    ask(proxy.server_port, "/mcp", None, "DELETE", **held)

    assert [state(each) for each in trail.events] == ["start", "cancelled"]


def test_refused_call_is_a_decision_and_a_failed_call(proxy: Proxy, trail: MemoryTrail) -> None:
    ask(proxy.server_port, "/unauthorized", call_text())

    start, decision, end = trail.events
    assert [state(each) for each in (start, decision, end)] == ["start", "denied", "failed"]
    assert end["output"]["error"]["upstream_status"] == 401
    assert decision["invocation_id"] == start["invocation_id"]


def test_client_that_hangs_up_cancels_its_call_since_2026(
    proxy: Proxy, upstream: Upstream, trail: MemoryTrail
) -> None:
    body = call_text({"io.modelcontextprotocol/protocolVersion": "2026-07-28"})
    client = HTTPConnection("127.0.0.1", proxy.server_port, timeout=PATIENCE_SECONDS)
    client.request("POST", "/never", body)
    client.getresponse()
    assert client.sock is not None
    client.sock.shutdown(socket.SHUT_RDWR)
    client.close()

    assert upstream.has_lost_client.wait(PATIENCE_SECONDS), "the server sees the hang-up"
    wait_for(lambda: len(trail.events) == 2)
    assert [state(each) for each in trail.events] == ["start", "cancelled"]


def test_server_that_is_not_there_is_a_bad_gateway(trail: MemoryTrail) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
        with Running(Proxy(url, "127.0.0.1", 0, Recorder(trail, "up"), 40)) as proxy:
            status, _, _ = ask(proxy.server_port, "/mcp", call_text())
    assert status == 502


def test_fail_closed_sends_no_call_that_is_not_recorded(upstream: Upstream) -> None:
    trail = MemoryTrail(when_full="raise")
    trail._make_producer().spool.allowance = 0
    with Running(Proxy(upstream.url, "127.0.0.1", 0, Recorder(trail, "up"), 40)) as proxy:
        status, _, body = ask(proxy.server_port, "/mcp", call_text())

    assert status == 503
    assert json.loads(body)["error"]["code"] == -32000
    assert upstream.bodies == []


@pytest.mark.parametrize("path", ["/redirect", "/redirect?to=elsewhere"])
def test_redirect_leads_past_the_recorder_only_to_another_host(
    proxy: Proxy, upstream: Upstream, path: str
) -> None:
    """Servers of mcp 1.9 redirect /mcp to /mcp/ with their whole address."""
    status, headers, _ = ask(proxy.server_port, path, call_text())

    own = f"http://127.0.0.1:{proxy.server_port}/mcp/?a=%20b"
    elsewhere = "https://other.example/mcp"
    assert status == 307
    assert dict(headers)["Location"] == (elsewhere if "elsewhere" in path else own)


def test_redirected_call_is_one_call(proxy: Proxy, trail: MemoryTrail) -> None:
    """The client repeats its request, as it was, where it is told to."""
    ask(proxy.server_port, "/redirect", call_text())
    assert [state(each) for each in trail.events] == ["start"]
    ask(proxy.server_port, "/mcp/?a=%20b", call_text())

    assert [state(each) for each in trail.events] == ["start", "ok"]


def test_other_host_is_refused(proxy: Proxy, upstream: Upstream) -> None:
    assert ask(proxy.server_port, "/mcp", call_text(), Host="evil.example")[0] == 403
    assert upstream.bodies == []


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (b"Content-Length: 5\r\nContent-Length: 6", b"hello"),
        (b"Content-Length: 0x5", b"hello"),
        (b"Content-Length: -5", b"hello"),
        (b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
        (b"Transfer-Encoding: gzip, chunked", b"0\r\n\r\n"),
        (b"Transfer-Encoding: chunked", b"five\r\nhello\r\n0\r\n\r\n"),
        (b"Transfer-Encoding: chunked", b"3\r\nhello\r\n0\r\n\r\n"),
    ],
)
def test_body_whose_end_is_not_clear_is_a_bad_request(
    proxy: Proxy, upstream: Upstream, trail: MemoryTrail, headers: bytes, body: bytes
) -> None:
    """Two servers that read it differently would take a part of it for a request."""
    with socket.create_connection(("127.0.0.1", proxy.server_port), PATIENCE_SECONDS) as client:
        client.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n%b\r\n\r\n%b" % (headers, body))
        answer = b"".join(iter(lambda: client.recv(4096), b""))

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"tooltrail: " in answer
    assert not upstream.bodies
    assert not trail.events


def test_chunked_request_passes_in_chunks(proxy: Proxy, upstream: Upstream) -> None:
    chunks = [call_text()[:30], call_text()[30:]]
    connection = HTTPConnection("127.0.0.1", proxy.server_port, timeout=PATIENCE_SECONDS)
    connection.request("POST", "/mcp", iter(chunks), encode_chunked=True)
    assert json.loads(connection.getresponse().read())["result"] == TEXT
    connection.close()

    assert upstream.bodies == [call_text()]


def test_long_answer_passes_and_is_told_by_its_length(proxy: Proxy, trail: MemoryTrail) -> None:
    _, _, body = ask(proxy.server_port, "/long", call_text())

    assert len(body) > len(LONG)
    _, end = trail.events
    assert end["removed"] == [{"path": "$.output.data", "reason": f"too long: {len(body)} bytes"}]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
def test_events_do_not_depend_on_how_the_stream_is_cut(size: int, end: bytes) -> None:
    lines = [
        b":hi",
        b"event: endpoint",
        b"data: /a",
        b"",
        b"data:{",
        b"data: }",
        b"id: 1",
        b"",
        b"x",
    ]
    stream = end.join([*lines, b""])
    events = Events()
    cut = [stream[at : at + size] for at in range(0, len(stream), size)]
    found = [(name, data.head) for part in cut for name, data in events.feed(part)]

    assert found == [(b"endpoint", b"/a"), (b"", b"{\n}")]
