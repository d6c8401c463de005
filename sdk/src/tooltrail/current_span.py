"""OpenTelemetry's current span, where the host uses it: the span a call runs in.

Imports nothing: a host that has not imported `opentelemetry` has no current span.
"""

import sys


def current_span() -> str | None:
    """The current span as a W3C `traceparent`; None where there is none. Never raises.

    That of a span that is not sampled, too: its ids are those that other services get.
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
    except Exception:  # half imported, or another thing of that name: the host's matter
        return None
