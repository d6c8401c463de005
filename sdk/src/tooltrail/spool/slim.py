"""Reduces an event to what stays when there is no room for its payloads.

The call keeps its place, times, outcome, error type, guard verdict and numbering. Arguments,
data, messages and received values are removed, and a note says so.
"""

import json
from typing import Any

_META_KEPT = ("took_ms", "token_usage", "cache_hit")
_VIOLATION_KEPT = ("path", "severity", "code", "expected")


def slim_line(line: bytes, reason: str) -> bytes:
    """Remove the payloads from one event's JSON text and note why.

    A text that is not a JSON object stays as it is. So do a gap event, and a text that is nested
    too deeply to be read.
    """
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(event, dict) or event.get("type") == "gap":
        return line
    removed = [note for note in event.pop("removed", ()) if isinstance(note, dict)]
    # The numbers are at the end of a line, where the spool looks for them.
    producer = {key: event.pop(key) for key in ("producer_id", "producer_seq") if key in event}
    if "args" in event:
        event["args"] = None
        removed.append({"path": "$.args", "reason": reason})
    if "output" in event:
        event["output"] = _slim_output(event["output"])
        removed.append({"path": "$.output", "reason": reason})
    if event.get("type") == "toolCallDecision":
        if event.pop("reason", None) is not None:
            removed.append({"path": "$.reason", "reason": reason})
        event["violations"] = [_slim_violation(each) for each in event.get("violations", ())]
    guard = event.get("guard")
    if isinstance(guard, dict):
        if guard.pop("received", None) is not None:
            removed.append({"path": "$.guard.received", "reason": reason})
        guard["violations"] = [_slim_violation(each) for each in guard.get("violations", ())]
    event |= {"removed": removed, **producer}
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode(
        errors="surrogatepass"
    )


def _slim_output(output: Any) -> Any:
    if not isinstance(output, dict) or "status" not in output:
        return None
    kept: dict[str, Any] = {"status": output["status"]}
    error, meta = output.get("error"), output.get("meta")
    if isinstance(error, dict):
        kept["error"] = {"type": error.get("type"), "message": ""}
    if isinstance(meta, dict):
        kept["meta"] = {key: meta[key] for key in _META_KEPT if key in meta}
    return kept


def _slim_violation(violation: Any) -> Any:
    """Its place and code. What was received, and messages that quote it, go."""
    if not isinstance(violation, dict):
        return violation
    return {key: value for key, value in violation.items() if key in _VIOLATION_KEPT}
