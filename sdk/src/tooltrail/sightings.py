"""Remembers which definitions of tools were reported, so that only changed lists are sent.

Owns the event `toolDefinitions` of a list, and what this process has reported of each server.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from tooltrail.capture import encode_json
from tooltrail.events import DEFINITIONS_MAX, Party, ToolDefinitions, name_of_definition
from tooltrail.redact import opaque
from tooltrail.tools.digest import definition_digest

TYPE: Final = "toolDefinitions"
_TOOLS_MAX: Final = 10 * DEFINITIONS_MAX
_PART_BYTES: Final = 512 * 1024

type Peer = str | Party | Mapping[str, Any] | BaseModel
"""A server or a client: its name, or an object with `name` and `version`, as MCP's serverInfo."""


class Sightings:
    """What one process has reported. May be used from any thread."""

    def __init__(self) -> None:
        self._digests: dict[tuple[str, str], dict[str, str]] = {}

    def changed(self, server: Peer, client: Peer | None, tools: Any, at: datetime) -> list[bytes]:
        """The events of a list as JSON texts; none if this process has reported all of it.

        `tools` are plain JSON, pydantic models of MCP, or the result of `tools/list`. A long list
        becomes several events of one moment. Raises ValueError or TypeError for what is no list of
        definitions.
        """
        served = [_plain(tool) for tool in _listed(tools)]
        parties = {"server": _party(server), "client": None if client is None else _party(client)}
        key = str(parties["server"]), str(parties["client"])
        new = {str(name_of_definition(tool)): definition_digest(tool) for tool in served}
        known = self._digests.get(key, {})
        if new.items() <= known.items():
            return []
        shared = {"type": TYPE, "seen_at": at.isoformat(), **parties}
        shared = {name: value for name, value in shared.items() if value is not None}
        texts = []
        for part in _parts(served):
            ToolDefinitions.model_validate(shared | {"tools": part})
            texts.append(encode_json(shared | {"tools": part}))
        # A hostile server may name new tools for ever, and itself.
        if sum(map(len, self._digests.values())) + len(new.keys() - known) > _TOOLS_MAX:
            self._digests.clear()
            known = {}
        self._digests[key] = {**known, **new}
        return texts

    def forget(self) -> None:
        """Report everything again, because a list could not be kept."""
        self._digests.clear()


def _parts(tools: list[Any]) -> Iterator[list[Any]]:
    """The tools in lists that fit into a line of the contract."""
    part: list[Any] = []
    size = 0
    for tool in tools:
        length = len(encode_json(tool))
        if part and (len(part) == DEFINITIONS_MAX or size + length > _PART_BYTES):
            yield part
            part, size = [], 0
        part.append(tool)
        size += length
    yield part


def _listed(tools: Any) -> list[Any]:
    listed: Any = tools
    if isinstance(tools, Mapping):
        listed = tools.get("tools")
    elif hasattr(tools, "tools"):
        listed = tools.tools
    return list(listed)


def _plain(tool: Any) -> Any:
    """A definition as it was served: members that are absent stay absent."""
    if isinstance(tool, BaseModel):
        return tool.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return to_jsonable_python(tool, fallback=opaque)


def _party(peer: Peer) -> dict[str, Any]:
    if isinstance(peer, str):
        return {"name": peer}
    members = peer if isinstance(peer, Mapping) else vars(peer)
    party = {name: members[name] for name in ("name", "version") if members.get(name)}
    try:
        return Party.model_validate(party).model_dump(exclude_none=True)
    except ValidationError as error:
        raise ValueError(
            f"a server or client needs a name: {error.error_count()} errors"
        ) from error
