"""Each request has an id: in the header of its answer, and in each line that it logs.

A proxy or caller may choose it with `X-Request-ID`. Otherwise, and if it could not stand in a log,
it is made here. With `TOOLTRAIL_LOG_REQUESTS` each request is one line. The line has no query,
because a query may contain what somebody searches for.
"""

import logging
import re
import secrets
import time
from collections.abc import Callable
from contextvars import ContextVar

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

HEADER = "X-Request-ID"
_VALID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}\Z")
_log = logging.getLogger("tooltrail.request")
_current: ContextVar[str | None] = ContextVar("request_id", default=None)


class RequestIdMiddleware:
    """The outermost middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        request_id = begin(request.headers.get(HEADER, ""))
        response = self.get_response(request)
        response.headers[HEADER] = request_id
        log_request(request.method or "", request.path, response.status_code, began)
        return response


def begin(given: str) -> str:
    """The id of a request that begins, `given` if it may be in a log. Its lines have it.

    So do later lines of the thread until its next request: Django logs refusals after the last
    middleware.
    """
    request_id = given if _VALID.match(given) else secrets.token_hex(8)
    _current.set(request_id)
    return request_id


def log_request(method: str, path: str, status: int, began: float) -> None:
    """Log the line of a request that began then, in seconds of `time.perf_counter`, if wanted."""
    if settings.LOG_REQUESTS:
        members = {
            "method": method,
            "path": path,
            "status": status,
            "milliseconds": round((time.perf_counter() - began) * 1000, 1),
        }
        _log.info("%(method)s %(path)s %(status)d", members, extra=members)


class RequestIdFilter(logging.Filter):
    """Adds `request_id` to each record: of the thread's latest request, or None."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every record."""
        record.request_id = _current.get()
        return True
