"""Middleware for host applications: each request runs in the trace it belongs to.

Owns reading the request and adding its ids to the response. `tooltrail.trail` opens the trace.
Imports no framework. Source of the header names: the AI Core's middleware.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import Context, copy_context
from io import BytesIO
from typing import Any, Protocol

from tooltrail.tracing.resolution import Body, ResolvedTrace, find_trace, resolve_trace
from tooltrail.tracing.traceparent import fits_header, parse_traceparent

# A trace id is in small JSON bodies. Larger bodies are uploads, too large to hold in memory.
BODY_LIMIT_BYTES = 64 * 1024

# Header of the request → header of a successful response.
_ECHOED = {
    "x-tenant-id": "X-Tenant-ID",
    "x-case-id": "X-Case-ID",
    "x-key-alias": "X-Key-Alias",
    "idempotency-key": "Idempotency-Key",
}
_CONTEXT = {"x-case-id": "case_id", "idempotency-key": "idempotency_key"}


class OpensTraces(Protocol):
    """The part of a `Trail` that the middleware needs."""

    def trace(self, trace_id: str | None = None, **context: Any) -> AbstractContextManager[object]:
        """Open a trace for the code in the block."""


class _Request:
    """The ids in a request: its trace, the context of its calls, the headers to repeat."""

    def __init__(self, headers: Mapping[str, str], query: Any, body: Callable[[], Body]) -> None:
        """`headers` have lower-case names. `body` is called only if nothing else has the id."""
        self._headers = headers
        content_type = headers.get("content-type")
        self.resolved: ResolvedTrace = resolve_trace(headers, query, body, content_type)

    def open(self, trail: OpensTraces) -> AbstractContextManager[object]:
        given = {name: self._headers.get(header, "") for header, name in _CONTEXT.items()}
        context = {name: value.strip() for name, value in given.items() if value.strip()}
        return trail.trace(self.resolved.trace_id, **context)

    def answer_headers(self, status: int) -> list[tuple[str, str]]:
        """The headers to add to a 2xx response, none to others. Skips invalid header values."""
        if not 200 <= status < 300:
            return []
        repeated = [(_ECHOED[name], self._headers.get(name, "").strip()) for name in _ECHOED]
        traceparent = self._headers.get("traceparent", "").strip()
        if parse_traceparent(traceparent):
            repeated.append(("traceparent", traceparent))
        repeated.append(("X-Trace-ID", self.resolved.trace_id))
        return [(name, value) for name, value in repeated if fits_header(value)]


def _reads_body(headers: Mapping[str, str]) -> bool:
    """Whether the body is JSON and small enough to be read, by its headers."""
    length = headers.get("content-length", "")
    return (
        "application/json" in headers.get("content-type", "").lower()
        and length.isascii()
        and length.isdecimal()
        and len(length) < 10
        and 0 < int(length) <= BODY_LIMIT_BYTES
    )


Message = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class AsgiTraceMiddleware:
    """Wraps an ASGI application: `app = AsgiTraceMiddleware(app, trail)`.

    Requests and web sockets run in their trace, including streamed responses. A small JSON body
    that may contain the trace id is read ahead and passed on unchanged.
    """

    def __init__(self, app: Callable[..., Awaitable[None]], trail: OpensTraces) -> None:
        self._app = app
        self._trail = trail

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        query, body = scope.get("query_string", b""), b""
        # Reading ahead means waiting, so only if neither headers nor query have the trace id.
        if _reads_body(headers) and find_trace(headers, query) is None:
            body, receive = await _read_ahead(receive)
        request = _Request(headers, query, lambda: body)

        async def send_with_ids(message: Any) -> None:
            if message["type"] == "http.response.start":
                added = request.answer_headers(message["status"])
                encoded = [(name.lower().encode(), value.encode()) for name, value in added]
                message = {**message, "headers": [*message.get("headers", ()), *encoded]}
            await send(message)

        with request.open(self._trail):
            await self._app(scope, receive, send_with_ids)


async def _read_ahead(receive: Receive) -> tuple[bytes, Receive]:
    """Read the body. Returns it, and a `receive` that replays its messages before reading on."""
    messages: list[Message] = []
    while True:
        message = await receive()
        messages.append(message)
        if message["type"] != "http.request" or not message.get("more_body"):
            break
    body = b"".join(message.get("body", b"") for message in messages)

    async def replay() -> Any:
        return messages.pop(0) if messages else await receive()

    return body, replay


class WsgiTraceMiddleware:
    """Wraps a WSGI application: `app = WsgiTraceMiddleware(app, trail)`.

    The application and the iteration over its response run in the trace, in their own context.
    A small JSON body that may contain the trace id is read ahead and passed on unchanged.
    """

    def __init__(self, app: Callable[..., Iterable[bytes]], trail: OpensTraces) -> None:
        self._app = app
        self._trail = trail

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve one request."""
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_") or name in ("CONTENT_TYPE", "CONTENT_LENGTH")
        }

        def body() -> bytes:
            if not _reads_body(headers):
                return b""
            data: bytes = environ["wsgi.input"].read(int(headers["content-length"]))
            environ["wsgi.input"] = BytesIO(data)
            return data

        request = _Request(headers, environ.get("QUERY_STRING", ""), body)

        def start_with_ids(status: str, answer: list[tuple[str, str]], *more: Any) -> Any:
            added = request.answer_headers(int(status[:3]))
            return start_response(status, [*answer, *added], *more)

        context = copy_context()
        opened = request.open(self._trail)
        context.run(opened.__enter__)
        try:
            chunks = context.run(self._app, environ, start_with_ids)
        except BaseException:
            context.run(opened.__exit__, None, None, None)
            raise
        return _Answer(chunks, context, opened)


