"""The list of tools: registered ones with their current state, and names only seen in calls."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import islice
from typing import Any
from uuid import UUID

from audit.queries.unrun import Unrun, unrun_calls
from audit.sql.run import rows
from tools_registry.changes import STATE_AFTER
from tools_registry.models import State

WITHIN = timedelta(hours=24)
"""How far back calls are counted, in whole hours."""
_AHEAD = timedelta(days=2)
OBSERVED, UNCALLED = "observed", "uncalled"


@dataclass(frozen=True, slots=True)
class Called:
    """A tool's calls of the last day: how many started, and how many of them failed."""

    calls: int
    failed: int
    last_hour_at: datetime


@dataclass(frozen=True, slots=True)
class ToolFilter:
    """Which tools; '' means any. `state` is a version's, or `draft`, `observed` or `uncalled`."""

    text: str = ""
    """A text that the name contains, ignoring case."""
    state: str = ""
    tag: str = ""


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool in the list. Of an observed tool, only its name and its calls are known."""

    name: str
    last_seen_at: datetime | None
    """The hour of the newest known call."""
    called: Called | None
    """Its calls within the last day."""
    id: UUID | None = None
    current_number: int = 0
    """0: nothing is published yet."""
    state: State | None = None
    has_draft: bool = False
    description: str = ""
    tags: tuple[str, ...] = ()
    owner: str = ""
    trusted: bool = False
    ephemeral: bool = False
    on_collision: str = "throw"
    unrun: Unrun | None = None
    """Its calls of the last day that did not run."""


def list_tools(wanted: ToolFilter, now: datetime, *, after: str, size: int) -> list[ListedTool]:
    """At most `size` tools after a name, in the order of code points. Four statements."""
    called = called_tools(now)
    started = {name: one.calls for name, one in called.items()}
    unrun = unrun_calls(_since(now), now + _AHEAD, started).tools
    parameters = {
        "after": after,
        "text": wanted.text,
        "tag": wanted.tag,
        "state": wanted.state,
        "limit": size,
        "called": list(called) if wanted.state == UNCALLED else [],
    }
    registered: list[ListedTool] = []
    observed: list[ListedTool] = []
    if wanted.state != OBSERVED:
        registered = [
            _registered(row, called.get(row[1])) for row in rows("registered_tools", parameters)
        ]
    if not wanted.tag and wanted.state in ("", OBSERVED):
        observed = [
            ListedTool(name, _newest(last, called.get(name)), called.get(name))
            for name, last in rows("observed_tools", parameters)
        ]
    in_order = merge(registered, observed, key=lambda tool: tool.name)
    return [replace(tool, unrun=unrun.get(tool.name)) for tool in islice(in_order, size)]


def called_tools(now: datetime) -> dict[str, Called]:
    """The tools that were called in the last 24 whole hours, by name. One statement."""
    since = _since(now)
    last_day = (now + _AHEAD).astimezone(UTC).date()
    tool_rows = rows(
        "called_tools", {"since": since, "first_day": since.date(), "last_day": last_day}
    )
    return {name: Called(calls, failed, last) for name, calls, failed, last in tool_rows}


def expired_tools(since: datetime) -> list[UUID]:
    """Ephemeral tools that were neither changed nor called since then. One statement."""
    return [tool_id for (tool_id,) in rows("expired_tools", {"since": since})]


def _since(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) - WITHIN


def _registered(row: tuple[Any, ...], called: Called | None) -> ListedTool:
    tool_id, name, number, tags, owner, description, *flags, kind, has_draft, last = row
    trusted, ephemeral, on_collision = flags
    return ListedTool(
        name=name,
        last_seen_at=_newest(last, called),
        called=called,
        id=tool_id,
        current_number=number,
        state=STATE_AFTER[kind] if kind else State.PUBLISHED if number else None,
        has_draft=has_draft,
        description=description or "",
        tags=tuple(tags),
        owner=owner,
        trusted=bool(trusted),
        ephemeral=bool(ephemeral),
        on_collision=on_collision or "throw",
    )


def _newest(last_seen_at: datetime | None, called: Called | None) -> datetime | None:
    if called is None:
        return last_seen_at
    return max(called.last_hour_at, last_seen_at or called.last_hour_at)
