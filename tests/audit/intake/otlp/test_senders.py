"""OpenTelemetry's own exporters, with a running server: one endpoint serves all three signals."""

import time
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as over_grpc
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter

from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp_requests import calls
from tests.support.server import LiveServer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_exporter_is_left")]

OF_TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "of_a_span"}


@pytest.mark.parametrize("compression", list(Compression))
def test_one_endpoint_serves_all_signals(
    live_server: LiveServer, acme: Cast, compression: Compression, caplog: pytest.LogCaptureFixture
) -> None:
    url, headers = live_server.url, {"x-api-key": make_ingest_key(acme.tenant)}
    spans, records = TracerProvider(), LoggerProvider()
    spans.add_span_processor(
        SimpleSpanProcessor(
            OTLPSpanExporter(f"{url}/v1/traces", headers=headers, compression=compression)
        )
    )
    records.add_log_record_processor(
        SimpleLogRecordProcessor(
            OTLPLogExporter(f"{url}/v1/logs", headers=headers, compression=compression)
        )
    )
    metrics = MeterProvider(
        [
            PeriodicExportingMetricReader(
                OTLPMetricExporter(f"{url}/v1/metrics", headers=headers, compression=compression),
                export_interval_millis=3_600_000,
            )
        ]
    )
    logger = records.get_logger("agent.events")
    metrics.get_meter("agent").create_counter("calls").add(1)
    with spans.get_tracer("agent").start_as_current_span("execute_tool", attributes=OF_TOOL):
        logger.emit(  # of the same call, so one call
            timestamp=time.time_ns(),
            body="codex.tool_result",
            attributes={"tool_name": "of_a_span", "success": "true", "output": "sunny"},
        )
    logger.emit(
        timestamp=time.time_ns(),
        event_name="claude_code.tool_result",
        attributes={"tool_name": "of_a_log", "session.id": "s", "tool_use_id": "t"},
    )
    assert metrics.force_flush()
    metrics.shutdown()
    spans.shutdown()
    records.shutdown()

    stored = {call.row.tool_name: call for call in calls(acme.tenant)}
    assert stored.keys() == {"of_a_span", "of_a_log"}
    assert stored["of_a_span"].output == "sunny"
    assert [each.message for each in caplog.records if "opentelemetry" in each.name] == []


def test_grpc_sender_at_the_port_for_http_reads_what_the_page_says(
    live_server: LiveServer, acme: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    address = urlsplit(live_server.url).netloc
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as caught:
        method: Any = channel.unary_unary("/any/Method")
        method(b"", timeout=20)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "Socket closed" in str(caught.value.details())

    send_one_span(over_grpc.OTLPSpanExporter(address, insecure=True, timeout=1))
    assert "Failed to export traces" in caplog.text
    assert "Socket closed" in caplog.text
    assert calls(acme.tenant) == []

    headers = {"x-api-key": make_ingest_key(acme.tenant)}
    send_one_span(OTLPSpanExporter(f"{live_server.url}/v1/traces", headers=headers))
    assert [call.row.tool_name for call in calls(acme.tenant)] == ["of_a_span"]


def send_one_span(exporter: SpanExporter) -> None:
    spans = TracerProvider()
    spans.add_span_processor(SimpleSpanProcessor(exporter))
    with spans.get_tracer("agent").start_as_current_span("execute_tool", attributes=OF_TOOL):
        pass
    spans.shutdown()
