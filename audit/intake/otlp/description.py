"""The description of `POST /v1/traces` for /api/v1/openapi.json. Ninja does not serve the route."""

from typing import Any

from audit.intake.otlp.answers import JSON, PROTOBUF

PATH = "/v1/traces"
_TEXT = {"type": "string"}
# JSON is left out: clients generated for both types fail at import.
_PROTOBUF = {PROTOBUF: {"schema": {"type": "string", "format": "binary"}}}
# If the request's type is not supported, the error is sent as JSON.
_STATUS = {"type": "object", "properties": {"code": {"type": "integer"}, "message": _TEXT}}
_REFUSAL = _PROTOBUF | {JSON: {"schema": _STATUS}}
_REFUSALS = {
    400: "The body is not an ExportTraceServiceRequest.",
    401: "The API key is missing or unknown.",
    403: "The API key lacks the scope.",
    405: "The method is not POST.",
    413: "The body is too large or nested too deeply.",
    415: "The media type or the encoding is not supported.",
    429: "This API key exceeded its rate limit. Retry after `Retry-After`.",
    503: "Overloaded, or the database is unavailable. Retry after `Retry-After`.",
}
OPERATION: dict[str, Any] = {
    "operationId": "receive_traces",
    "summary": "Receive spans",
    "description": "Receive the tool calls of an ExportTraceServiceRequest (OTLP/HTTP). Returns 200"
    " once they are stored. Responses are an ExportTraceServiceResponse or a google.rpc.Status."
    " JSON requests get JSON responses. `Content-Encoding` can be gzip, zstd or absent."
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
