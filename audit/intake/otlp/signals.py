"""The signals of OTLP: their paths, their messages, and what becomes of a body."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from audit.events.spans import Received
from audit.intake.otlp.logs import map_logs
from audit.intake.otlp.mapping import Mapped, map_spans
from audit.intake.otlp.otlp_json import read_json, read_json_logs
from audit.intake.otlp.protobuf import read_protobuf, read_protobuf_logs

type MediaType = Literal["application/x-protobuf", "application/json"]

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Signal:
    """One of traces, logs and metrics."""

    name: str
    items: str
    """The word for what a request contains."""
    response: Any
    """The class of the answer's message."""
    rejected: str
    """The member of `partial_success` that counts rejected items."""
    readers: Mapping[MediaType, Callable[[bytes], Received]]
    """By media type. Empty if bodies are not read."""
    map: Callable[[Received], tuple[Received, Mapped]]

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths it is received at. Some senders end them with a slash."""
        return f"/v1/{self.name}", f"/v1/{self.name}/"


def _map_traces(received: Received) -> tuple[Received, Mapped]:
    return received, map_spans(received.spans)


TRACES = Signal(
    name="traces",
    items="spans",
    response=trace_service_pb2.ExportTraceServiceResponse,
    rejected="rejected_spans",
    readers={PROTOBUF: read_protobuf, JSON: read_json},
    map=_map_traces,
)
LOGS = Signal(
    name="logs",
    items="log records",
    response=logs_service_pb2.ExportLogsServiceResponse,
    rejected="rejected_log_records",
    readers={PROTOBUF: read_protobuf_logs, JSON: read_json_logs},
    map=map_logs,
)
METRICS = Signal(
    name="metrics",
    items="data points",
    response=metrics_service_pb2.ExportMetricsServiceResponse,
    rejected="rejected_data_points",
    readers={},
    map=_map_traces,
)
"""Metrics say nothing about single calls. They are accepted and not read, so that one endpoint
serves all signals."""

LANGFUSE_PATH: Final = "/api/public/otel/v1/traces"
"""Where the SDK of Langfuse sends its spans."""

SIGNALS: Final = {
    **{path: signal for signal in (TRACES, LOGS, METRICS) for path in signal.paths},
    LANGFUSE_PATH: TRACES,
}
"""Signals by path."""
