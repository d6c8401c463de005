# /// script
# requires-python = ">=3.12"
# dependencies = ["opentelemetry-exporter-otlp-proto-http", "opentelemetry-sdk", "tooltrail"]
#
# [tool.uv.sources]
# tooltrail = { path = "../sdk", editable = true }
# ///
"""What recording a tool call costs the thread that makes it, beside OpenTelemetry's SDK.

Run: uv run --script bench/sdk.py [--calls 20000] [--full]

The same function, with arguments of 500 bytes and a result of 1 KB, is called in a tight loop. Each
mode runs in a fresh process, with a server on loopback in another process. Every call is timed
separately; `bare` is the cost of the timer itself. `--full` adds a run of a million calls to
measure memory.
"""

import argparse
import gzip
import json
import logging
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

KEY = "tt_0198c0de000070008000000000000001_bench_secret_crc"
ARGS: dict[str, Any] = {
    "query": "which hats were in fashion in London " * 6,
    "filters": {"language": "en", "tags": ["hats", "fashion", "history"], "since": 1890},
    "limit": 25,
    "session": {"user": "a-user", "note": "n" * 120, "score": 0.75, "is_new": False},
}
RESULT = {
    "hits": [
        {"id": n, "title": f"Hat number {n}", "score": n / 7, "text": "Felt, silk or straw. " * 3}
        for n in range(8)
    ],
    "total": 8,
}
MODES = {
    "bare": "the function alone",
    "memory": "Tooltrail, memory, no redaction ¹",
    "process-plain": "Tooltrail, process, no redaction ¹",
    "process-emit": "Tooltrail, emit(), the caller's call id ²",
    "process": "Tooltrail, process, default redaction ¹",
    "fsync": "Tooltrail, fsync, default redaction ¹",
    "opentelemetry": "OpenTelemetry SDK, batch, OTLP/HTTP",
}

FOOTNOTES = """
¹ including the call id, a hash of tool and arguments that the decorator makes of each call
² no redaction; including all the caller does to build both events and hand them over"""


def search(
    query: str, filters: dict[str, Any], limit: int, session: dict[str, Any]
) -> dict[str, Any]:
    """Find hats."""
    return RESULT


def serve() -> None:
    """Serve as a receiver that counts events and spans; `GET /` returns the counts."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    counts = {"events": 0, "spans": 0}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            answer = b"{}"
            if self.path == "/v1/traces":
                request = ExportTraceServiceRequest.FromString(body)
                spans = sum(len(s.spans) for r in request.resource_spans for s in r.scope_spans)
                counts["spans"] += spans
                answer = b""
            elif self.path == "/api/v1/events":
                counts["events"] += body.count(b"\n")
                answer = b'{"accepted": 1}'
            self.reply(answer)

        def do_GET(self) -> None:
            self.reply(json.dumps(counts).encode())

        def reply(self, answer: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


def recorded(mode: str, url: str, folder: str) -> tuple[Callable[..., Any], Callable[[], None]]:
    """The function recorded in this mode, and a function that ends the recording."""
    if mode == "bare":
        return search, lambda: None
    if mode == "opentelemetry":
        return with_opentelemetry(url)
    from tooltrail import Trail

    spool = mode.partition("-")[0]
    redact = mode in ("process", "fsync")
    trail = Trail(url, KEY, spool=spool, spool_dir=folder, redact=redact)  # type: ignore[arg-type]  # a mode begins with a spool
    tool = emitting(trail) if mode == "process-emit" else trail.tool(search)

    return tool, lambda: None if trail.close(60) else sys.exit("not all events were sent")


def emitting(trail: Any) -> Callable[..., Any]:
    """Record with `emit()`, like a host that already knows the call id, such as an ADK executor."""
    from uuid_utils import uuid7

    call_id = "c" * 64

    def tool(**args: Any) -> Any:
        began, started_at = time.perf_counter_ns(), datetime.now(UTC)
        call = {
            "invocation_id": str(uuid7()),
            "trace_id": "trace-123",
            "tool_name": "search",
            "call_id": call_id,
            "started_at": started_at,
        }
        trail.emit({"type": "toolExecutionStart", **call, "args": args})
        result = search(**args)
        took_ms = (time.perf_counter_ns() - began) / 1e6
        trail.emit(
            {
                "type": "toolExecutionEnd",
                **call,
                "ended_at": started_at + timedelta(milliseconds=took_ms),
                "duration_ms": took_ms,
                "is_error": False,
                "output": {"status": "ok", "data": result, "meta": {"took_ms": int(took_ms)}},
            }
        )
        return result

    return tool


def with_opentelemetry(url: str) -> tuple[Callable[..., Any], Callable[[], None]]:
    """Record like instrumentations: a span per call, arguments and result as JSON attributes."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    logging.disable(logging.CRITICAL)
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
    tracer = provider.get_tracer("bench")

    def tool(**args: Any) -> Any:
        with tracer.start_as_current_span("execute_tool search") as span:
            span.set_attribute("gen_ai.operation.name", "execute_tool")
            span.set_attribute("gen_ai.tool.name", "search")
            span.set_attribute("gen_ai.tool.call.arguments", json.dumps(args))
            result = search(**args)
            span.set_attribute("gen_ai.tool.call.result", json.dumps(result))
            return result

    return tool, provider.shutdown


