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
    400: "The body is no ExportTraceServiceRequest.",
    401: "No API key was sent, or nobody knows it.",
    403: "The API key does not open this.",
    405: "The request is no POST.",
    413: "The body is too large or too deep.",
    415: "The media type or the encoding is not taken.",
    429: "This API key has sent its share. Send the same again after `Retry-After`.",
    503: "Overloaded, or the database is away. Send the same again after `Retry-After`.",
}
OPERATION: dict[str, Any] = {
    "operationId": "receive_traces",
    "summary": "Receive spans",
    "description": "Take in the tool calls of an ExportTraceServiceRequest (OTLP/HTTP): 200 once"
    " they are stored. Answers are an ExportTraceServiceResponse or a google.rpc.Status."
    " JSON is taken, too, and answered with JSON. `Content-Encoding` is gzip, zstd or none."
    " The key may come as `x-api-key`.",
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
