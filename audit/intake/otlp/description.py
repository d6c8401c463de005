"""The OTLP operations in /api/v1/openapi.json. Ninja does not serve these routes.

Paths with a slash at their end, and the path of Langfuse, are for senders and not described.
"""

from typing import Any

from audit.intake.otlp.signals import JSON, LOGS, METRICS, PROTOBUF, TRACES, Signal

_TEXT = {"type": "string"}
# JSON is left out: clients generated for both types fail at import.
_PROTOBUF = {PROTOBUF: {"schema": {"type": "string", "format": "binary"}}}
# If the request's type is not supported, the error is sent as JSON.
_STATUS = {"type": "object", "properties": {"code": {"type": "integer"}, "message": _TEXT}}
_REFUSAL = _PROTOBUF | {JSON: {"schema": _STATUS}}
_REFUSALS = {
    400: "The body is not the signal's export request.",
    401: "The API key is missing or unknown.",
    403: "The API key lacks the scope.",
    405: "The method is not POST.",
    413: "The body is too large or nested too deeply.",
    415: "The media type or the encoding is not supported.",
    429: "This API key exceeded its rate limit. Retry after `Retry-After`.",
    503: "Overloaded, or the database is unavailable. Retry after `Retry-After`.",
}
_TAKES = {
    TRACES.name: "Receive the tool calls of an ExportTraceServiceRequest (OTLP/HTTP).",
    LOGS.name: "Receive the tool calls and decisions of an ExportLogsServiceRequest (OTLP/HTTP).",
    METRICS.name: "Accept an ExportMetricsServiceRequest (OTLP/HTTP), and store nothing of it.",
}


def _operation(signal: Signal) -> dict[str, Any]:
    response = signal.response.DESCRIPTOR.name
    return {
        "operationId": f"receive_{signal.name}",
        "summary": f"Receive {signal.items}",
        "description": f"{_TAKES[signal.name]} Returns 200 once they are stored."
        f" Responses are an {response} or a google.rpc.Status. JSON requests get JSON responses."
        " `Content-Encoding` can be gzip, zstd, deflate or absent."
        " The key can also be sent as `x-api-key`.",
        "tags": ["events"],
        "security": [{"ApiKeyAuth": []}],
        "parameters": [],
        "requestBody": {"required": True, "content": _PROTOBUF},
        "responses": {
            "200": {"description": "OK", "content": _PROTOBUF},
            **{
                str(status): {"description": text, "content": _REFUSAL}
                for status, text in _REFUSALS.items()
            },
        },
    }


PATHS = {signal.paths[0]: {"post": _operation(signal)} for signal in (TRACES, LOGS, METRICS)}
"""By path."""
