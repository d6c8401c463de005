"""The API of `audit`: events in, figures out.

Reads HTTP and words answers; what happens to the events is `audit.ingest`'s. The body of
`POST /events` is read here as a stream, never by ninja.
"""

import json
import math
import re
from datetime import timedelta
from typing import Any, cast

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from ninja import Router

from audit import metrics
from audit.admission import ADMISSION, RETRY_AFTER_S, OverloadedError
from audit.batch_ids import choose_batch_id
from audit.body import (
    ENCODINGS,
    UnreadableBodyError,
    body_stream,
    inflate,
    read_sent,
    split_lines,
)
from audit.ingest import BatchIdReusedError, record_batch
from audit.limits import LimitExceededError
from audit.queries.summary import summary
from audit.quota import QuotaExceededError, quota
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.models import Scope
from tenants.scope import tenant_scope

MEDIA_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl")
MAX_RANGE = timedelta(days=400)

_RANGE = re.compile(r"(\d{1,6})([mhd])", re.ASCII)
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}

_TEXT = {"type": "string"}
_INSTANT = {"type": "string", "format": "date-time"}
_EVENT = {
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": {"enum": ["toolExecutionStart", "toolExecutionEnd", "gap"]},
        "event_id": {"type": "string", "format": "uuid"},
        "invocation_id": {"type": "string", "format": "uuid"},
        "trace_id": {"type": "string", "maxLength": 128},
        "tool_name": _TEXT,
        "tool_version": _TEXT,
        "call_id": _TEXT,
        "started_at": _INSTANT,
        "args": {},
        "ended_at": _INSTANT,
        "duration_ms": {"type": "number", "minimum": 0},
        "is_error": {"type": "boolean"},
        "output": {},
        "guard": {"type": "object"},
        "producer_id": _TEXT,
        "producer_seq": {"type": "integer", "minimum": 0},
    },
}
_EVENTS_REQUEST: dict[str, Any] = {
    "parameters": [
        {
            "in": "header",
            "name": "Idempotency-Key",
            "schema": {"type": "string", "format": "uuid"},
            "description": "A UUIDv7 that stays with the batch.",
        },
    ],
    "requestBody": {
        "required": True,
        "description": "An event a line; all their members are in docs/events.md.",
        "content": {MEDIA_TYPES[0]: {"schema": {"type": "array", "items": _EVENT}}},
    },
}
"""What the description at /api/v1/openapi.json says of a body that ninja never reads."""

router = Router()


@router.post(
    "/events", auth=ApiKeyAuth(Scope.INGEST), tags=["events"], openapi_extra=_EVENTS_REQUEST
)
def receive_events(request: HttpRequest) -> HttpResponse:
    """Take in tool call events: NDJSON, one event a line; 200 once they are stored.

    `Content-Encoding` is gzip, zstd or none, `Idempotency-Key` a UUIDv7 that stays with the
    batch however often it is sent. A line that is no event costs that line alone: it is named
    under `rejected` and kept in the inbox.
    """
    counted = metrics.Request()
    status = 503  # what is raised here says that the database is away
    try:
        answer = _receive(cast(ApiRequest, request), counted)
        status = answer.status_code
        return answer
    finally:
        counted.done(status)


@router.get("/summary", auth=ApiKeyAuth(Scope.READ), tags=["figures"])
def read_summary(request: HttpRequest, range: str = "24h") -> HttpResponse:
    """Sum up the calls that started in the last `range`: minutes, hours or days, as `24h`.

    `calls` counts completed ones, `open` those that have not ended; durations are milliseconds
    and null without a completed call.
    """
    span = _RANGE.fullmatch(range)
    if span is None or not timedelta(0) < (length := int(span[1]) * _UNITS[span[2]]) <= MAX_RANGE:
        return _problem(
            422, "range", f"range is minutes, hours or days up to {MAX_RANGE.days}d, such as 24h."
        )
    end = timezone.now()
    with tenant_scope(cast(ApiRequest, request).auth.tenant_id):
        figures = summary(end - length, end)
    return JsonResponse(
        {
            "from": figures.start.isoformat(),
            "to": figures.end.isoformat(),
            "calls": figures.calls,
            "open": figures.open,
            "errors": figures.errors,
            "violations": figures.violations,
            "violating_calls": figures.violating_calls,
            "prompt_tokens": figures.prompt_tokens,
            "completion_tokens": figures.completion_tokens,
            "duration_ms": {
                name: figures.duration_ms(share)
                for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
            },
        }
    )


def _receive(request: ApiRequest, counted: metrics.Request) -> HttpResponse:
    if request.content_type not in MEDIA_TYPES:
        return _problem(415, "media_type", f"Send {MEDIA_TYPES[0]}.", Accept=MEDIA_TYPES[0])
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower() or "identity"
    if encoding not in ENCODINGS:
        return _problem(
            415,
            "encoding",
            "Send the body as gzip, zstd or as it is.",
            **{"Accept-Encoding": ", ".join(ENCODINGS)},
        )
    stream, length = body_stream(request)
    if length is None and encoding == "identity":
        return _problem(411, "length_required", "Send Content-Length, or the body as gzip or zstd.")
    key = request.auth
    try:
        quota().check(key.key_id)
        sent = read_sent(stream, length)
        counted.lap("read")
        with ADMISSION.slot():
            counted.lap("wait")
            now = timezone.now()
            batch_id = choose_batch_id(request.headers.get("Idempotency-Key"), now)
            body = inflate(sent, encoding)
            counted.lap("inflate")
            lines = split_lines(body)
            quota().take(key.key_id, len(lines))
            answer = record_batch(key.tenant_id, body, lines, batch_id, now)
            counted.lap("store")
    except QuotaExceededError as error:
        return _come_again(429, "quota", "This API key has sent its share.", error.retry_after_s)
    except OverloadedError:
        return _come_again(503, "overloaded", "Too much comes at once.", RETRY_AFTER_S)
    except UnreadableBodyError as error:
        return _problem(400, "unreadable_body", str(error))
    except LimitExceededError as error:
        return _problem(413, error.code, error.message)
    except BatchIdReusedError:
        return _problem(
            422, "batch_id_reused", "This Idempotency-Key was sent before with another body."
        )
    counted.stored(len(sent), len(body), json.loads(answer))
    # Outside of what is stored: the answer to the same request, sent again, is about its time.
    if next_after_ms := ADMISSION.next_after_ms():
        answer = f'{answer[:-1]}, "next_after_ms": {next_after_ms}}}'
    return HttpResponse(answer, content_type="application/json")


def _come_again(status: int, code: str, message: str, seconds: float) -> JsonResponse:
    # The body was not read, so the connection cannot be used again: the sender should know.
    headers = {"Retry-After": str(max(1, math.ceil(seconds))), "Connection": "close"}
    return _problem(status, code, message, **headers)


def _problem(status: int, code: str, message: str, **headers: str) -> JsonResponse:
    return JsonResponse({"code": code, "message": message}, status=status, headers=headers)
