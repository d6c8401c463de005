"""The timeline of an incident: what happened, in order, as JSON values and in words. Pure.

It has no payload and nothing that quotes one: no messages of errors, no reasons of decisions, no
values of violations. Those are in the events of the bundle. An item has an instant, a kind, and
members by its kind; docs/evidence.md lists them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from audit.queries.decisions import WORDS
from audit.show.figures import counted, duration
from audit.show.reasons import GUARD_OUTCOMES

FORMAT: Final = "tooltrail-incident/1"
KINDS: Final = (
    *("published", "decided", "started", "violated", "ended"),
    *("fired", "acknowledged", "resolved", "noted", "held"),
)
"""The kinds of items, in the order of those of one instant."""
_RANK: Final = {kind: place for place, kind in enumerate(KINDS)}

type Item = Mapping[str, Any]
"""One thing that happened: `at`, `kind`, and members by its kind."""


@dataclass(frozen=True, slots=True)
class Head:
    """What the timeline is of. Instants are RFC 3339 in UTC."""

    id: str
    title: str
    reason: str
    query: str
    made_at: str
    made_by: str
    start: str
    """The first thing that happened in the traces."""
    end: str
    """Just behind the last one."""


class Words(NamedTuple):
    """An item as people read it."""

    what: str
    subject: str
    """A text of an agent or of a person: a tool, a rule, an author. Hostile."""
    detail: str
    """The same."""
    tone: str


def document(head: Head, traces: Sequence[Mapping[str, Any]], items: Iterable[Item]) -> bytes:
    """The whole timeline as a JSON document, its items in order."""
    whole = {
        "format": FORMAT,
        "id": head.id,
        "title": head.title,
        "reason": head.reason,
        "query": head.query,
        "made_at": head.made_at,
        "made_by": head.made_by,
        "from": head.start,
        "to": head.end,
        "traces": list(traces),
        "items": in_order(items),
    }
    return json.dumps(whole, ensure_ascii=False, indent=1).encode() + b"\n"


def in_order(items: Iterable[Item]) -> list[Item]:
    """The items by their instants; those of one instant as they follow from each other."""
    # Without its Z, an instant of a whole second is a prefix of the others of that second.
    return sorted(items, key=lambda item: (item["at"].rstrip("Z"), _RANK[item["kind"]]))


def words(item: Item) -> Words:
    """An item in words."""
    return _WORDS[item["kind"]](item)


def _started(item: Item) -> Words:
    by = f"by {item['agent']}" if item["agent"] else ""
    return Words("Call started", _versioned(item), by, "")


def _ended(item: Item) -> Words:
    parts = []
    if item["duration_ms"] is not None:
        parts.append(f"after {duration(round(item['duration_ms'] * 1000))}")
    if item["state"] == "failed":
        parts.append(" ".join(filter(None, (item["error_type"], item["error_code"]))))
    if item["violations"]:
        parts.append(counted(item["violations"], "violation"))
    tone = "violation" if item["violations"] and item["state"] == "ok" else item["state"]
    return Words(
        f"Call {_ENDS.get(item['state'], item['state'])}", _versioned(item), ", ".join(parts), tone
    )


def _decided(item: Item) -> Words:
    decision = item["decision"]
    tone = {"approved": "ok", "awaiting": "open"}.get(decision, "refused")
    by = f"by {item['by']}" if item["by"] else ""
    requester = f"for {item['requested_by']}" if item["requested_by"] else ""
    detail = ", ".join(filter(None, (by, requester)))
    return Words(f"Call {WORDS[decision]}", _versioned(item), detail, tone)


def _violated(item: Item) -> Words:
    done = GUARD_OUTCOMES.get(item["outcome"], item["outcome"])
    detail = f"{item['code']} at {item['path']}; {done}, found by the {item['found_by']}"
    return Words("Schema violated", _versioned(item), detail, "violation")


def _published(item: Item) -> Words:
    subject = f"{item['tool_name']} v{item['number']}"
    return Words("Version published", subject, f"by {item['by']}" if item["by"] else "", "")


def _fired(item: Item) -> Words:
    what = "Warning" if item["severity"] == "warning" else "Alert"
    return Words(f"{what} fired", item["rule"], item["title"], "failed")


def _answered(item: Item) -> Words:
    return Words(f"Alert {item['kind']}", item["rule"], f"by {item['by']}", "ok")


def _noted(item: Item) -> Words:
    label = f"{item['label']}: " if item["label"] else ""
    return Words(f"Note about the {item['about']}", item["by"], f"{label}{item['text']}", "")


def _held(item: Item) -> Words:
    return Words("Legal hold set", item["name"], f"by {item['by']}", "ok")


def _versioned(item: Item) -> str:
    version = item["tool_version"]
    return f"{item['tool_name']}@{version[:12]}" if version else item["tool_name"]


_ENDS: Final = {"ok": "completed", "failed": "failed", "cancelled": "cancelled"}
_WORDS: Final = {
    "started": _started,
    "ended": _ended,
    "decided": _decided,
    "violated": _violated,
    "published": _published,
    "fired": _fired,
    "acknowledged": _answered,
    "resolved": _answered,
    "noted": _noted,
    "held": _held,
}
