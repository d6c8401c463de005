"""The API operation that receives events. `audit.pages` has the operations that read.

This module reads HTTP and writes answers; `audit.intake.ingest` stores the events. The body of
`POST /events` is read here as a stream, never by ninja.
"""

import json
import math
from contextlib import ExitStack
from typing import Any, cast, get_args

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Router
from tooltrail.events import Decision

from audit.events.batch_ids import choose_batch_id
from audit.events.body import (
    ENCODINGS,
    UnreadableBodyError,
    announced,
    body_stream,
    inflate,
    read_sent,
    split_lines,
)
from audit.events.limits import LimitExceededError
from audit.intake import metrics
from audit.intake.admission import ADMISSION, RETRY_AFTER_S, OverloadedError
from audit.intake.group_commit import GROUP_COMMIT, is_small
from audit.intake.ingest import (
    BatchIdReusedError,
    answer_of,
    read_request,
    record_batches,
)
from audit.intake.quota import quota
from config.http.problems import problem, problem_responses
from config.http.quota import QuotaExceededError
from config.http.request_bodies import request_body
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.models import Scope

MEDIA_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl")

_TEXT = {"type": "string"}
_INSTANT = {"type": "string", "format": "date-time"}
_EVENT = {
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": {
            "enum": [
                *("toolExecutionStart", "toolExecutionEnd", "toolCallDecision"),
                *("toolDefinitions", "gap"),
            ]
        },
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
        "decided_at": _INSTANT,
        "decision": {"enum": list(get_args(Decision))},
        "by": {"type": "object"},
        "requested_by": _TEXT,
        "reason": _TEXT,
        "definition_digest": _TEXT,
        "violations": {"type": "array", "items": {"type": "object"}},
        "seen_at": _INSTANT,
        "server": {"type": "object"},
        "client": {"type": "object"},
        "tools": {"type": "array", "items": {"type": "object"}},
        "producer_id": _TEXT,
        "producer_seq": {"type": "integer", "minimum": 0},
    },
}
_ANSWER = {
    "type": "object",
    "required": ["batch_id", "accepted", "duplicates", "rejected", "ledger"],
    "properties": {
        "batch_id": {"type": "string", "format": "uuid"},
        "accepted": {"type": "integer"},
        "duplicates": {"type": "integer"},
        "rejected": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["line", "event_id", "code", "message"],
                "properties": {
                    "line": {"type": "integer"},
                    "event_id": {"type": ["string", "null"]},
                    "code": _TEXT,
                    "message": _TEXT,
                },
            },
        },
        "ledger": {
            "type": "object",
            "properties": {"first_index": {"type": "integer"}, "size": {"type": "integer"}},
        },
        "warnings": {"type": "array", "items": _TEXT},
        "next_after_ms": {"type": "integer"},
    },
}
_PROBLEMS = (
    *("unreadable_body", "missing_key", "unknown_key", "missing_scope", "method_not_allowed"),
    *("length_required", "too_large", "line_too_long", "too_many_lines", "too_deep", "ratio"),
    *("media_type", "encoding", "batch_id_reused", "quota", "overloaded", "unavailable"),
)
_EVENTS_REQUEST: dict[str, Any] = {
    "responses": {
        200: {"content": {"application/json": {"schema": _ANSWER}}},
        **problem_responses(_PROBLEMS)["responses"],
    },
    "parameters": [
        {
            "in": "header",
            "name": "Idempotency-Key",
            "schema": _TEXT,
            "description": "A UUIDv7. Use the same one when you retry a batch.",
        },
    ],
    **request_body(
        {
            MEDIA_TYPES[0]: {"type": "array", "items": _EVENT},
            # The same bytes: client generators do not support NDJSON (docs/api.md).
            MEDIA_TYPES[2]: {"type": "string", "format": "binary"},
        },
        "One event per line. docs/events.md describes all members.",
    ),
}

router = Router()


@router.post(
    "/events",
    auth=ApiKeyAuth(Scope.INGEST),
    operation_id="receive_events",
    summary="Receive events",
    tags=["events"],
    openapi_extra=_EVENTS_REQUEST,
)
def receive_events(request: HttpRequest) -> HttpResponse:
    """Receive tool call events as NDJSON, one event per line. Returns 200 once they are stored.

    `Content-Encoding` can be gzip, zstd, deflate or absent. `Idempotency-Key` is a UUIDv7 that
    stays the same when the batch is retried. Only invalid lines are rejected: they are listed in
    `rejected` and kept in the inbox.
    """
    counted = metrics.Request()
    status = 503  # an exception here means that the database is away
    try:
        answer = _receive(cast(ApiRequest, request), counted)
        status = answer.status_code
        key = cast(ApiRequest, request).auth
        for name, value in quota().headers((key.tenant_id, key.key_id)).items():
            answer[name] = value
        return answer
    finally:
        counted.done(status)


def _receive(request: ApiRequest, counted: metrics.Request) -> HttpResponse:
    if request.content_type not in MEDIA_TYPES:
        return problem("media_type", f"Send {MEDIA_TYPES[0]}.", headers={"Accept": MEDIA_TYPES[0]})
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower() or "identity"
    if encoding not in ENCODINGS:
        return problem(
            "encoding",
            "Send the body as gzip, zstd, deflate or uncompressed.",
            headers={"Accept-Encoding": ", ".join(ENCODINGS)},
        )
    stream, length = body_stream(request)
    if length is None and encoding == "identity":
        return problem(
            "length_required", "Send Content-Length, or compress the body (gzip, zstd, deflate)."
        )
    key = request.auth
    try:
        quota().check((key.tenant_id, key.key_id))
        with (
            ADMISSION.share(key.tenant_id, announced(length)),
            ExitStack() as slot,
        ):
            sent = read_sent(stream, length)
            counted.lap("read")
            slot.enter_context(ADMISSION.slot(key.tenant_id))
            counted.lap("wait")
            now = timezone.now()
            batch_id = choose_batch_id(request.headers.get("Idempotency-Key"), now)
            body = inflate(sent, encoding)
            counted.lap("inflate")
            lines = split_lines(body)
            quota().take((key.tenant_id, key.key_id), len(lines))
            read = read_request(key.tenant_id, body, lines, batch_id, now)
            if is_small(len(lines), len(body)):
                slot.close()  # it waits in another line, where a group may take it along
                answer = GROUP_COMMIT.store(read)
            else:
                answer = answer_of(record_batches([read])[0])
            counted.lap("store")
    except QuotaExceededError as error:
        return _come_again("quota", "This API key exceeded its rate limit.", error.retry_after_s)
    except OverloadedError:
        return _come_again("overloaded", "Too many requests at once.", RETRY_AFTER_S)
    except UnreadableBodyError as error:
        return problem("unreadable_body", str(error))
    except LimitExceededError as error:
        return problem(error.code, error.message)
    except BatchIdReusedError:
        return problem("batch_id_reused", "This Idempotency-Key was used with another body.")
    counted.stored(len(sent), len(body), answer)
    # Not part of the stored answer: when the request is repeated, the value is a current one.
    if next_after_ms := ADMISSION.next_after_ms():
        answer |= {"next_after_ms": next_after_ms}
    return HttpResponse(json.dumps(answer), content_type="application/json")


def _come_again(code: str, detail: str, seconds: float) -> HttpResponse:
    # The body was not read, so the connection cannot be used again. Tell the sender.
    headers = {"Retry-After": str(max(1, math.ceil(seconds))), "Connection": "close"}
    return problem(code, detail, headers=headers)
