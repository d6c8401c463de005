"""How fast tool calls are stored that come as OpenTelemetry traces: OTLP/HTTP, protobuf, gzip.

    uv run bench/otlp.py [--calls 20000] [--clients 4] [--spans 512 50] [--others 0 1]

Starts `manage.py up` with its default settings in a folder of its own, and `--clients` client
processes, each with one connection. A call is a GenAI `execute_tool` span with arguments and
result. With `--others 1` each call has a second span that is not a call, with an agent's prompt,
which must be parsed, too. `spans` is per request; the SDKs send 512.
Everything shares this machine's cores. At the end the server must have counted every call.
Then it prints the cost of each part of our code, measured in this process.
"""

import argparse
import gzip
import http.client
import json
import multiprocessing
import os
import random
import statistics
import sys
import time
from datetime import UTC, datetime
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.generated import TOOLS, WORDS
from bench.own_site import Site, counted, own_site


def make_body(rng: random.Random, spans: int, others: int) -> tuple[bytes, int]:
    """A request body with so many spans, and the number of calls in it; eight calls per trace."""
    request = trace_service_pb2.ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    _set_attributes(
        resource_spans.resource, {"service.name": "shop", "telemetry.sdk.language": "python"}
    )
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = "bench"
    calls, trace_id, root = 0, b"", b""
    while len(scope_spans.spans) < spans:
        if calls % 8 == 0:
            trace_id, root = rng.randbytes(16), rng.randbytes(8)
        span = scope_spans.spans.add(trace_id=trace_id, parent_span_id=root)
        span.span_id = rng.randbytes(8)
        span.start_time_unix_nano = int((time.time() - rng.uniform(0, 3000)) * 1e9)
        span.end_time_unix_nano = span.start_time_unix_nano + int(rng.lognormvariate(18, 1))
        span.kind = 1
        if others and len(scope_spans.spans) % 2:
            span.name = "chat gpt-5"
            content = " ".join(rng.choices(WORDS, k=120))
            _set_attributes(
                span, {"gen_ai.operation.name": "chat", "gen_ai.input.messages": content}
            )
            continue
        calls += 1
        tool = rng.choice(TOOLS)
        span.name = f"execute_tool {tool}"
        text = " ".join(rng.choices(WORDS, k=45))
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": f"call_{rng.getrandbits(64):x}",
            "gen_ai.agent.name": "shopper",
            "gen_ai.conversation.id": trace_id.hex(),
            "gen_ai.tool.call.arguments": json.dumps({"query": text}),
        }
        if rng.random() < 0.05:
            _set_attributes(span, attributes | {"error.type": "timeout"})
            span.status.code, span.status.message = 2, "no answer"
        else:
            result = json.dumps({"text": " ".join(rng.choices(WORDS, k=45))})
            _set_attributes(span, attributes | {"gen_ai.tool.call.result": result})
    return request.SerializeToString(), calls


def make_logs_body(rng: random.Random, records: int) -> bytes:
    """A request body with so many log records of Claude Code, each of which is a call."""
    request = logs_service_pb2.ExportLogsServiceRequest()
    scope_logs = request.resource_logs.add().scope_logs.add()
    for _ in range(records):
        record = scope_logs.log_records.add(time_unix_nano=time.time_ns())
        record.body.string_value = "claude_code.tool_result"
        text = " ".join(rng.choices(WORDS, k=90))
        _set_attributes(
            record,
            {
                "session.id": "s",
                "prompt.id": f"{rng.getrandbits(32):x}",
                "tool_use_id": f"toolu_{rng.getrandbits(64):x}",
                "tool_name": rng.choice(TOOLS),
                "tool_input": json.dumps({"query": text}),
                "success": "true",
                "duration_ms": "12",
            },
        )
    return bytes(request.SerializeToString())


def _set_attributes(holder: Any, attributes: dict[str, str]) -> None:
    for key, value in attributes.items():
        pair = holder.attributes.add(key=key)
        pair.value.string_value = value


def client(
    url: str,
    key: str,
    calls: int,
    shape: tuple[int, int],
    seed: int,
    together: Barrier,
    results: Any,
) -> None:
    """Send; report start and end, calls, response times and size, or a text if it failed."""
    rng = random.Random(seed)
    bodies, call_count, size = [], 0, 0
    while call_count < calls:
        body, count = make_body(rng, *shape)
        bodies.append(gzip.compress(body, compresslevel=1, mtime=0))
        call_count += count
        size += len(body)
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    connection.connect()
    headers = {
        "x-api-key": key,
        "Content-Type": "application/x-protobuf",
        "Content-Encoding": "gzip",
    }
    seconds: list[float] = []
    together.wait()
    began = time.monotonic()
    for body in bodies:
        sent = time.monotonic()
        while True:
            connection.request("POST", "/v1/traces", body, headers)
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 503:
                break
            time.sleep(int(answer.headers["Retry-After"]))  # as exporters do
        seconds.append(time.monotonic() - sent)
        if answer.status != 200 or b"refused" in content:
            results.put(f"{answer.status}: {content!r}")
            return
    results.put((began, time.monotonic(), call_count, seconds, size))


