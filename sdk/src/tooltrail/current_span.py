"""Reads the current OpenTelemetry span, if the host uses OpenTelemetry.

Imports nothing: a host that has not imported `opentelemetry` has no current span.
"""

import sys


def current_span() -> str | None:
    """The current span as a W3C `traceparent`; None if there is none. Never raises.

    Includes spans that are not sampled, because other services get their ids too.
    """
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    try:
        context = api.get_current_span().get_span_context()
        if not context.is_valid:
            return None
        flags = int(context.trace_flags) & 0xFF
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"
    except Exception:  # half imported, or an unrelated module with this name
        return None
