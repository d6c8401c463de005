"""A server that answers requests to a witness with what a test says."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class HostileWitness:
    """Answers with a status, a body and headers; keeps the requests' bodies."""

    url: str
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[bytes] = field(default_factory=list)


@contextmanager
def hostile_witness() -> Iterator[HostileWitness]:
    """The server, on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            one.requests.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(one.status)
            for name, value in one.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(one.body)))
            self.end_headers()
            self.wfile.write(one.body)

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    one = HostileWitness(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        thread.join(60)
        server.server_close()
