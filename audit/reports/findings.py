"""The sentences at the top of a report: what needs attention, and what is fine. Pure."""

from typing import Any

from audit.reports.layout import Finding
from audit.show.figures import count, counted, share
from audit.show.tiles import points, relative

_MUCH = 0.1
"""A change of volume by at least this share is mentioned."""


def findings(all_figures: dict[str, Any]) -> list[Finding]:
    """The sentences, in the order of the report. There is at least one."""
    if not all_figures["volume"]["calls"]:
        statements = [Finding("No calls ended in this range.", "open")]
    else:
        statements = [*_reliability(all_figures), *_violations(all_figures), *_volume(all_figures)]
    return statements + _open(all_figures) + _completeness(all_figures)


def _reliability(all_figures: dict[str, Any]) -> list[Finding]:
    own = all_figures["reliability"]
    if not own["failed"]:
        return [Finding("No calls failed.", "ok")]
    text = f"{share(own['error_rate'])} of calls failed"
    change = points(own["error_rate"], own["previous"])
    if change is not None and change.goodness != "other":
        text += f", {change.text} compared with the previous range"
    if own["errors"]:
        worst = own["errors"][0]
        kind = f" with {worst['error_type']}" if worst["error_type"] else ""
        text += f"; most often {worst['tool_name']}{kind}, {counted(worst['calls'], 'call')}"
    return [Finding(f"{text}.", "failed")]


def _violations(all_figures: dict[str, Any]) -> list[Finding]:
    own = all_figures["violations"]
    if not own["violating"]:
        return [Finding("No schema violations.", "ok")]
    text = f"{counted(own['violating'], 'call')} with schema violations"
    if own["new_count"]:
        are = "is" if own["new_count"] == 1 else "are"
        text += f", {own['new_count']:,} of {counted(own['kind_count'], 'kind')} {are} new"
    if own["kinds"]:
        worst = own["kinds"][0]
        text += f"; most often {worst['tool_name']} at {worst['path_pattern']}"
    return [Finding(f"{text}.", "violation")]


def _volume(all_figures: dict[str, Any]) -> list[Finding]:
    own = all_figures["volume"]
    change = relative(own["calls"], own["previous"], "count")
    if change is None or abs(own["calls"] / own["previous"] - 1) < _MUCH:
        return []
    text = f"Number of calls: {change.text} compared with the previous range ({change.before})."
    return [Finding(text, "open")]


def _open(all_figures: dict[str, Any]) -> list[Finding]:
    crashed = all_figures["open"]["crashed"]
    if not crashed:
        return []
    are = "is" if crashed == 1 else "are"
    return [Finding(f"{counted(crashed, 'open call')} {are} presumed crashed.", "failed")]


def _completeness(all_figures: dict[str, Any]) -> list[Finding]:
    own = all_figures["completeness"]
    if own["is_complete"]:
        return [Finding("No data loss detected.", "ok")]
    parts = [
        f"{count(own[name])} {words}"
        for name, words in (
            ("lost", "dropped events"),
            ("missing", "sequence gaps"),
            ("inbox", "rejected events waiting"),
        )
        if own[name]
    ]
    return [Finding(f"Data may be incomplete: {', '.join(parts)}.", "violation")]
