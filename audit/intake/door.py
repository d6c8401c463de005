"""Reject requests to the intake at once if no place is free, before anything else runs.

Rejecting a request later is slow: it would first wait for the lookup of its key, and for its turn
among the threads that store. With two hundred requests at once that took hundreds of milliseconds
(docs/adr/0006). So a request takes its place as soon as its head is read, and gives it back when
its answer is ready.
"""

import json
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from tooltrail.events import CONTRACT_HEADER, CONTRACT_VERSION

from audit.events.body import announced, body_stream
from audit.intake import metrics
from audit.intake.admission import ADMISSION, RETRY_AFTER_S, OverloadedError
from audit.intake.balance import balance
from audit.intake.otlp.answers import failure
from audit.intake.otlp.signals import JSON, PROTOBUF, SIGNALS, MediaType
from config.http.problems import MEDIA_TYPE as PROBLEM
from config.http.problems import document

EVENTS = "/api/v1/events"
INTAKE = frozenset({EVENTS, *SIGNALS})
"""The paths of the intake."""

_MESSAGE = "Too many requests at once."
_PROBLEM = json.dumps(document("overloaded", _MESSAGE)).encode()


class _Refusal(HttpResponse):
    """503: retry later. The body was not read, so the connection cannot be used again."""

    _has_been_logged = True  # Django then logs nothing; there may be thousands of these a minute

    def __init__(self, body: bytes, media_type: str) -> None:
        headers = {"Retry-After": str(RETRY_AFTER_S), "Connection": "close"}
        super().__init__(body, content_type=media_type, status=503, headers=headers)


class IntakeDoor:
    """Middleware before all others. It admits requests to the intake while places are free."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self._answer(request)
        if request.path == EVENTS:  # an SDK sends new types of events only where they are known
            response.headers[CONTRACT_HEADER] = str(CONTRACT_VERSION)
        return response

    def _answer(self, request: HttpRequest) -> HttpResponseBase:
        if request.path not in INTAKE or request.method != "POST":
            return self.get_response(request)
        try:
            with ADMISSION.place(announced(body_stream(request)[1])), balance().request():
                response = self.get_response(request)
            if balance().asks_to_move():
                response.headers["Connection"] = "close"
            return response
        except OverloadedError:
            metrics.Request().done(503)
        if request.path in SIGNALS:
            media_type: MediaType = JSON if request.content_type == JSON else PROTOBUF
            return _Refusal(failure(503, _MESSAGE, media_type), media_type)
        return _Refusal(_PROBLEM, PROBLEM)
