"""Recognizes results that already are an envelope of the AI Core's contracts."""

from collections.abc import Mapping
from typing import Any


def as_envelope(result: Any) -> Mapping[str, Any] | None:
    """The result as an envelope if it is one (a mapping or a contract model), else None."""
    if type(result) is not dict and not isinstance(result, Mapping):
        if getattr(result, "status", None) not in ("ok", "error"):
            return None
        if not hasattr(result, "model_dump"):
            return None
        # The data stays an object, because redaction comes before encoding.
        members = {"status": result.status, "data": getattr(result, "data", None)}
        for name in ("error", "meta"):
            member: Any = getattr(result, name, None)
            is_model = hasattr(member, "model_dump")
            members[name] = member.model_dump(mode="json") if is_model else member
        result = members
    envelope: Mapping[str, Any] = result
    match envelope.get("status"):
        case "ok" if "data" in envelope:
            return envelope
        case "error" if isinstance(envelope.get("error"), Mapping):
            return envelope
    return None
