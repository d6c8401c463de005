"""Gathers the figures of a report: those that pages and API show for the range at one moment.

Nothing is computed here: each figure comes from the query of the page with the same name, so a
report cannot differ from the pages. The document is JSON and is stored unchanged. Lists hold only
the worst or most frequent items, next to the total count. `format` is raised when the meaning of a
member changes, because stored reports stay as they are.
"""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from audit.exports import latency as latency_export
from audit.exports import repeats
from audit.exports import violations as violation_export
from audit.queries.alerts import alerts_of
from audit.queries.latency import SHARES, Latency, ToolFilter, latency
from audit.queries.losses import Losses, losses
from audit.queries.open_list import COUNT_LIMIT
from audit.queries.over_time import (
    Figures,
    OverTime,
    has_figures_before,
    over_time,
    started_calls,
)
from audit.queries.polling import polling_tools
from audit.queries.repeats import CALLS, find_repeats
from audit.queries.time_range import TimeRange
from audit.queries.unrun import Unrun, unrun_calls
from audit.queries.violations import ViolationFilter, violations
from audit.reports.callers import caller_figures
from audit.reports.costs import cost_figures
from audit.reports.queries import exports_made, registry_changes
from audit.show.tiles import ToolRow, worst_first
from config.instants import iso

FORMAT = 1
TOOLS, VERSIONS, ERRORS, KINDS = 50, 50, 25, 50
"""The most rows of each list: the worst or most frequent."""
REPEATS, PUBLISHED, EXPORTS, PRODUCERS, RULES = 20, 100, 100, 50, 50


def gather(of: TimeRange, now: datetime) -> dict[str, Any]:
    """The figures of a range, as the pages would show them now. About 30 statements.

    Instants are RFC 3339 in UTC, durations are in milliseconds, shares are from 0 to 1. Unknown
    values are null.
    """
    series = over_time(of)
    spent = latency(of, ToolFilter())
    before = series.previous.calls > 0 and has_figures_before(of.previous.start)
    previous = series.previous if before else None
    lost = losses(of, now)
    return {
        "format": FORMAT,
        "at": iso(now),
        "is_over": of.end <= now,
        "volume": _volume(series, previous),
        "reliability": _reliability(series, previous, spent),
        "violations": _violations(of, series, previous),
        "unrun": _unrun(series),
        "latency": _latency(spent, previous),
        "tokens": {
            "prompt_tokens": series.total.prompt_tokens,
            "completion_tokens": series.total.completion_tokens,
            "cache_hits": spent.total.cache_hits,
            "previous": previous and previous.tokens,
        },
        "costs": cost_figures(of),
        "callers": caller_figures(of),
        "open": {
            "started_in_range": series.total.open,
            "open": lost.open.open,
            "running": lost.open.running,
            "overdue": lost.open.overdue,
            "crashed": lost.open.crashed,
            "orphan": lost.open.orphan,
            "counted_up_to": COUNT_LIMIT,
        },
        "repeats": _repeats(of),
        "registry": _registry(of),
        "alerts": _alerts(of),
        "completeness": _completeness(lost),
        "exports": _exports(of),
    }


def _volume(series: OverTime, previous: Figures | None) -> dict[str, Any]:
    return {
        "calls": series.total.calls,
        "tools": sum(1 for tool in series.tools.values() if tool.total.calls),
        "previous": previous and previous.calls,
        "step": series.of.step_name,
        "parts": [
            {
                "from": iso(start),
                "to": iso(end),
                "calls": part.calls,
                "failed": part.failed,
                "violating": part.violating,
            }
            for (start, end), part in zip(series.of.parts, series.parts, strict=True)
        ],
    }


def _reliability(series: OverTime, previous: Figures | None, spent: Latency) -> dict[str, Any]:
    tools = worst_first(series)
    errors = sorted(spent.errors.items(), key=lambda item: (-item[1], item[0]))
    return {
        "failed": series.total.failed,
        "error_rate": series.total.error_rate,
        "previous": previous and previous.error_rate,
        "tools": [_tool(tool) for tool in tools[:TOOLS]],
        "tool_count": len(tools),
        "errors": [
            {"tool_name": tool, "error_type": error or None, "calls": calls}
            for (tool, error), calls in errors[:ERRORS]
        ],
        "error_count": len(errors),
    }


def _tool(tool: ToolRow) -> dict[str, Any]:
    return {
        "tool_name": tool.name,
        "calls": tool.calls,
        "failed": tool.failed,
        "error_rate": tool.error_rate,
        "violating": tool.violating,
        "violation_rate": tool.violation_rate,
        "p50_ms": tool.p50_ms,
        "p95_ms": tool.p95_ms,
    }


