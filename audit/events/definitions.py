"""Definitions of tools as a server serves them: what was seen, when, and by whom. Pure.

A definition is identified by the digest of its canonical text. It is text that a server controls,
which may be hostile: it is bounded here, stored as text, and never interpreted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from tooltrail.events import DEFINITIONS_MAX, ToolDefinitions, name_of_definition
from tooltrail.tools.canonical import canonical_stringify
from tooltrail.tools.digest import definition_digest

from audit.events.instants import microseconds

DEFINITION_MAX: Final = 256 * 1024
"""Bytes of one definition in its canonical form, as of a contract in the registry."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One tool as it was served. `text` is its canonical JSON, of which `digest` is the hash."""

    name: str
    digest: str
    text: str


@dataclass(frozen=True, slots=True)
class Sighting:
    """A list of tools that a server served to a client. `seen_us` is microseconds since 1970."""

    seen_us: int
    server: str
    server_version: str | None
    client: str | None
    client_version: str | None
    definitions: tuple[Definition, ...]


def sighting_of(event: ToolDefinitions) -> Sighting:
    """The sighting that an event reports. Raises ValueError if a definition is too large."""
    client = event.client
    return Sighting(
        seen_us=microseconds(event.seen_at),
        server=event.server.name,
        server_version=event.server.version,
        client=None if client is None else client.name,
        client_version=None if client is None else client.version,
        definitions=tuple(_definitions(event.tools)),
    )


def usable_tools(tools: Any) -> list[Any]:
    """The definitions in a list that the contract takes. Of two with one name, the first counts."""
    by_name: dict[str, Any] = {}
    for tool in tools[:DEFINITIONS_MAX] if isinstance(tools, list) else ():
        name = name_of_definition(tool)
        if name is not None and name not in by_name and _is_small(tool):
            by_name[name] = tool
    return list(by_name.values())


def _is_small(tool: Any) -> bool:
    return len(canonical_stringify(tool).encode()) <= DEFINITION_MAX


def _definitions(tools: Iterable[Any]) -> Iterable[Definition]:
    for place, tool in enumerate(tools):
        name, text = name_of_definition(tool), canonical_stringify(tool)
        if len(text.encode()) > DEFINITION_MAX:
            raise ValueError(f"tools[{place}] is larger than {DEFINITION_MAX // 1024} KiB")
        assert name is not None, "the contract checked it"
        yield Definition(name, definition_digest(tool), text)
