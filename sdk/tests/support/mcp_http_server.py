"""The server of `mcp_server.py` over HTTP: it answers with JSON at `/json`, with events at `/sse`.

    python -m sdk.tests.support.mcp_http_server MODE [LOG]

It prints its port first.
"""

import json
import os
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from sdk.tests.support.mcp_server import answers


class Server(ThreadingHTTPServer):
    """Answers requests as a server of this mode does."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, mode: str, log: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.mode = mode
        self.log = log.open("ab", buffering=0)


class Handler(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.log.write(b"%d\n" % request["id"])
        is_stream = self.path == "/sse"
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: "
        self.wfile.write(head + (b"text/event-stream" if is_stream else b"application/json"))
        self.wfile.write(b"\r\n\r\n")
        opening, ending = (b"event: message\ndata: ", b"\n") if is_stream else (b"", b"")
        for part in answers(self.server.mode, request):
            self._send(opening + part)
            opening = b""
        self._send(ending)
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, part: bytes) -> None:
        if part:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))

    def log_message(self, format: str, *args: Any) -> None:
        pass


def main() -> None:
    mode, *log = sys.argv[1:]
    with Server(mode, Path(log[0] if log else os.devnull)) as server:
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main()