def _violations(of: TimeRange, series: OverTime, previous: Figures | None) -> dict[str, Any]:
    broken = violations(of, ViolationFilter())
    return {
        "violations": series.total.violations,
        "violating": series.total.violating,
        "violation_rate": series.total.violation_rate,
        "previous": previous and previous.violation_rate,
        "of_arguments": broken.by_side.get("arguments", 0),
        "kinds": [violation_export.document(kind) for kind in broken.kinds[:KINDS]],
        "kind_count": len(broken.kinds),
        "new_count": sum(kind.first_ever_at >= of.start for kind in broken.kinds),
        "treatments": [
            {"strategy": one.strategy, "outcome": one.outcome, "violations": one.violations}
            for one in broken.treatments
            if one.side == "results"
        ],
    }


def _unrun(series: OverTime) -> dict[str, Any]:
    unrun = unrun_calls(series.of.start, series.of.end, started_calls(series))
    return {
        **_unrun_counts(unrun.total),
        "tools": [
            {"tool_name": name, **_unrun_counts(one)}
            for name, one in list(unrun.tools.items())[:TOOLS]
        ],
        "tool_count": len(unrun.tools),
    }


def _unrun_counts(one: Unrun) -> dict[str, Any]:
    return {
        "asked_for": one.asked_for,
        "refused": one.refused,
        "refusal_rate": one.refusal_rate,
        "awaiting": one.awaiting,
        "approved": one.approved,
    }


def _latency(spent: Latency, previous: Figures | None) -> dict[str, Any]:
    total = latency_export.figures_of(spent.total)
    versions = sorted(
        latency_export.documents(spent),
        key=lambda one: (-one["calls"], one["tool_name"], one["tool_version"] or ""),
    )
    return {
        **{f"{name}_ms": total[f"{name}_ms"] for name in SHARES},
        "previous": previous and previous.duration_ms(0.95),
        "versions": versions[:VERSIONS],
        "version_count": len(versions),
    }


def _repeats(of: TimeRange) -> dict[str, Any]:
    polling = polling_tools()
    summary = find_repeats(of, None, polling)
    listed = repeats.documents(summary)
    return {
        "since": iso(summary.since),
        "is_all": summary.is_all,
        "at_most": CALLS,
        "repeated": summary.repeated,
        "repeated_calls": summary.repeated_calls,
        "loops": summary.loop_count,
        "loop_calls": summary.loop_calls,
        "listed": [
            *[one for one in listed if one["kind"] == "loop"][:REPEATS],
            *[one for one in listed if one["kind"] == "repeat"][:REPEATS],
        ],
        "polling_tools": polling,
    }


def _registry(of: TimeRange) -> dict[str, Any]:
    published, count, new_tools = registry_changes(of, limit=PUBLISHED)
    return {
        "published": count,
        "new_tools": new_tools,
        "versions": [
            {
                "at": iso(one.at),
                "tool_name": one.tool_name,
                "number": one.number,
                "digest": one.digest,
                "by": one.by or None,
                "by_key": one.by_key or None,
            }
            for one in published
        ],
    }


def _alerts(of: TimeRange) -> dict[str, Any]:
    by_rule, rule_count, total = alerts_of(of, limit=RULES)
    return {
        **asdict(total),
        "rule_count": rule_count,
        "rules": [{"rule": name, **asdict(one)} for name, one in by_rule.items()],
    }


def _completeness(lost: Losses) -> dict[str, Any]:
    # Producers with missing events come first: cutting the list must not hide them.
    listed = sorted(
        lost.producers, key=lambda one: (-one.missing, -one.given_up, not one.is_silent)
    )
    return {
        "is_complete": lost.is_complete,
        "lost": lost.lost,
        "missing": lost.missing,
        "inbox": lost.inbox,
        "producers": lost.producer_count,
        "heard_lately": lost.heard_lately,
        "silent": lost.producer_count - lost.heard_lately,
        "gaps": [
            {"reason": gap.reason, "lost": gap.lost, "producers": gap.producers}
            for gap in lost.gaps
        ],
        "listed": [
            {
                "producer_id": one.producer_id,
                "last_heard_at": iso(one.last_heard_at),
                "missing": one.missing,
                "given_up": one.given_up,
                "is_silent": one.is_silent,
            }
            for one in listed[:PRODUCERS]
            if one.missing or one.given_up or one.is_silent
        ],
    }


def _exports(of: TimeRange) -> dict[str, Any]:
    exported, count = exports_made(of, limit=EXPORTS)
    return {
        "exports": count,
        "listed": [
            {
                "at": iso(one.at),
                "user": one.user_name,
                "what": one.verb.removesuffix(".export"),
                "form": one.form,
                "query": one.query,
            }
            for one in exported
        ],
    }