class _Answer:
    """A response whose chunks are made in the trace. The trace ends when the server closes it."""

    def __init__(
        self, chunks: Iterable[bytes], context: Context, opened: AbstractContextManager[object]
    ) -> None:
        self._chunks = chunks
        self._context = context
        self._opened = opened

    def __iter__(self) -> Iterator[bytes]:
        iterator = self._context.run(iter, self._chunks)
        end = object()
        while (chunk := self._context.run(next, iterator, end)) is not end:
            yield chunk  # type: ignore[misc]  # not `end`

    def close(self) -> None:
        """Close the application's response, then end the trace."""
        try:
            if hasattr(self._chunks, "close"):
                self._context.run(self._chunks.close)
        finally:
            self._context.run(self._opened.__exit__, None, None, None)


def django_middleware(trail: OpensTraces) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Make a middleware for Django's `MIDDLEWARE`, for sync and async.

    Put `trace_requests = django_middleware(trail)` in a module and its dotted path in the
    setting, near the top. A streamed response is iterated after the trace has ended; if that
    matters, wrap the WSGI or ASGI application instead.
    """

    def read(request: Any) -> _Request:
        headers = {name.lower(): value for name, value in request.headers.items()}

        def body() -> bytes:
            try:
                return request.body if _reads_body(headers) else b""
            except Exception:  # unreadable or already read: the view handles this itself
                return b""

        return _Request(headers, request.GET, body)

    def answered(ids: _Request, response: Any) -> Any:
        for name, value in ids.answer_headers(response.status_code):
            response.headers[name] = value
        return response

    def factory(get_response: Callable[[Any], Any]) -> Callable[[Any], Any]:
        if inspect.iscoroutinefunction(get_response):

            async def handle_async(request: Any) -> Any:
                ids = read(request)
                with ids.open(trail):
                    return answered(ids, await get_response(request))

            return handle_async

        def handle(request: Any) -> Any:
            ids = read(request)
            with ids.open(trail):
                return answered(ids, get_response(request))

        return handle

    # What Django's own decorator `sync_and_async_middleware` sets.
    factory.sync_capable = factory.async_capable = True  # type: ignore[attr-defined]  # a function has no such members
    return factory
