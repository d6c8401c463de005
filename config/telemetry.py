"""Traces of the server itself, by OpenTelemetry. Off unless `TOOLTRAIL_TELEMETRY` is true.

Each request is a span with method, route and status, each job of a worker one with its task, and
each statement that Django ran for them is a span below. They contain nothing that was sent: no
query, no body, no values of a statement, no text of an error, which may quote values.
OpenTelemetry's variables say where they go (`OTEL_EXPORTER_OTLP_ENDPOINT`, …).

OpenTelemetry's package for Django is not used: its spans have the whole URL, which contains what
somebody searched for.
"""

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.db import connection
from django.http import HttpRequest, HttpResponseBase
from procrastinate import JobContext

from audit.intake.otlp.signals import SIGNALS
from config.version import VERSION


class TelemetryMiddleware:
    """Makes the spans. OTLP requests have none: their spans would be sent here, and have spans."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if not settings.TELEMETRY:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.path in SIGNALS:
            return self.get_response(request)
        from opentelemetry.trace import StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        above = TraceContextTextMapPropagator().extract(request.headers)
        method = request.method or ""
        with _span(method, "SERVER", above) as span:
            with connection.execute_wrapper(_statement):
                response = self.get_response(request)
            route = "" if request.resolver_match is None else f"/{request.resolver_match.route}"
            span.update_name(f"{method} {route}".rstrip())
            span.set_attributes(
                {
                    "http.request.method": method,
                    "http.response.status_code": response.status_code,
                    "http.route": route,
                }
            )
            if response.status_code >= 500:
                span.set_status(StatusCode.ERROR)
        return response


async def trace_job(
    call_next: Callable[[], Awaitable[Any]], context: JobContext, _worker: object
) -> Any:
    """Run a job in a span of its own. A worker middleware of Procrastinate."""
    with _span(context.job.task_name, "CONSUMER") as span:
        span.set_attributes({"messaging.destination.name": context.job.queue})
        return await call_next()


def trace_statements(call_next: Callable[[], Any], _context: JobContext, _worker: object) -> Any:
    """Run a job with spans of its statements. A task middleware of Procrastinate, in the thread."""
    with connection.execute_wrapper(_statement):
        return call_next()


@contextmanager
def _span(name: str, kind: str, above: Any = None) -> Iterator[Any]:
    """A span of the block. Of an error it has the type only."""
    from opentelemetry.trace import SpanKind, StatusCode

    with _tracer().start_as_current_span(
        name, above, SpanKind[kind], record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except Exception as error:
            span.set_status(StatusCode.ERROR)
            span.set_attribute("error.type", type(error).__name__)
            raise


def _statement(
    execute: Callable[..., Any], statement: Any, values: Any, many: bool, context: Any
) -> Any:
    """Run a statement in a span of its own. See Django's `execute_wrapper`."""
    with _span("postgresql", "CLIENT") as span:
        text = statement if isinstance(statement, str) else type(statement).__name__
        if text.startswith("SET "):
            text = text.partition(" = ")[0]  # the value is in the text: a tenant's id
        span.set_attributes({"db.system.name": "postgresql", "db.query.text": text})
        return execute(statement, values, many, context)


@cache
def _tracer() -> Any:
    """This process's tracer. Made at its first request, because it starts a thread."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    os.environ.setdefault("OTEL_SERVICE_NAME", "tooltrail")
    provider = TracerProvider(resource=Resource.create({"service.version": VERSION}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider.get_tracer("tooltrail", VERSION)
