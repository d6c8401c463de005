"""OTLP over gRPC: OpenTelemetry's own exporters, limits, and the answer to every error."""

import gzip
import logging
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import grpc
import pytest
from django.db import OperationalError
from django.test import override_settings
from django.utils import timezone
from google.rpc import error_details_pb2, status_pb2
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from audit.events.limits import MAX_COMPRESSED_BYTES, MAX_INFLATED_BYTES
from audit.intake.admission import ADMISSION, PLACES
from audit.intake.otlp import exports, rpc
from audit.intake.otlp.rpc import encoding_of
from config.http.quota import Quota
from config.http.request_ids import RequestIdFilter
from tenants.keys import create_key
from tenants.models import Scope
from tests.support.factories import Cast, make_ingest_key
from tests.support.grpc_server import running_grpc_server
from tests.support.otlp_requests import calls, fixture

pytestmark = pytest.mark.usefixtures("no_exporter_is_left")

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
GENAI = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "of_a_span"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with running_grpc_server() as address:
        yield address


@pytest.fixture
def key(acme: Cast) -> str:
    return make_ingest_key(acme.tenant)


def send(
    address: str,
    key: str,
    body: bytes,
    *,
    method: str = EXPORT,
    compression: grpc.Compression | None = None,
) -> bytes:
    """Send a request's bytes as they are. Raises grpc.RpcError."""
    with grpc.insecure_channel(address, compression=compression) as channel:
        export: Any = channel.unary_unary(method)
        answer: bytes = export(body, metadata=(("authorization", f"Bearer {key}"),), timeout=30)
        return answer


def refusal(address: str, key: str, body: bytes, **options: Any) -> Any:
    with pytest.raises(grpc.RpcError) as caught:
        send(address, key, body, **options)
    return caught.value


def retry_delay_s(error: Any) -> int:
    """The delay of RetryInfo, which is in the status and where Python's exporter looks for it."""
    trailing = dict(error.trailing_metadata())
    alone = error_details_pb2.RetryInfo.FromString(trailing["google.rpc.retryinfo-bin"])
    status = status_pb2.Status.FromString(trailing["grpc-status-details-bin"])
    packed = error_details_pb2.RetryInfo()
    assert status.details[0].Unpack(packed)
    assert (packed, status.message) == (alone, error.details())
    return int(packed.retry_delay.seconds)


@pytest.mark.slow
@pytest.mark.parametrize("compression", list(grpc.Compression))
def test_exporters_send_all_signals(
    address: str,
    acme: Cast,
    key: str,
    compression: grpc.Compression,
    caplog: pytest.LogCaptureFixture,
) -> None:
    options: dict[str, Any] = {
        "endpoint": f"http://{address}",
        "headers": {"authorization": f"Bearer {key}"},
        "compression": compression,
    }
    spans, records = TracerProvider(), LoggerProvider()
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(**options)))
    records.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(**options)))
    metrics = MeterProvider(
        [
            PeriodicExportingMetricReader(
                OTLPMetricExporter(**options), export_interval_millis=3_600_000
            )
        ]
    )
    metrics.get_meter("agent").create_counter("calls").add(1)
    with spans.get_tracer("agent").start_as_current_span("execute_tool", attributes=GENAI):
        pass
    records.get_logger("agent.events").emit(
        timestamp=time.time_ns(),
        event_name="claude_code.tool_result",
        attributes={"tool_name": "of_a_log", "session.id": "s", "tool_use_id": "t"},
    )
    for provider in (spans, records, metrics):
        assert provider.force_flush()
        provider.shutdown()

    assert [call.row.tool_name for call in calls(acme.tenant)] == ["of_a_log", "of_a_span"]
    assert caplog.messages == []


@pytest.mark.slow
def test_partial_success_says_what_was_skipped(address: str, acme: Cast, key: str) -> None:
    answer = send(address, key, fixture("plain-otel.pb", timezone.now()))
    partial = trace_service_pb2.ExportTraceServiceResponse.FromString(answer).partial_success

    assert partial.rejected_spans == 0
    assert partial.error_message == "2 spans are not tool calls and were skipped, as intended."
    assert len(calls(acme.tenant)) == 3