def measure(site: Site, calls: int, clients: int, shape: tuple[int, int], seed: int) -> list[Any]:
    """One line of the table; its first item is the number of calls as an int."""
    context = multiprocessing.get_context("spawn")
    results, together = context.Queue(), context.Barrier(clients)
    target = site.facts["url"], site.facts["api_key"], calls // clients, shape
    processes = [
        context.Process(target=client, args=(*target, seed + n, together, results))
        for n in range(clients)
    ]
    for process in processes:
        process.start()
    # The clients first generate their bodies, which costs the server nothing.
    before = site.cpu_seconds()
    reports = [results.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
    if refused := [report for report in reports if isinstance(report, str)]:
        raise SystemExit(refused[0][:1000])
    count = sum(report[2] for report in reports)
    cpu = [(now - then) / count for now, then in zip(site.cpu_seconds(), before, strict=True)]
    elapsed = max(report[1] for report in reports) - min(report[0] for report in reports)
    answers_ms = [each * 1000 for report in reports for each in report[3]]
    cuts = statistics.quantiles(answers_ms, n=100, method="inclusive")
    return [
        count,
        f"{shape[0]}",
        f"{shape[1]}",
        f"{count:,}",
        f"{sum(report[4] for report in reports) / count:,.0f}",
        f"{count / elapsed:,.0f}",
        f"{cuts[49]:.0f}",
        f"{cuts[98]:.0f}",
        *(f"{each * 1e6:.0f}" for each in cpu),
    ]


def print_parts(shape: tuple[int, int]) -> None:
    """Print the CPU time of each part in this process: µs per call, the best of five runs."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    import django

    django.setup()
    from audit.events.body import Line, inflate
    from audit.events.candidates import read_lines
    from audit.intake.otlp.accounts import to_events
    from audit.intake.otlp.mapping import map_spans
    from audit.intake.otlp.protobuf import read_protobuf

    body, calls = make_body(random.Random(0), *shape)
    sent = gzip.compress(body, compresslevel=1)
    best: dict[str, float] = {}
    for _ in range(5):
        marks = [time.process_time()]
        inflate(sent, "gzip")
        marks.append(time.process_time())
        received = read_protobuf(body)
        marks.append(time.process_time())
        mapped = map_spans(received.spans)
        marks.append(time.process_time())
        raws = [raw for call in mapped.calls for raw in to_events(call)]
        marks.append(time.process_time())
        read_lines([Line(n, raw) for n, raw in enumerate(raws, 1)], UUID(int=7), datetime.now(UTC))
        marks.append(time.process_time())
        for at, part in enumerate(("inflate", "read", "map", "to events", "decode events")):
            cost_us = (marks[at + 1] - marks[at]) / calls * 1e6
            best[part] = min(cost_us, best.get(part, cost_us))
    figures = ", ".join(f"{part} {cost_us:.0f}" for part, cost_us in best.items())
    print(f"parts, µs a call at {shape[0]} spans, {shape[1]} others: {figures}")


def print_log_parts(records: int) -> None:
    """Print the same for log records. Call after `print_parts`, which sets Django up."""
    from audit.intake.otlp.accounts import to_events
    from audit.intake.otlp.logs import map_logs
    from audit.intake.otlp.protobuf import read_protobuf_logs

    body = make_logs_body(random.Random(0), records)
    best: dict[str, float] = {}
    for _ in range(5):
        marks = [time.process_time()]
        received = read_protobuf_logs(body)
        marks.append(time.process_time())
        _, mapped = map_logs(received)
        marks.append(time.process_time())
        assert len([to_events(call) for call in mapped.calls]) == records
        marks.append(time.process_time())
        for at, part in enumerate(("read", "map", "to events")):
            cost_us = (marks[at + 1] - marks[at]) / records * 1e6
            best[part] = min(cost_us, best.get(part, cost_us))
    figures = ", ".join(f"{part} {cost_us:.0f}" for part, cost_us in best.items())
    print(f"parts, µs a call at {records} log records: {figures}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--calls", type=int, default=20_000, help="calls per table row")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--spans", type=int, nargs="+", default=[512, 50], help="spans per request")
    parser.add_argument("--others", type=int, nargs="+", default=[0, 1], help="others per call")
    options = parser.parse_args()
    heads = ["spans", "others", "calls", "bytes/call", "calls/s", "p50 ms", "p99 ms"]
    heads += ["web µs/call", "pg µs/call"]
    with own_site() as site:
        facts = site.facts
        measure(site, 2_000, options.clients, (512, 0), seed=0)  # warm
        known, sent = counted(facts), 0
        print("  ".join(f"{head:>11}" for head in heads))
        shapes = [(spans, others) for others in options.others for spans in options.spans]
        for seed, shape in enumerate(shapes, 1):
            count, *row = measure(site, options.calls, options.clients, shape, seed * 1000)
            print("  ".join(f"{cell:>11}" for cell in row), flush=True)
            sent += count
        if counted(facts) != known + sent:
            raise SystemExit(f"{sent} calls were sent, {counted(facts) - known} are counted")
        print(f"{options.clients} clients; all {sent:,} calls are counted")
    for shape in shapes:
        print_parts(shape)
    print_log_parts(512)


if __name__ == "__main__":
    main()
