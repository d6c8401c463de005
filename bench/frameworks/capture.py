"""Run a pair in an environment of its own, and keep what it sent."""

import gzip
import json
import tempfile
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench.frameworks.pairs import Pair
from sdk.tests.integrations.calls import HERE, run_in_environment

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Captured:
    """The spans that a pair sent, and what happened, as the SDK's adapter recorded it."""

    spans: ExportTraceServiceRequest
    events: list[dict[str, Any]]


class _Tap(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans = ExportTraceServiceRequest()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        if self.path == "/v1/traces":
            assert isinstance(self.server, _Tap)
            self.server.spans.MergeFromString(body)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def capture(pair: Pair) -> Captured | str:
    """Run the pair. Returns why, if it does not run here."""
    tap = _Tap()
    threading.Thread(target=tap.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "events.json"
        ran = run_in_environment(
            pair.framework,
            Path(__file__).with_name("instrumented.py"),
            *(pair.start, str(HERE / pair.framework / "run.py"), str(out)),
            needs=("opentelemetry-exporter-otlp-proto-http", *pair.needs),
            environment={
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{tap.server_port}",
                **pair.environment,
            },
        )
        tap.shutdown()
        if ran.returncode:
            return ran.stderr.strip()[-2000:]
        return Captured(tap.spans, json.loads(out.read_text()))
