"""The sentences at the top of a report: what needs attention, and what is fine. Pure."""

from typing import Any

from audit.reports.layout import Look
from audit.show.figures import count, counted, share
from audit.show.tiles import points, relative

type Finding = tuple[str, Look]
"""A sentence and its style."""

_MUCH = 0.1
"""A change of volume by at least this share is mentioned."""


def findings(found: dict[str, Any]) -> list[Finding]:
    """The sentences, in the order of the report. There is at least one."""
    if not found["volume"]["calls"]:
        said: list[Finding] = [("No call ended in this range.", "open")]
    else:
        said = [*_reliability(found), *_violations(found), *_volume(found)]
    return said + _open(found) + _completeness(found)


def _reliability(found: dict[str, Any]) -> list[Finding]:
    own = found["reliability"]
    if not own["failed"]:
        return [("No call failed.", "ok")]
    text = f"{share(own['error_rate'])} of calls failed"
    change = points(own["error_rate"], own["previous"])
    if change is not None and change.goodness != "other":
        text += f", {change.text} against the range before"
    if own["errors"]:
        worst = own["errors"][0]
        kind = f" with {worst['error_type']}" if worst["error_type"] else ""
        text += f"; most often {worst['tool_name']}{kind}, {counted(worst['calls'], 'call')}"
    return [(f"{text}.", "failed")]


def _violations(found: dict[str, Any]) -> list[Finding]:
    own = found["violations"]
    if not own["violating"]:
        return [("Every output kept its schema.", "ok")]
    are = "breaks its" if own["violating"] == 1 else "break their"
    text = f"{counted(own['violating'], 'call')} {are} schema"
    if own["new_count"]:
        text += f", {own['new_count']:,} of {counted(own['kind_count'], 'kind')} never seen before"
    if own["kinds"]:
        worst = own["kinds"][0]
        text += f"; most often {worst['tool_name']} at {worst['path_pattern']}"
    return [(f"{text}.", "violation")]


def _volume(found: dict[str, Any]) -> list[Finding]:
    own = found["volume"]
    change = relative(own["calls"], own["previous"], "count")
    if change is None or abs(own["calls"] / own["previous"] - 1) < _MUCH:
        return []
    return [(f"{change.text} calls against the range before, {change.before}.", "open")]


def _open(found: dict[str, Any]) -> list[Finding]:
    crashed = found["open"]["crashed"]
    if not crashed:
        return []
    are = "is" if crashed == 1 else "are"
    return [(f"{counted(crashed, 'open call')} {are} presumed crashed.", "failed")]


def _completeness(found: dict[str, Any]) -> list[Finding]:
    own = found["completeness"]
    if own["is_complete"]:
        return [("Nothing says that anything was lost.", "ok")]
    parts = [
        f"{count(own[name])} {words}"
        for name, words in (
            ("lost", "events declared lost"),
            ("missing", "numbers missing"),
            ("inbox", "refused lines waiting"),
        )
        if own[name]
    ]
    return [(f"The record may be incomplete: {', '.join(parts)}.", "violation")]
