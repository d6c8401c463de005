"""OpenTelemetry's own exporters send all three signals to one endpoint of a running server."""

import gc
import time
from collections.abc import Iterator

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from tests.support.factories import Cast, make_ingest_key
from tests.support.otlp_requests import calls
from tests.support.server import LiveServer

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_exporter_is_left() -> Iterator[None]:
    """OpenTelemetry starts a thread in every forked child for each exporter that still exists.

    A child with threads cannot enter the namespace that PostgreSQL needs.
    """
    yield
    gc.collect()


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
    of_tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "of_a_span"}
    logger = records.get_logger("agent.events")
    metrics.get_meter("agent").create_counter("calls").add(1)
    with spans.get_tracer("agent").start_as_current_span("execute_tool", attributes=of_tool):
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
