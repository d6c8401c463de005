"""Definitions of tools as their servers serve them: which are in force, and which are approved."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from audit.queries.time_range import TimeRange
from audit.sql.run import rows, rows_prepared

COUNTED_MAX: Final = 10_000
"""Calls under an unapproved definition that are counted; beyond, there are at least as many."""
HISTORY_MAX: Final = 100
SERVERS_SHOWN: Final = 20
UNKNOWN: Final = ""
"""The digest of a definition that changed too often to be recorded."""


@dataclass(frozen=True, slots=True)
class ServedDefinition:
    """A definition of a tool of one server."""

    id: UUID
    server: str
    tool_name: str
    digest: str
    state: str
    """`first` (in the server's first list, so no change), `pending` or `approved`."""
    first_seen_at: datetime
    last_seen_at: datetime
    sighting_count: int
    approved_at: datetime | None
    approved_by: str | None
    approval_reason: str | None
    withdrawn_at: datetime | None
    """When the last approval that was withdrawn was withdrawn; by whom and why."""
    withdrawn_by: str | None
    withdrawal_reason: str | None

    @property
    def is_pending(self) -> bool:
        """Whether it needs an approval and has none."""
        return self.state == "pending"


@dataclass(frozen=True, slots=True)
class ServedTool:
    """A tool of one server, and the definition in force now."""

    since: datetime
    server_version: str | None
    definition: ServedDefinition | None
    """In force; the last one that was recorded if it is unknown; None if none was."""
    server: str
    tool_name: str
    is_unknown: bool
    unapproved_calls: int
    """Calls since then, if it is not approved; at most `COUNTED_MAX`."""

    @property
    def is_unapproved(self) -> bool:
        """Whether what is in force is not approved, or unknown."""
        return self.is_unknown or (self.definition is not None and self.definition.is_pending)

    @property
    def may_be_approved(self) -> bool:
        """Whether what is in force is known and awaits an approval."""
        return not self.is_unknown and self.definition is not None and self.definition.is_pending


@dataclass(frozen=True, slots=True)
class DefinitionText:
    """A definition with its content."""

    served: ServedDefinition
    content: str
    """Canonical JSON."""

    @property
    def value(self) -> Any:
        """The content, parsed."""
        return json.loads(self.content)


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """From when on a definition of a tool was in force."""

    seen_at: datetime
    digest: str
    server_version: str | None
    client: str | None
    client_version: str | None
    ledger_index: int | None
    id: UUID | None
    state: str | None
    approved_at: datetime | None


@dataclass(frozen=True, slots=True)
class DefinitionInForce:
    """The definition of a call's tool that was in force on a server when the call started."""

    server: str
    digest: str
    since: datetime
    id: UUID | None
    """None if it is unknown."""
    is_unapproved: bool


@dataclass(frozen=True, slots=True)
class UnapprovedUse:
    """Calls that were made under a definition before it was approved; at most `COUNTED_MAX`."""

    calls: int
    first_at: datetime | None
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class ToolFilter:
    """Which tools to list. '' means any."""

    server: str = ""
    tool: str = ""
    only_unapproved: bool = False


@dataclass(frozen=True, slots=True)
class ToolsPage:
    """Tools by server and name, and the place of the last one if there are more."""

    tools: list[ServedTool]
    after: tuple[str, str] | None


def served_tools(
    wanted: ToolFilter, *, after: tuple[str, str] | None = None, size: int
) -> ToolsPage:
    """At most `size` tools that follow the place `after`: server and tool. One statement."""
    after_server, after_tool = after or ("", "")
    listed = rows(
        "served_tools",
        {
            "server": wanted.server,
            "tool": wanted.tool,
            "only_unapproved": wanted.only_unapproved,
            "after_server": after_server,
            "after_tool": after_tool,
            "count_limit": COUNTED_MAX,
            "row_limit": size + 1,
        },
    )
    tools = [_tool(row) for row in listed[:size]]
    is_more = len(listed) > size
    return ToolsPage(tools, (tools[-1].server, tools[-1].tool_name) if is_more else None)


def find_definition(pk: UUID) -> DefinitionText | None:
    """One definition of the scope's tenant; None if there is no such one."""
    return _text(rows("served_definition", {"id": pk}))


def definitions_of_server(server: str, ids: Iterable[UUID]) -> list[ServedDefinition]:
    """Those of some definitions that are of this server. One statement."""
    listed = rows("definitions_of_server", {"server": server, "ids": list(ids)})
    return [ServedDefinition(*row) for row in listed]


def definition_before(one: ServedDefinition) -> DefinitionText | None:
    """The definition with which one is compared: the last approved or first one of its tool."""
    parameters = {
        "server": one.server,
        "tool_name": one.tool_name,
        "digest": one.digest,
        "first_seen_at": one.first_seen_at,
    }
    return _text(rows("served_before", parameters))


def definition_history(server: str, tool_name: str) -> list[DefinitionChange]:
    """The newest changes of a tool of one server, at most `HISTORY_MAX`."""
    parameters = {"server": server, "tool_name": tool_name, "row_limit": HISTORY_MAX}
    return [DefinitionChange(*row) for row in rows("definition_history", parameters)]


def definitions_of_call(
    tool_name: str, started_at: datetime, server: str = ""
) -> list[DefinitionInForce]:
    """What was in force when a call started, by server, at most `SERVERS_SHOWN`. One statement,
    planned once.

    `server` is the name of the call's MCP server, if its events state it; the version may follow.
    Then the definition of that server counts alone, if it is known.
    """
    parameters = {
        "tool_name": tool_name,
        "started_at": started_at,
        "row_limit": SERVERS_SHOWN,
    }
    in_force = [DefinitionInForce(*row) for row in rows_prepared("definitions_of_call", parameters)]
    own = [one for one in in_force if f"{server} ".startswith(f"{one.server} ")]
    return own or in_force


def unapproved_use(one: ServedDefinition) -> UnapprovedUse:
    """The calls made under a definition before it was approved; none if it needs no approval."""
    if one.state == "first":
        return UnapprovedUse(0, None, None)
    parameters = {
        "server": one.server,
        "tool_name": one.tool_name,
        "digest": one.digest,
        "approved_at": one.approved_at,
        "count_limit": COUNTED_MAX,
    }
    return UnapprovedUse(*rows("unapproved_use", parameters)[0])


def unapproved_use_in(of: TimeRange) -> UnapprovedUse:
    """The calls of a range that were made under unapproved or unknown definitions, of any tool.

    What `is:unapproved` finds, as one count with its first and last time. One statement.
    """
    parameters = {
        "start": of.start,
        "end": of.end,
        "first_day": of.start.astimezone(UTC).date(),
        "last_day": of.end.astimezone(UTC).date(),
        "count_limit": COUNTED_MAX,
    }
    return UnapprovedUse(*rows("unapproved_use_in", parameters)[0])


def definitions_with_digest(tool_name: str, digests: Iterable[str | None]) -> dict[str, UUID]:
    """The ids of a tool's definitions that have these digests, by digest. At most one statement."""
    wanted = [each for each in digests if each]
    if not wanted:
        return {}
    return dict(rows("definitions_with_digest", {"tool_name": tool_name, "digests": wanted}))


def _tool(row: tuple[Any, ...]) -> ServedTool:
    server, tool_name, digest, since, server_version, pk, *served, calls = row
    return ServedTool(
        since=since,
        server_version=server_version,
        definition=None if pk is None else ServedDefinition(pk, *served),
        server=server,
        tool_name=tool_name,
        is_unknown=digest == UNKNOWN,
        unapproved_calls=calls,
    )


def _text(result: list[tuple[Any, ...]]) -> DefinitionText | None:
    if not result:
        return None
    *served, content = result[0]
    return DefinitionText(ServedDefinition(*served), content)
