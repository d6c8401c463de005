"""Lists the figures that differ between two reports of one range. Pure."""

from typing import Any

HEADLINES: dict[str, tuple[str, str, str]] = {
    "Calls": ("volume", "calls", "count"),
    "Failed calls": ("reliability", "failed", "count"),
    "Error rate": ("reliability", "error_rate", "share"),
    "Violations": ("violations", "violations", "count"),
    "Calls with violations": ("violations", "violating", "count"),
    "Kinds of violations": ("violations", "kind_count", "count"),
    "Calls asked for": ("unrun", "asked_for", "count"),
    "Refused calls": ("unrun", "refused", "count"),
    "Calls awaiting approval": ("unrun", "awaiting", "count"),
    "Approved calls that did not run": ("unrun", "approved", "count"),
    "p50": ("latency", "p50_ms", "duration"),
    "p90": ("latency", "p90_ms", "duration"),
    "p95": ("latency", "p95_ms", "duration"),
    "p99": ("latency", "p99_ms", "duration"),
    "Tokens in": ("tokens", "prompt_tokens", "count"),
    "Tokens out": ("tokens", "completion_tokens", "count"),
    "Cache hits": ("tokens", "cache_hits", "count"),
    "Open, started in the range": ("open", "started_in_range", "count"),
    "Open now": ("open", "open", "count"),
    "Overdue": ("open", "overdue", "count"),
    "Presumed crashed": ("open", "crashed", "count"),
    "Orphan ends": ("open", "orphan", "count"),
    "Repeated calls": ("repeats", "repeated_calls", "count"),
    "Loops": ("repeats", "loops", "count"),
    "Versions published": ("registry", "published", "count"),
    "Alerts fired": ("alerts", "fired", "count"),
    "Unresolved alerts": ("alerts", "unresolved", "count"),
    "Dropped events": ("completeness", "lost", "count"),
    "Sequence gaps": ("completeness", "missing", "count"),
    "Rejected events waiting": ("completeness", "inbox", "count"),
    "Silent producers": ("completeness", "silent", "count"),
    "Exports": ("exports", "exports", "count"),
}
"""Every single figure of a report, by name: its section, its member and its unit."""


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[dict[str, Any]]:
    """The figures that differ, each `{figure, unit, before, now}`; None means unknown."""
    changed = []
    for name, (section, member, unit) in HEADLINES.items():
        then, today = before.get(section, {}).get(member), now.get(section, {}).get(member)
        if then != today:
            changed.append({"figure": name, "unit": unit, "before": then, "now": today})
    return changed
