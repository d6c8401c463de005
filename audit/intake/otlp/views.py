"""`POST /v1/traces`, `/v1/logs` and `/v1/metrics`: OTLP/HTTP, protobuf and JSON.

Reads HTTP and writes answers. Exporters append these paths to their endpoint, so the routes are not
under `/api/v1`.
"""

import math
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from audit.events.body import ENCODINGS, announced, body_stream, read_sent
from audit.intake import metrics
from audit.intake.otlp.answers import failure
from audit.intake.otlp.exports import RefusedError, export, identity
from audit.intake.otlp.signals import JSON, PROTOBUF, SIGNALS, MediaType
from config.http.proxies import client_address

_MEDIA_TYPES: dict[str, MediaType] = {
    PROTOBUF: PROTOBUF,
    "application/protobuf": PROTOBUF,
    JSON: JSON,
}


@csrf_exempt
def receive(request: HttpRequest) -> HttpResponse:
    """Receive the export request of the path's signal; 200 once its tool calls are stored.

    The key is sent as `Authorization: Bearer tt_…` or `x-api-key: tt_…`. The answer has the
    request's media type. Only requests answered with 429 or 503 are worth a retry.
    """
    signal = SIGNALS[request.path_info]
    media_type = _MEDIA_TYPES.get((request.content_type or "").lower())
    answered = _Refusing(media_type or JSON)
    if request.method != "POST":
        return answered(405, f"Send {signal.items} with POST.", Allow="POST")
    try:
        key = identity(
            request.headers.get("Authorization", ""),
            request.headers.get("x-api-key", ""),
            client_address(request),
        )
    except RefusedError as refusal:
        return answered.by(refusal)
    if media_type is None:
        return answered(415, f"Send {PROTOBUF} or {JSON}.", Accept=f"{PROTOBUF}, {JSON}")
    counted = metrics.Request()
    status = 503  # an exception here means that the database is away
    try:
        encoding = request.headers.get("Content-Encoding", "").strip().lower() or "identity"
        if encoding not in ENCODINGS:
            status = 415
            message = "Send the body as gzip, zstd, deflate or uncompressed."
            return answered(415, message, **{"Accept-Encoding": ", ".join(ENCODINGS)})
        stream, length = body_stream(request)
        body = export(
            signal,
            key,
            lambda: read_sent(stream, length),
            size=announced(length),
            encoding=encoding,
            media_type=media_type,
            counted=counted,
        )
        status = 200
        return HttpResponse(body, content_type=media_type)
    except RefusedError as refusal:
        status = refusal.status
        return answered.by(refusal)
    finally:
        counted.done(status)


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

    def by(self, refusal: RefusedError) -> HttpResponse:
        """Answer by a refusal. One to retry ends the connection, as the body was not read."""
        headers = {}
        if refusal.retry_after_s is not None:
            seconds = str(max(1, math.ceil(refusal.retry_after_s)))
            headers = {"Retry-After": seconds, "Connection": "close"}
        elif refusal.status == 401:
            headers = {"WWW-Authenticate": 'Bearer realm="tooltrail"'}
        return self(refusal.status, refusal.message, **headers)
