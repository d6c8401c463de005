"""Answers to senders of OTLP, in the encoding of the request.

The signal's response message for a stored request, a google.rpc.Status for any other
(OTLP specification, OTLP/HTTP Response).
"""

import json
from collections import Counter

from google.protobuf import json_format
from google.rpc import code_pb2, status_pb2

from audit.intake.otlp.recording import Recorded
from audit.intake.otlp.signals import JSON, MediaType, Signal
from audit.queries.skipped_spans import Reason

GRPC_CODES = {
    400: code_pb2.INVALID_ARGUMENT,
    401: code_pb2.UNAUTHENTICATED,
    403: code_pb2.PERMISSION_DENIED,
    405: code_pb2.UNIMPLEMENTED,
    413: code_pb2.INVALID_ARGUMENT,
    415: code_pb2.INVALID_ARGUMENT,
    429: code_pb2.RESOURCE_EXHAUSTED,
    500: code_pb2.INTERNAL,
    503: code_pb2.UNAVAILABLE,
}
_REASONS_SHOWN = 3
_NAME_SHOWN = 80  # characters


def success(signal: Signal, recorded: Recorded, media_type: MediaType) -> bytes:
    """The answer to a stored request, with a message about items that were not stored."""
    response = signal.response()
    if message := _message(signal, recorded):
        setattr(response.partial_success, signal.rejected, recorded.refused_count)
        response.partial_success.error_message = message
    if media_type == JSON:
        fields = {"always_print_fields_with_no_presence": bool(message)}
        return bytes(json_format.MessageToJson(response, indent=None, **fields).encode())
    return bytes(response.SerializeToString())


def failure(status: int, message: str, media_type: MediaType) -> bytes:
    """The google.rpc.Status for a request that is rejected with this HTTP status."""
    code = GRPC_CODES[status]
    if media_type == JSON:
        return json.dumps({"code": code, "message": message}).encode()
    return bytes(status_pb2.Status(code=code, message=message).SerializeToString())


def _message(signal: Signal, recorded: Recorded) -> str:
    """The message for people. Empty if every item is a tool call and stored."""
    sentences = []
    if recorded.refused:
        reasons = [f"{count} {reason}" for reason, count in recorded.refused.items()]
        more = len(reasons) - _REASONS_SHOWN
        sentences.append(
            f"{recorded.refused_count} {signal.items} rejected: "
            + "; ".join(reasons[:_REASONS_SHOWN])
            + (f"; and {more} more reasons." if more > 0 else ".")
        )
    names: Counter[str] = Counter()
    for kind, count in recorded.skipped.items():
        if kind.reason == Reason.UNMARKED:
            names[f"{kind.name[:_NAME_SHOWN]!r} of {kind.scope[:_NAME_SHOWN]!r}"] += count
    unmarked = names.total()
    if unmarked:
        named = [name for name, _ in names.most_common(_REASONS_SHOWN)]
        sentences.append(
            f"{unmarked} {signal.items} name a tool but have no mark of a tool call, and were"
            f" skipped: {', '.join(named)}{', …' if len(names) > len(named) else ''}."
        )
    if intended := recorded.skipped.total() - unmarked:
        sentences.append(
            f"{intended} {signal.items} are not tool calls and were skipped, as intended."
        )
    return " ".join(sentences)
