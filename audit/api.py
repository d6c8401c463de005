"""The API of `audit`: events in, figures out.

Reads HTTP and words answers; what happens to the events is `audit.ingest`'s. The body of
`POST /events` is read here as a stream, never by ninja.
"""

import re
from datetime import timedelta
from typing import cast

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from ninja import Router

from audit.batch_ids import choose_batch_id
from audit.body import ENCODINGS, Stream, UnreadableBodyError, read_body, split_lines
from audit.ingest import BatchIdReusedError, record_batch
from audit.limits import MAX_COMPRESSED_BYTES, LimitExceededError
from audit.queries.summary import summary
from tenants.api_auth import ApiKeyAuth, ApiRequest
from tenants.models import Scope
from tenants.scope import tenant_scope

MEDIA_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl")
MAX_RANGE = timedelta(days=400)

_RANGE = re.compile(r"(\d{1,6})([mhd])", re.ASCII)
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}

router = Router()


@router.post("/events", auth=ApiKeyAuth(Scope.INGEST), tags=["events"])
def receive_events(request: HttpRequest) -> HttpResponse:
    """Take in tool call events: NDJSON, one event a line; 200 once they are stored.

    `Content-Encoding` is gzip, zstd or none, `Idempotency-Key` a UUIDv7 that stays with the
    batch however often it is sent. A line that is no event costs that line alone: it is named
    under `rejected` and kept in the inbox.
    """
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
    now = timezone.now()
    batch_id = choose_batch_id(request.headers.get("Idempotency-Key"), now)
    tenant_id = cast(ApiRequest, request).auth.tenant_id
    try:
        if int(request.headers.get("Content-Length") or 0) > MAX_COMPRESSED_BYTES:
            raise LimitExceededError(
                "too_large", f"the body is beyond {MAX_COMPRESSED_BYTES} bytes"
            )
        body = read_body(_stream(request), encoding)
        answer = record_batch(tenant_id, body, split_lines(body), batch_id, now)
    except UnreadableBodyError as error:
        return _problem(400, "unreadable_body", str(error))
    except LimitExceededError as error:
        return _problem(413, error.code, error.message)
    except BatchIdReusedError:
        return _problem(
            422, "batch_id_reused", "This Idempotency-Key was sent before with another body."
        )
    return HttpResponse(answer, content_type="application/json")


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


def _stream(request: HttpRequest) -> Stream:
    # Django takes a body without a length for an empty one; the server under it has undone
    # the chunks and ends the stream where the body ends.
    if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
        return cast(Stream, request.META["wsgi.input"])
    return request


def _problem(status: int, code: str, message: str, **headers: str) -> JsonResponse:
    return JsonResponse({"code": code, "message": message}, status=status, headers=headers)
