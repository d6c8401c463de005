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
        given = request.headers.get(HEADER, "")
        request_id = given if _VALID.match(given) else secrets.token_hex(8)
        # Until this thread's next request: Django logs refusals after the last middleware.
        _current.set(request_id)
        began = time.perf_counter()
        response = self.get_response(request)
        response.headers[HEADER] = request_id
        if settings.LOG_REQUESTS:
            members = {
                "method": request.method,
                "path": request.path,
                "status": response.status_code,
                "milliseconds": round((time.perf_counter() - began) * 1000, 1),
            }
            _log.info("%(method)s %(path)s %(status)d", members, extra=members)
        return response


class RequestIdFilter(logging.Filter):
    """Adds `request_id` to each record: of the thread's latest request, or None."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every record."""
        record.request_id = _current.get()
        return True
