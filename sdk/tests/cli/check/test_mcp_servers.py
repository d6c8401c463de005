"""`tooltrail check` lists the tools of running MCP servers, of hostile ones, too."""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tooltrail.cli.check import mcp_servers
from tooltrail.cli.check.definitions import CheckError, Definition
from tooltrail.cli.main import main

from sdk.tests.support import listing_server
from sdk.tests.support.listing_server import TOOL, answer_to

SCRIPT = str(Path(listing_server.__file__))
HOSTILE = {
    "refuses": "refuses",
    "no_version": "no version",
    "endless_pages": "more than 3 pages",
    "wrong_cursor": "nextCursor",
    "no_list": "no list of tools",
    "empty": "has no tools",
    "error": "refuses tools/list",
    "long": "more than 300,000 bytes",
}
"""By mode, why nothing can be checked."""


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_servers, "PAGES_MAX", 3)
    monkeypatch.setattr(mcp_servers, "LIST_MAX_BYTES", 300_000)
    monkeypatch.setattr(mcp_servers, "END_SECONDS", 0.05)


def command(mode: str) -> list[str]:
    """A server of standard streams."""
    return [sys.executable, SCRIPT, mode]


def soon(seconds: float = 30.0) -> float:
    """A deadline."""
    return time.monotonic() + seconds


def names(definitions: list[Definition]) -> list[str]:
    """The names that the definitions give."""
    return [one.content["name"] for one in definitions]


@contextmanager
def serving(mode: str, headers: list[dict[str, str]], *, as_stream: bool) -> Iterator[str]:
    """A server behind a URL; its requests' headers are added to a list."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            headers.append({name.lower(): value for name, value in self.headers.items()})
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if "id" not in request:
                self.send_response(202)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            answer = answer_to(mode, request)
            if answer is None:
                time.sleep(2)
                return
            kind = "application/json"
            if as_stream:
                kind = "text/event-stream"
                notice = b'data: {"jsonrpc":"2.0","method":"notifications/message"}\r\n\r\n'
                answer = b": hello\n\n" + notice + b"event: message\ndata: " + answer + b"\n\n"
            if mode == "redirects":
                self.send_response(307)
                self.send_header("Location", "http://127.0.0.1:9/")
            else:
                self.send_response(200)
            if request["method"] == "initialize":
                self.send_header("Mcp-Session-Id", "session-1")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Http(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # the client hangs up on hostile answers

    http = Http(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/mcp"
    finally:
        http.shutdown()
        http.server_close()


@pytest.mark.parametrize("as_stream", [False, True])
@pytest.mark.parametrize("mode", ["plain", "paged", "no_handshake"])
def test_tools_behind_a_url_are_listed(
    mode: str, as_stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_AUTHORIZATION", "Bearer secret")
    headers: list[dict[str, str]] = []
    with serving(mode, headers, as_stream=as_stream) as url:
        definitions = mcp_servers.list_of_url(url, soon())
    expected = {"paged": ["echo_0", "echo_1", "echo_2"], "no_handshake": ["2026-07-28"]}
    assert names(definitions) == expected.get(mode, ["echo"])
    assert definitions[0].place == f"{url}: tools[0]"
    assert {one["authorization"] for one in headers} == {"Bearer secret"}
    later = headers[1:]
    assert {one["mcp-session-id"] for one in later} == {"session-1"}
    version = "2026-07-28" if mode == "no_handshake" else "2025-11-25"
    assert {one["mcp-protocol-version"] for one in later} == {version}


@pytest.mark.parametrize("mode", ["plain", "paged", "no_handshake", "chatty", "stays"])
def test_tools_of_a_command_are_listed(mode: str) -> None:
    definitions = mcp_servers.list_of_command(command(mode), soon())
    assert names(definitions)[0] in ("echo", "echo_0", "2026-07-28")
    assert definitions[0].content["inputSchema"] == TOOL["inputSchema"]


def test_started_server_ends_with_what_it_started_and_gets_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLTRAIL_API_KEY", "tt_secret")
    script = f"sleep 300 & echo $! > {tmp_path}/pid; env > {tmp_path}/env; exec '{sys.executable}'"
    mcp_servers.list_of_command(["sh", "-c", f"{script} '{SCRIPT}' plain"], soon())
    assert "tt_secret" not in (tmp_path / "env").read_text()
    child = int((tmp_path / "pid").read_text())
    end = soon()
    while Path(f"/proc/{child}").exists() and " Z " not in Path(f"/proc/{child}/stat").read_text():
        assert time.monotonic() < end, "the server's child goes on"
        time.sleep(0.02)


@pytest.mark.generated(4)
@pytest.mark.parametrize("mode", [*HOSTILE, "nan", "deep", "other_id", "redirects"])
def test_hostile_url_is_refused_with_a_reason(mode: str) -> None:
    with (
        serving(mode, [], as_stream=False) as url,
        pytest.raises(CheckError, match=HOSTILE.get(mode, "http")) as raised,
    ):
        mcp_servers.list_of_url(url, soon())
    assert str(raised.value).startswith(url)


@pytest.mark.generated(3)
@pytest.mark.parametrize("mode", HOSTILE)
def test_hostile_command_is_refused_with_a_reason(mode: str) -> None:
    with pytest.raises(CheckError, match=HOSTILE[mode]):
        mcp_servers.list_of_command(command(mode), soon())


@pytest.mark.slow
@pytest.mark.generated(2)
@pytest.mark.parametrize("mode", ["silent", "drips", "nan", "deep", "other_id"])
def test_command_without_an_answer_is_waited_for_in_vain(mode: str) -> None:
    began = time.monotonic()
    with pytest.raises(CheckError, match="in time"):
        mcp_servers.list_of_command(command(mode), soon(0.4))
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_url_without_an_answer_is_waited_for_in_vain() -> None:
    with serving("silent", [], as_stream=False) as url, pytest.raises(CheckError, match="answer"):
        mcp_servers.list_of_url(url, soon(0.3))


@pytest.mark.parametrize("mode", ["dies", "none"])
def test_command_that_does_not_serve_is_refused(mode: str) -> None:
    missing = ["/nonexistent/server"] if mode == "none" else command(mode)
    with pytest.raises(CheckError, match=r"No such file|ended before"):
        mcp_servers.list_of_command(missing, soon())


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "tools.json", "http://", "http://127.0.0.1:9"]
)
def test_url_that_does_not_serve_is_refused(url: str) -> None:
    with pytest.raises(CheckError):
        mcp_servers.list_of_url(url, soon())


def test_hostile_texts_cannot_command_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOOLTRAIL_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("TOOLTRAIL_API_KEY", "tt_key")
    for mode in ("refuses", "error"):
        assert main(["check", "--mcp-command", "--", *command(mode)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.isprintable()
        assert line.startswith("tooltrail: ")
        assert "##[" not in line
    assert os.environ["TOOLTRAIL_API_KEY"] == "tt_key"
