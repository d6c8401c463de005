"""Hooks of schemathesis: how the items of a body become lines. Runs where Django is not."""

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def as_lines(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    """An event a line; what is no list is a line, too."""
    if isinstance(value, bytes):
        return value
    items = value if isinstance(value, list) else [value]
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)