def run(mode: str, calls: int, url: str, rest: float) -> None:
    """Make the calls in this process and print the figures as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        tool, close = recorded(mode, url, folder)
        for _ in range(200):
            tool(**ARGS)
        # Allocated before, so that it does not count as growth.
        times = array("q", bytes(8 * calls))
        before = resident_bytes()
        clock = time.perf_counter_ns
        for n in range(calls):
            began = clock()
            tool(**ARGS)
            times[n] = clock() - began
            if rest and n % 100 == 0:
                time.sleep(rest)
        grown = resident_bytes() - before
        close()
    ordered = sorted(times)
    figures = {
        "p50": ordered[calls // 2] / 1000,
        "p99": ordered[calls * 99 // 100] / 1000,
        "mean": sum(ordered) / calls / 1000,
        "max": ordered[-1] / 1000,
        "grown_mb": grown / 1e6,
    }
    print(json.dumps(figures))


def resident_bytes() -> int:
    """This process's current memory; without /proc its peak."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(mode: str, calls: int, rest: float = 0.0) -> dict[str, Any]:
    """Run one mode in separate processes; returns its figures."""
    from urllib.request import urlopen

    command = [sys.executable, __file__]
    with subprocess.Popen([*command, "--serve"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        try:
            completed = subprocess.run(
                [*command, "--run", mode, "--url", url, "--calls", str(calls), "--rest", str(rest)],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                timeout=900,
                env={**os.environ, "OTEL_SDK_DISABLED": "false"},
            )
            with urlopen(url) as answer:
                counts = json.load(answer)
        finally:
            server.terminate()
    figures: dict[str, Any] = json.loads(completed.stdout)
    arrived = counts["spans"] if mode == "opentelemetry" else counts["events"] / 2
    figures["lost"] = 0.0 if mode == "bare" else 1 - arrived / (calls + 200)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--full", action="store_true", help="also memory of a million calls")
    parser.add_argument("--modes", nargs="*", choices=MODES, default=list(MODES))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--rest", type=float, default=0.0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve()
    if options.run:
        return run(options.run, options.calls, options.url, options.rest)

    sizes = len(json.dumps(ARGS)), len(json.dumps(RESULT))
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}")
    print(f"{options.calls} calls, arguments {sizes[0]} B, result {sizes[1]} B; µs per call\n")
    print(f"{'':42}{'p50':>8}{'p99':>9}{'mean':>8}{'max':>10}{'lost':>8}{'grown':>10}")
    p50: dict[str, float] = {}
    for mode in options.modes:
        calls = min(options.calls, 2000) if mode == "fsync" else options.calls
        figures = measure(mode, calls)
        p50[mode] = figures["p50"]
        show(MODES[mode], figures)
    print(FOOTNOTES)
    if {"process", "opentelemetry"} <= p50.keys():
        ratio = p50["opentelemetry"] / p50["process"]
        print(f"\nOpenTelemetry's p50 is {ratio:.2f} times Tooltrail's (process, redacting).")
    if options.full:
        # With pauses, because no server on the same two cores keeps up with a million in a row.
        show("Tooltrail, a million calls", measure("process", 1_000_000, rest=0.02))
    return None


def show(title: str, figures: dict[str, Any]) -> None:
    print(
        f"{title:42}{figures['p50']:8.1f}{figures['p99']:9.1f}{figures['mean']:8.1f}"
        f"{figures['max']:10.0f}{figures['lost']:8.1%}{figures['grown_mb']:7.1f} MB",
        flush=True,
    )


if __name__ == "__main__":
    main()
