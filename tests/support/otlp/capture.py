"""Renew tests/support/otlp/fixtures: run the frameworks, and keep what they sent.

    uv run python -m tests.support.otlp.capture [script …]

Paths of this machine are taken out of stack traces; the rest is as it was sent.
"""

import gzip
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from google.protobuf.message import Message
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from tests.support.otlp.environment import (
    FIXTURES,
    FRAMEWORKS,
    frameworks_python,
    run_framework,
)

CAPTURES = {
    "plain_otel.py protobuf": ["plain-otel.pb"],
    "plain_otel.py json": ["plain-otel.json"],
    "pydantic_ai_agent.py 5": ["pydantic-ai-v5.pb"],
    "pydantic_ai_agent.py 2": ["pydantic-ai-v2.pb"],
    "langchain_tools.py": ["openinference-langchain.pb"],
    "mcp_client_server.py both": ["mcp-in-process.pb"],
    "mcp_client_server.py client content": ["mcp-server.pb", "mcp-client.pb"],
}


class _Sink(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[bytes] = []


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        assert isinstance(self.server, _Sink)
        self.server.bodies.append(body)
        self.send_response(200)
        self.send_header("Content-Type", self.headers["Content-Type"])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def main() -> None:
    for script, names in CAPTURES.items():
        if sys.argv[1:] and script not in sys.argv[1:]:
            continue
        sink = _Sink()
        threading.Thread(target=sink.serve_forever, daemon=True).start()
        run_framework(script, f"http://127.0.0.1:{sink.server_port}", "x-api-key=none")
        sink.shutdown()
        sink.server_close()
        sys.stderr.write(f"{script}: {[len(body) for body in sink.bodies]}\n")
        # On a slow machine, earlier requests report the handshake.
        for name, body in zip(names, sink.bodies[-len(names) :], strict=True):
            (FIXTURES / name).write_bytes(body if name.endswith("json") else _cleaned(body))


def _cleaned(body: bytes) -> bytes:
    request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
    _clean(request)
    return bytes(request.SerializeToString())


_HERE = [
    re.escape(str(folder))
    for folder in (
        next(Path(frameworks_python()).parents[1].glob("lib/python*")),
        FRAMEWORKS,
        Path(sys.base_prefix),
    )
]
_PATHS = re.compile("|".join(f"{folder}/" for folder in _HERE))


def _clean(message: Message) -> None:
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for each in value if field.is_repeated else [value]:
                _clean(each)
        elif isinstance(value, str):
            setattr(message, field.name, _PATHS.sub("", value))


if __name__ == "__main__":
    main()
