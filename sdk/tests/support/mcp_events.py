"""A result of MCP, and what recorded events say of their call."""

from typing import Any

TEXT = {"content": [{"type": "text", "text": "22.5"}]}


def state(event: dict[str, Any]) -> str:
    """What an event says: a start, a state of an end, a decision, a gap or another type."""
    match event["type"]:
        case "toolExecutionStart":
            return "start"
        case "toolExecutionEnd":
            has_failed = event["is_error"] or (event["output"] or {}).get("status") == "error"
            return str(event.get("call_state") or ("failed" if has_failed else "ok"))
        case "toolCallDecision":
            return str(event["decision"])
        case "gap":
            return f"gap {event['reason']}"
    return str(event["type"])
