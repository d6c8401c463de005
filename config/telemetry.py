"""Traces of the server itself, by OpenTelemetry. Off unless `TOOLTRAIL_TELEMETRY` is true.

Each request is a span with method, route and status, and each statement that Django ran for it is a
span below it. They contain nothing that was sent: no query, no body, no values of a statement.
OpenTelemetry's variables say where they go (`OTEL_EXPORTER_OTLP_ENDPOINT`, …).

OpenTelemetry's package for Django is not used: its spans have the whole URL, which contains what
somebody searched for.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.db import connection
from django.http import HttpRequest, HttpResponseBase

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
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        tracer = _tracer()
        above = TraceContextTextMapPropagator().extract(request.headers)
        method = request.method or ""
        with tracer.start_as_current_span(method, above, SpanKind.SERVER) as span:
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


def _statement(
    execute: Callable[..., Any], statement: Any, values: Any, many: bool, context: Any
) -> Any:
    """Run a statement in a span of its own. See Django's `execute_wrapper`."""
    from opentelemetry.trace import SpanKind

    with _tracer().start_as_current_span("postgresql", kind=SpanKind.CLIENT) as span:
        text = statement if isinstance(statement, str) else type(statement).__name__
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
