"""A host with this SDK and OpenTelemetry's, both sending to a running server."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from tooltrail import Trail
from tooltrail.guard import ValidationError
from tooltrail.testing import MemoryTrail

from audit.index.reindex import reindex
from audit.queries.calls import trace_detail
from tenants.scope import tenant_scope
from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp_requests import calls
from tests.support.recount import assert_consistent
from tests.support.server import LiveServer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_exporter_is_left")]

SCHEMA = {"type": "object", "properties": {"celsius": {"type": "number"}}}


class Host:
    """An agent with three tools. `send_spans` sends its spans.

    `send_events` sends its events, unless the trail sends them by itself.
    """

    def __init__(self, url: str, key: str, trail: Trail) -> None:
        self._url, self._key = url, key
        self.trail = trail
        self.provider = TracerProvider()
        self._processor = BatchSpanProcessor(
            OTLPSpanExporter(endpoint=f"{url}/v1/traces", headers={"x-api-key": key}),
            schedule_delay_millis=3_600_000,
        )
        self.provider.add_span_processor(self._processor)
        self.tracer = self.provider.get_tracer("an-instrumentation")

    def run(self) -> str:
        """Run the agent once; return the trace id."""

        @self.trail.tool(output_schema=SCHEMA)
        def get_weather(city: str) -> dict[str, Any]:
            return {"celsius": 22.5 if city == "London" else "warm"}

        @self.trail.tool
        def look_up(name: str) -> str:
            return name

        @self.trail.tool
        def plan() -> str:
            return look_up("x")

        def instrumented(tool: Callable[..., Any], **arguments: Any) -> None:
            """Call a tool as an instrumentation does, which does not know the guard's result."""
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool.__name__,
                "gen_ai.tool.call.arguments": json.dumps(arguments),
            }
            name = f"execute_tool {tool.__name__}"
            with (
                self.tracer.start_as_current_span(name, attributes=attributes),
                suppress(ValidationError),  # which the framework shows to the model
            ):
                tool(**arguments)

        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "planner"}
        with self.tracer.start_as_current_span("invoke_agent", attributes=attributes) as span:
            instrumented(get_weather, city="London")
            instrumented(get_weather, city="Paris")
            instrumented(plan)
            look_up("only the SDK's")
        return f"{span.get_span_context().trace_id:032x}"

    def send_events(self) -> None:
        if not isinstance(self.trail, MemoryTrail):
            assert self.trail.flush(30)
            return
        request = urllib.request.Request(
            f"{self._url}/api/v1/events",
            "\n".join(json.dumps(event) for event in self.trail.events).encode(),
            {"Authorization": f"Bearer {self._key}", "Content-Type": "application/x-ndjson"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert json.load(answer)["rejected"] == []

    def send_spans(self) -> None:
        assert self._processor.force_flush(30_000)

    def close(self) -> None:
        self.trail.close()
        self.provider.shutdown()


type MakeHost = Callable[[Trail | None], Host]


@pytest.fixture
def make_host(acme: Cast, live_server: LiveServer, tmp_path: Path) -> Iterator[MakeHost]:
    hosts: list[Host] = []

    def make(trail: Trail | None) -> Host:
        key = make_ingest_key(acme.tenant)
        hosts.append(
            Host(live_server.url, key, trail or Trail(live_server.url, key, spool_dir=tmp_path))
        )
        return hosts[-1]

    yield make
    for host in hosts:
        host.close()


@pytest.mark.parametrize("order", ["events spans", "spans events", "spans events spans events"])
def test_each_call_is_shown_once_in_one_trace(acme: Cast, make_host: MakeHost, order: str) -> None:
    host = make_host(MemoryTrail(clock=None, ids=None))
    trace_id = host.run()
    for each in order.split():
        host.send_events() if each == "events" else host.send_spans()

    assert len(calls(acme.tenant)) == 5
    check(acme, trace_id)


def test_calls_are_shown_once_with_the_default_exporters(acme: Cast, make_host: MakeHost) -> None:
    host = make_host(None)
    trace_ids = [host.run() for _ in range(3)]
    host.send_spans()
    host.send_events()

    assert len(calls(acme.tenant)) == 15
    for trace_id in trace_ids:
        check(acme, trace_id)


def check(acme: Cast, trace_id: str) -> None:
    in_trace = [call for call in calls(acme.tenant) if call.row.trace_id == trace_id]
    assert [
        (call.row.tool_name, call.row.state, call.row.violation_count) for call in in_trace
    ] == [
        ("get_weather", "ok", 0),
        ("get_weather", "failed", 1),
        ("look_up", "ok", 0),
        ("look_up", "ok", 0),
        ("plan", "ok", 0),
    ]
    assert sum(call.row.tool_version is not None for call in in_trace) == 5, (
        "the SDK sends versions"
    )
    with tenant_scope(acme.tenant.id):
        detail = trace_detail(trace_id)
    assert detail is not None
    named: dict[UUID | None, str] = {call.invocation_id: call.tool_name for call in detail.calls}
    parents = [named.get(call.parent_invocation_id) for call in detail.calls]
    assert parents == [None, None, None, "plan", None]
    assert_consistent(acme.tenant)
    report = reindex(acme.tenant.id, repair=False, progress=lambda done, size: None)
    assert report.is_clean, report.comparison.examples
