"""Finds the trace that a request belongs to, and passes traces on to other services."""

from tooltrail.tracing.middleware import (
    AsgiTraceMiddleware,
    OpensTraces,
    WsgiTraceMiddleware,
    django_middleware,
)
from tooltrail.tracing.resolution import ResolvedTrace, resolve_trace
from tooltrail.tracing.traceparent import (
    TraceParent,
    format_traceparent,
    outgoing_headers,
    parse_traceparent,
)

__all__ = [
    "AsgiTraceMiddleware",
    "OpensTraces",
    "ResolvedTrace",
    "TraceParent",
    "WsgiTraceMiddleware",
    "django_middleware",
    "format_traceparent",
    "outgoing_headers",
    "parse_traceparent",
    "resolve_trace",
]