@override_settings(LOG_REQUESTS=True)
@pytest.mark.parametrize(("given", "is_kept"), [("span-batch/7", True), ("a b", False)])
def test_requests_have_an_id(
    address: str, acme: Cast, key: str, given: str, is_kept: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tooltrail.request")
    answers = []
    with caplog.filtering(RequestIdFilter()), grpc.insecure_channel(address) as channel:
        export: Any = channel.unary_unary(EXPORT)
        for sent in (key, "tt_nonsense"):
            metadata = (("x-api-key", sent), ("x-request-id", given))
            call = export.future(b"", metadata=metadata, timeout=30)
            answers.append(dict(call.trailing_metadata())["x-request-id"])

    assert [one == given for one in answers] == [is_kept, is_kept]
    lines = [
        (one.getMessage(), one.__dict__["request_id"])
        for one in caplog.records
        if one.name == "tooltrail.request"
    ]
    assert lines == [(f"POST {EXPORT} 200", answers[0]), (f"POST {EXPORT} 401", answers[1])]


def test_refusal_has_no_initial_metadata(address: str) -> None:
    """With it, the status comes in a second block of headers, where some exporters do not look."""
    error = refusal(address, "tt_nonsense", b"")
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    assert error.initial_metadata() == ()
    assert "x-request-id" in dict(error.trailing_metadata())


@pytest.mark.slow
@pytest.mark.parametrize("key", ["", "tt_nonsense"])
def test_request_without_a_valid_key_is_refused(address: str, key: str) -> None:
    error = refusal(address, key, b"")

    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    assert error.details()


@pytest.mark.slow
def test_key_without_the_scope_is_refused(address: str, acme: Cast) -> None:
    error = refusal(address, create_key(acme.tenant, "reader", [Scope.READ])[1], b"")

    assert error.code() is grpc.StatusCode.PERMISSION_DENIED
    assert error.details() == "This API key lacks the scope ingest."


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"\x0a\x05abc", b"\x1f\x8bnothing", b"\x78\x9cnothing", b"no"])
def test_unreadable_request_is_refused(address: str, key: str, body: bytes) -> None:
    assert refusal(address, key, body).code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.slow
def test_message_that_is_too_large_is_refused(address: str, key: str) -> None:
    error = refusal(address, key, bytes(MAX_COMPRESSED_BYTES + 1))

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "google.rpc.retryinfo-bin" not in dict(error.trailing_metadata())


@pytest.mark.slow
@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_message_inflates_only_up_to_the_limit(
    address: str, key: str, compression: grpc.Compression
) -> None:
    error = refusal(address, key, bytes(MAX_INFLATED_BYTES + 1), compression=compression)

    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "inflates beyond" in error.details()


@pytest.mark.slow
def test_unknown_method_is_unimplemented(address: str, key: str) -> None:
    error = refusal(address, key, b"", method=EXPORT.replace("Export", "Import"))

    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.slow
def test_exceeded_quota_is_worth_a_retry(address: str, key: str) -> None:
    quota = Quota[object](0.5)
    body = fixture("plain-otel.pb", timezone.now())
    with patch.object(exports, "quota", lambda: quota):
        send(address, key, body)
        error = refusal(address, key, body)

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert retry_delay_s(error) >= 2


@pytest.mark.slow
def test_request_without_a_place_is_worth_a_retry(address: str, key: str) -> None:
    with ExitStack() as taken:
        for _ in range(PLACES):
            taken.enter_context(ADMISSION.place(0))
        error = refusal(address, key, b"")

    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert retry_delay_s(error) == 1
    assert send(address, key, b"") == b""


@pytest.mark.slow
def test_outage_of_the_database_is_worth_a_retry(address: str, key: str) -> None:
    body = fixture("plain-otel.pb", timezone.now())
    with patch.object(exports, "record_spans", side_effect=OperationalError("gone")):
        error = refusal(address, key, body)

    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert retry_delay_s(error) == 1


@pytest.mark.slow
def test_fault_of_the_server_quotes_nothing(
    address: str, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    with patch.object(exports, "record_spans", side_effect=ValueError("secret")):
        error = refusal(address, key, fixture("plain-otel.pb", timezone.now()))

    assert error.code() is grpc.StatusCode.INTERNAL
    assert error.details() == "Internal error."
    assert "a request over gRPC failed" in caplog.text


@pytest.mark.slow
def test_sender_that_is_too_slow_is_cut_off(address: str, key: str) -> None:
    may_end = threading.Event()

    def nothing() -> Iterator[bytes]:
        may_end.wait(30)
        yield from ()

    with patch.object(rpc, "GRACE_S", 0.1), grpc.insecure_channel(address) as channel:
        call: Any = channel.stream_unary(EXPORT)
        with pytest.raises(grpc.RpcError) as caught:
            call(nothing(), metadata=(("x-api-key", key),), timeout=30)
        may_end.set()

    assert caught.value.code() is grpc.StatusCode.CANCELLED
    assert send(address, key, b"") == b""


@pytest.mark.slow
def test_request_without_a_message_is_refused(address: str, key: str) -> None:
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as caught:
        export: Any = channel.stream_unary(EXPORT)
        export(iter(()), metadata=(("x-api-key", key),), timeout=30)

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.slow
def test_compression_is_recognized_by_its_format() -> None:
    body = fixture("plain-otel.pb", timezone.now())
    assert encoding_of(body) == encoding_of(b"") == encoding_of(b"\x78") == "identity"
    assert encoding_of(gzip.compress(body)) == "gzip"
    for level in range(10):
        assert encoding_of(zlib.compress(body, level)) == "deflate"
