"""Read an output as an AI Core envelope, as far as the index can use it.

Pure. An output may be any JSON. Each member of the wrong type is ignored; no output causes its
event to be rejected.
"""

import json
from typing import Any

import msgspec

from audit.events import wire
from audit.events.any_json import ANY_JSON


def lenient_envelope(output: Any) -> wire.Envelope | None:
    """The usable members of an output, given as bytes or value; None if it is not an object."""
    value = _value(output) if isinstance(output, msgspec.Raw) else output
    if not isinstance(value, dict):
        return None
    error, meta = value.get("error"), value.get("meta")
    return wire.Envelope(
        status=_of(wire.Envelope, value, "status"),
        error=_struct(wire.EnvelopeError, error) if isinstance(error, dict) else None,
        meta=wire.EnvelopeMeta(
            cache_hit=_of(wire.EnvelopeMeta, meta, "cache_hit"),
            attempt=_of(wire.EnvelopeMeta, meta, "attempt"),
            token_usage=_struct(wire.TokenUsage, meta.get("token_usage")),
        )
        if isinstance(meta, dict)
        else None,
    )


def _struct[S: msgspec.Struct](kind: type[S], value: Any) -> S | None:
    if not isinstance(value, dict):
        return None
    return kind(**{name: _of(kind, value, name) for name in kind.__struct_fields__})


def _of(kind: type[msgspec.Struct], value: dict[str, Any], name: str) -> Any:
    """A member if it has the type that the struct declares, else None."""
    try:
        return getattr(msgspec.convert({name: value.get(name)}, kind), name)
    except msgspec.ValidationError:
        return None


def _value(raw: msgspec.Raw) -> Any:
    try:
        return ANY_JSON.decode(raw)
    except msgspec.MsgspecError:  # 1e999 is valid JSON; Python reads it as infinity
        return json.loads(bytes(raw))
