"""Hooks of schemathesis: how bodies become bytes that are not JSON. Runs where Django is not."""

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


@schemathesis.serializer("application/x-protobuf")
def as_bytes(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    """Bytes as they are: the description says no more of them."""
    return value if isinstance(value, bytes) else json.dumps(value).encode()
