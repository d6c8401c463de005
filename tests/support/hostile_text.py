"""Texts that would run as code or break the layout if a page showed them unescaped."""

from typing import Any

from tests.support.factories import Cast, make_call, send_events

XSS = [
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "<svg/onload=window.hacked=1>",
    "<b hx-get=/logout hx-trigger=load>x</b>",
    "javascript:window.hacked=1",
    "' onmouseover='window.hacked=1",
    "</datalist></table><iframe srcdoc='<script>parent.hacked=1</script>'>",
    "{{ 7|add:7 }}{% csrf_token %}",
    "a\u202eb",
]


def send_hostile_calls(cast: Cast) -> None:
    """Send calls whose every field holds one of these texts."""
    for text in XSS:
        error = {"type": text, "code": text, "message": text}
        violation = {"path": f"$.{text}", "severity": "error", "code": "WRONG_TYPE"}
        violation |= {"expected": text, "received": text}
        members: dict[str, Any] = {
            "tool_name": text,
            "tool_version": text,
            "trace_id": text,
            "run_id": text,
        }
        answer = send_events(
            cast.tenant,
            [
                *make_call(
                    **members,
                    args={"q": f"needle {text}", text: text},
                    output={"status": "error", "error": error, "meta": {"took_ms": 1}},
                    guard={"strategy": "warn", "outcome": "failed", "violations": [violation]},
                ),
                *make_call(**members, producer_id=text, is_open=True),
            ],
        )
        assert answer["rejected"] == []
