"""`POST /v1/traces`: OTLP/HTTP, protobuf and JSON.

Reads HTTP and writes answers. Exporters append this path to their endpoint, so the route is not
under `/api/v1`.
"""

import math
from http import HTTPStatus

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from audit.events.body import (
    UnreadableBodyError,
    announced,
    body_stream,
    inflate,
    read_sent,
)
from audit.events.limits import LimitExceededError
from audit.events.spans import UnreadableTraceError
from audit.intake import metrics
from audit.intake.admission import ADMISSION, RETRY_AFTER_S, OverloadedError
from audit.intake.otlp.answers import (
    JSON,
    PROTOBUF,
    MediaType,
    failure,
    success,
)
from audit.intake.otlp.mapping import map_spans
from audit.intake.otlp.otlp_json import read_json
from audit.intake.otlp.protobuf import read_protobuf
from audit.intake.otlp.recording import record_spans
from audit.intake.quota import QuotaExceededError, quota
from config.postgresql.schema import why_unavailable
from tenants.keys import ApiKeyIdentity, KeyRefused, authenticate
from tenants.models import Scope

_MEDIA_TYPES: dict[str, MediaType] = {
    PROTOBUF: PROTOBUF,
    "application/protobuf": PROTOBUF,
    JSON: JSON,
}
_ENCODINGS = ("gzip", "zstd", "identity")
_READERS = {PROTOBUF: read_protobuf, JSON: read_json}


@csrf_exempt
def receive_traces(request: HttpRequest) -> HttpResponse:
    """Receive the tool calls of an ExportTraceServiceRequest; 200 once they are stored.

    The key is sent as `Authorization: Bearer tt_…` or `x-api-key: tt_…`. The answer has the
    request's media type. Only requests answered with 429 or 503 are worth a retry.
    """
    media_type = _MEDIA_TYPES.get((request.content_type or "").lower())
    answered = _Refusing(media_type or JSON)
    if request.method != "POST":
        return answered(405, "Send spans with POST.", Allow="POST")
    try:
        key = _identity(request)
    except KeyRefused as refusal:
        headers = {"WWW-Authenticate": 'Bearer realm="tooltrail"'} if refusal.status == 401 else {}
        return answered(refusal.status, refusal.message, **headers)
    except (OperationalError, InterfaceError) as error:
        return answered.come_again(503, why_unavailable(error), RETRY_AFTER_S)
    if media_type is None:
        return answered(415, f"Send {PROTOBUF} or {JSON}.", Accept=f"{PROTOBUF}, {JSON}")
    counted = metrics.Request()
    status = 503  # an exception here means that the database is away
    try:
        answer = _receive(request, key, media_type, answered, counted)
        status = answer.status_code
        return answer
    finally:
        counted.done(status)


def _receive(
    request: HttpRequest,
    key: ApiKeyIdentity,
    media_type: MediaType,
    answered: "_Refusing",
    counted: metrics.Request,
) -> HttpResponse:
    encoding = request.headers.get("Content-Encoding", "").strip().lower() or "identity"
    if encoding not in _ENCODINGS:
        return answered(
            415, "Send the body as gzip, zstd or uncompressed.", **{"Accept-Encoding": "gzip, zstd"}
        )
    stream, length = body_stream(request)
    try:
        quota().check(key.key_id)
        with ADMISSION.share(key.tenant_id, announced(length)):
            sent = read_sent(stream, length)
            counted.lap("read")
            with ADMISSION.slot(key.tenant_id):
                counted.lap("wait")
                body = inflate(sent, encoding)
                counted.lap("inflate")
                received = _READERS[media_type](body)
                mapped = map_spans(received.spans)
                quota().take(key.key_id, 2 * len(mapped.calls))
                recorded = record_spans(key.tenant_id, body, received, mapped, timezone.now())
                counted.lap("store")
    except QuotaExceededError as error:
        return answered.come_again(
            429, "This API key exceeded its rate limit.", error.retry_after_s
        )
    except OverloadedError:
        return answered.come_again(503, "Too many requests at once.", RETRY_AFTER_S)
    except (OperationalError, InterfaceError) as error:
        return answered.come_again(503, why_unavailable(error), RETRY_AFTER_S)
    except (UnreadableBodyError, UnreadableTraceError) as error:
        return answered(400, str(error))
    except LimitExceededError as error:
        return answered(413, error.message)
    counted.stored(len(sent), len(body), recorded.events)
    counted.spans(recorded.span_counts)
    return HttpResponse(success(recorded, media_type), content_type=media_type)


def _identity(request: HttpRequest) -> ApiKeyIdentity:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer":
        token = request.headers.get("x-api-key", "")
    if not token.strip():
        raise KeyRefused(401, "missing_key", "Send an API key in the header x-api-key: tt_…")
    return authenticate(token.strip(), Scope.INGEST)


class _Refusing:
    """Writes error answers in the request's encoding."""

    def __init__(self, media_type: MediaType) -> None:
        self._media_type = media_type

    def __call__(self, status: int, message: str, **headers: str) -> HttpResponse:
        """Answer with a google.rpc.Status and this HTTP status."""
        body = failure(status, message, self._media_type)
        answer = HttpResponse(body, content_type=self._media_type, status=HTTPStatus(status))
        for name, value in headers.items():
            answer[name] = value
        return answer

    def come_again(self, status: int, message: str, seconds: float) -> HttpResponse:
        """Answer likewise, with `Retry-After`. Ends the connection, as the body was not read."""
        headers = {"Retry-After": str(max(1, math.ceil(seconds))), "Connection": "close"}
        return self(status, message, **headers)
