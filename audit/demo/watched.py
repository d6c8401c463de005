"""What the demo's tenant is watched by: alert rules, of which some fire, and a shared board."""

from typing import Any, Final

RULES: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "Results break their schema",
        "condition": {
            "measure": "violating_share",
            "window_minutes": 360,
            "warning": 3,
            "alert": 25,
        },
    },
    {
        "name": "Pages cannot be fetched",
        "condition": {
            "query": "tool:fetch_page",
            "measure": "failed_share",
            "window_minutes": 360,
            "warning": 5,
            "alert": 50,
        },
    },
    {
        "name": "Answers are slow",
        "condition": {
            "query": "tool:answer_question",
            "measure": "p95",
            "window_minutes": 60,
            "warning": 30_000,
            "alert": 120_000,
            "for_minutes": 5,
        },
    },
    {
        "name": "Calls are overdue",
        "condition": {"measure": "overdue", "window_minutes": 360, "warning": 0},
    },
    {
        "name": "Breaking version",
        "condition": {"on": "event", "event": "version_breaks", "severity": "warning"},
    },
    {
        "name": "Ledger check failed",
        "condition": {"on": "event", "event": "check_failed", "severity": "alert"},
    },
)
"""As the API takes them."""
BOARD: Final[dict[str, Any]] = {
    "name": "Weather and search",
    "range": "24h",
    "panels": [
        {"shows": "calls", "size": "wide"},
        {
            "shows": "errors",
            "title": "Weather: failed",
            "q": "tool:get_weather",
            "threshold": "20 %",
        },
        {
            "shows": "latency",
            "title": "Search: duration",
            "q": "tool:search_docs",
            "threshold": "1 s",
        },
        {"shows": "violations", "title": "Results that break their schema"},
        {"shows": "list", "title": "Last failures", "q": "state:failed"},
    ],
}
"""As the API takes it."""
