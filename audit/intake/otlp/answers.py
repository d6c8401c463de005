"""Answers to senders of OTLP, in the encoding of the request.

An ExportTraceServiceResponse for a stored request, a google.rpc.Status for any other
(OTLP specification, OTLP/HTTP Response).
"""

import json
from typing import Final, Literal

from google.rpc import code_pb2, status_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from audit.intake.otlp.recording import Recorded

type MediaType = Literal["application/x-protobuf", "application/json"]

PROTOBUF: Final = "application/x-protobuf"
JSON: Final = "application/json"

_CODES = {
    400: code_pb2.INVALID_ARGUMENT,
    401: code_pb2.UNAUTHENTICATED,
    403: code_pb2.PERMISSION_DENIED,
    405: code_pb2.UNIMPLEMENTED,
    413: code_pb2.INVALID_ARGUMENT,
    415: code_pb2.INVALID_ARGUMENT,
    429: code_pb2.RESOURCE_EXHAUSTED,
    503: code_pb2.UNAVAILABLE,
}
_REASONS_SHOWN = 3
_NAME_SHOWN = 80  # characters


def success(recorded: Recorded, media_type: MediaType) -> bytes:
    """The answer to a stored request, with a message about spans that were not stored."""
    message = _message(recorded)
    if media_type == JSON:
        partial = {"rejectedSpans": str(recorded.refused_count), "errorMessage": message}
        return json.dumps({"partialSuccess": partial} if message else {}).encode()
    response = trace_service_pb2.ExportTraceServiceResponse()
    if message:
        response.partial_success.rejected_spans = recorded.refused_count
        response.partial_success.error_message = message
    return bytes(response.SerializeToString())


def failure(status: int, message: str, media_type: MediaType) -> bytes:
    """The google.rpc.Status for a request that is rejected with this HTTP status."""
    code = _CODES[status]
    if media_type == JSON:
        return json.dumps({"code": code, "message": message}).encode()
    return bytes(status_pb2.Status(code=code, message=message).SerializeToString())


def _message(recorded: Recorded) -> str:
    """The message for people. Empty if every span is a tool call and stored."""
    sentences = []
    if recorded.refused:
        reasons = [f"{count} {reason}" for reason, count in recorded.refused.items()]
        more = len(reasons) - _REASONS_SHOWN
        sentences.append(
            f"{recorded.refused_count} spans rejected: {'; '.join(reasons[:_REASONS_SHOWN])}"
            + (f"; and {more} more reasons." if more > 0 else ".")
        )
    if unmarked := recorded.unmarked.total():
        named = [
            f"{name[:_NAME_SHOWN]!r} of {scope[:_NAME_SHOWN]!r}"
            for (scope, name), _ in recorded.unmarked.most_common(_REASONS_SHOWN)
        ]
        sentences.append(
            f"{unmarked} spans name a tool but have no mark of a tool call, and were skipped:"
            f" {', '.join(named)}{', …' if len(recorded.unmarked) > len(named) else ''}."
        )
    if intended := recorded.others - unmarked:
        sentences.append(f"{intended} spans are not tool calls and were skipped, as intended.")
    return " ".join(sentences)
