"""Responses that are sent while they are made: exports, evidence bundles, the registry.

Such a response holds a thread of this process until it is complete. That takes minutes for a large
tenant or a slow reader. 48 exports of one tenant at once held all threads: no tenant's events, no
page and no probe were answered. So the number of streams is limited, and that of one tenant more.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Self
from uuid import UUID
from weakref import WeakSet

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from config.http.errors import overloaded

STREAMS = 4
"""Streams of this process at once. It has 16 threads, and ten requests to the intake at once."""
STREAMS_OF_TENANT = 2
"""Streams of one tenant at once."""
RETRY_AFTER_S = 10


class TooManyStreamsError(Exception):
    """Too many streams run at once: answer 503, retry after `RETRY_AFTER_S`."""


class StreamsMiddleware:
    """Answers 503 for a stream that cannot start now."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer `TooManyStreamsError`; leave other exceptions to Django."""
        if not isinstance(error, TooManyStreamsError):
            return None
        explanation = "Too many files are downloaded at once. Try again when one is complete."
        return overloaded(request, explanation, RETRY_AFTER_S)


def stream(
    tenant_id: UUID, chunks: Iterator[bytes], content_type: str, *, file_name: str = ""
) -> StreamingHttpResponse:
    """Return the response that sends `chunks`, as a download if it has a `file_name`.

    Raises TooManyStreamsError at once if too many run. Call it inside the transaction that records
    the download, so that a refused one is not on record.
    """
    headers = {"Content-Disposition": f'attachment; filename="{file_name}"'} if file_name else {}
    return StreamingHttpResponse(
        _Counted(tenant_id, chunks), content_type=content_type, headers=headers
    )


class _Counted:
    """An iterator that is counted until it is closed, which Django does with the response."""

    def __init__(self, tenant_id: UUID, chunks: Iterator[bytes]) -> None:
        self._tenant_id = tenant_id
        self._chunks = chunks
        with _lock:
            of_tenant = sum(each._tenant_id == tenant_id for each in RUNNING)
            if len(RUNNING) >= STREAMS or of_tenant >= STREAMS_OF_TENANT:
                raise TooManyStreamsError
            RUNNING.add(self)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        return next(self._chunks)

    def close(self) -> None:
        """End it, complete or not."""
        with _lock:
            RUNNING.discard(self)
        if (close := getattr(self._chunks, "close", None)) is not None:
            close()


_lock = threading.Lock()
RUNNING = WeakSet[_Counted]()
"""The streams of this process. A stream that nobody closed is in it until it is deleted."""
