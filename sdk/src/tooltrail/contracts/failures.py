"""Turns an exception into the AI Core's error: its type and its message.

Recognizes exceptions of the standard library, pydantic and this SDK by class. Those of HTTP
clients (urllib, urllib3, requests, httpx, aiohttp …) are recognized by common attributes, so
that none of these needs to be installed.
"""

import errno
import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from tooltrail.contracts.models import ToolError, ToolErrorDetail, ToolErrorMeta, ToolErrorType
from tooltrail.errors import (
    InvalidToolArgs,
    ToolDownstreamError,
    TooltrailError,
    ValidationException,
)

_RETRYABLE_ERRNOS = {
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.ENETDOWN,
    errno.EHOSTDOWN,
    errno.EAGAIN,
}
_CANCELLED_NAMES = {
    "CancelledError",  # asyncio, concurrent.futures
    "Cancelled",  # trio
    "GeneratorExit",
}
_INTERRUPTED_NAMES = {"KeyboardInterrupt", "SystemExit"}
_CONNECTION_NAMES = {
    "ConnectError",  # httpx
    "ConnectionError",  # requests
    "ClientConnectionError",  # aiohttp
    "NewConnectionError",  # urllib3
    "ProtocolError",
    "NetworkError",
    "RemoteProtocolError",
    "gaierror",
}


def describe_failure(
    error: BaseException,
    *,
    endpoint: str | None = None,
    attempt: int | None = None,
    now: datetime | None = None,
) -> ToolErrorDetail:
    """Classify an exception as one of the AI Core's error types.

    - TIMEOUT: timeouts, HTTP 408 and 504.
    - RATE_LIMIT: HTTP 429.
    - UPSTREAM: other HTTP 5xx.
    - VALIDATION: violated schemas.
    - RETRYABLE: lost connections; also calls that were cancelled or interrupted by the end of the
      process, which did not fail themselves. Their code is CANCELLED or INTERRUPTED.
    - FATAL: everything else.

    Retry-After, in seconds or as a date (relative to `now`), becomes `retry_after_ms`.
    `endpoint` and `attempt` are copied into the result. For a ToolDownstreamError, the exception
    of the tool's handler is classified.
    """
    error = _root(error)
    status = _http_status(error)
    stopped = _stopped(error)
    code = stopped or getattr(error, "code", None)
    return ToolErrorDetail(
        type=ToolErrorType.RETRYABLE if stopped else _kind(error, status),
        message=str(error) or type(error).__name__,
        code=code if isinstance(code, str) else None,
        cause=type(error).__name__,
        details=_details(error),
        retry_after_ms=_retry_after_ms(error, now or datetime.now(UTC)),
        upstream_status=status,
        endpoint=endpoint,
        attempt=attempt,
    )


def tool_error[IT: BaseModel](
    error: BaseException,
    input: IT,
    *,
    took_ms: int,
    endpoint: str | None = None,
    attempt: int | None = None,
) -> ToolError[IT]:
    """Make the whole envelope of a failed call; `took_ms` is ms until the failure was noticed."""
    envelope = cast("type[ToolError[IT]]", ToolError.__class_getitem__(type(input)))
    return envelope(
        input=input,
        error=describe_failure(error, endpoint=endpoint, attempt=attempt),
        meta=ToolErrorMeta(took_ms=took_ms),
    )


def _root(error: BaseException) -> BaseException:
    """The failure inside wrappers that only pass it on."""
    while isinstance(error, ToolDownstreamError) and error.__cause__ is not None:
        error = error.__cause__
    reason = getattr(error, "reason", None)  # urllib's URLError, urllib3's MaxRetryError
    return reason if isinstance(reason, BaseException) else error


def _stopped(error: BaseException) -> str | None:
    """The code of an exception that ends a call from outside; None for any other."""
    names = {base.__name__ for base in type(error).__mro__}
    if names & _CANCELLED_NAMES:
        return "CANCELLED"
    return "INTERRUPTED" if names & _INTERRUPTED_NAMES else None


def _kind(error: BaseException, status: int | None) -> ToolErrorType:
    names = {base.__name__ for base in type(error).__mro__}
    if status == 429:
        return ToolErrorType.RATE_LIMIT
    # urllib3 derives the error for a refused connection from its timeouts.
    is_timeout = any("Timeout" in name for name in names) and "NewConnectionError" not in names
    if status in (408, 504) or (status is None and is_timeout):
        return ToolErrorType.TIMEOUT
    if status is not None:
        return ToolErrorType.UPSTREAM if status >= 500 else ToolErrorType.FATAL
    validation = (InvalidToolArgs, ValidationException, json.JSONDecodeError)
    if isinstance(error, validation) or "ValidationError" in names:
        return ToolErrorType.VALIDATION
    if (
        isinstance(error, ConnectionError)
        or names & _CONNECTION_NAMES
        or (isinstance(error, OSError) and error.errno in _RETRYABLE_ERRNOS)
    ):
        return ToolErrorType.RETRYABLE
    return ToolErrorType.FATAL


def _http_status(error: BaseException) -> int | None:
    """The HTTP status in the exception; None if there is none."""
    if isinstance(error, TooltrailError):  # its status is for a server of ours to answer
        return None
    for holder in (getattr(error, "response", None), error):
        # A number in `code` is an HTTP status only if there are headers as well.
        code = "code" if hasattr(holder, "headers") else "status"
        for name in ("status_code", "status", code):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 100 <= value <= 599:
                return value
    return None


def _retry_after_ms(error: BaseException, now: datetime) -> int | None:
    for holder in (getattr(error, "response", None), error):
        headers: Any = getattr(holder, "headers", None)
        for name, value in headers.items() if hasattr(headers, "items") else ():
            if str(name).lower() == "retry-after":
                return _delay_ms(str(value).strip(), now)
    return None


def _delay_ms(value: str, now: datetime) -> int | None:
    if value.isascii() and value.isdecimal() and len(value) < 10:
        return int(value) * 1000
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0, round((until - now).total_seconds() * 1000))


def _details(error: BaseException) -> dict[str, Any] | None:
    """Where a schema was violated. Never the values, which may be secret."""
    if isinstance(error, InvalidToolArgs) and isinstance(error.__cause__, ValidationException):
        error = error.__cause__
    if isinstance(error, ValidationException):
        return {
            "errors": [{"loc": list(detail.path), "type": detail.type} for detail in error.details]
        }
    if isinstance(error, ValidationError):
        items = error.errors(include_url=False, include_context=False, include_input=False)
        return {"errors": [{"loc": list(item["loc"]), "type": item["type"]} for item in items]}
    return None
