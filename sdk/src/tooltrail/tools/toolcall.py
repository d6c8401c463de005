"""The record of one finished call, as a conversation's history keeps it.

Owns the rules for such a record. The host makes it, because the host knows the model's ids and
where results are. `tooltrail.trail` reports the execution itself.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, cast, runtime_checkable

from typing_extensions import TypeIs

from tooltrail.errors import InvalidInitialToolCallValue
from tooltrail.events import parse_instant
from tooltrail.tools.artifacts import SpooledArtifact
from tooltrail.tools.members import MISSING, MemberProblems


@runtime_checkable
class Media(Protocol):
    """Binary output of a tool, such as an image: its type, and its bytes on request."""

    @property
    def mime_type(self) -> str:
        """The media type, such as `image/png`."""

    def stream(self) -> Any:
        """Open the bytes for reading."""


Results = str | SpooledArtifact | list[SpooledArtifact] | Media | list[Media]
"""The result of a call: text, artifacts or media. Lists are not empty and hold one kind only."""


@dataclass(frozen=True, slots=True, init=False, eq=False)
class ToolCall:
    """One finished call: what the model requested and what it got. Read-only.

    - `args`: a mapping or the JSON text of an object; always stored as a mapping.
    - `created_at`, `updated_at`, `completed_at`: datetimes with offset, or RFC 3339 text.
    - `checksum`: the call id (`compute_call_id`). It is stored as given, not verified.
    - `payload`: opaque data of the provider. It needs `replay_compatibility`, which says who may
      get it back.
    - `from_artifact_tool`: the call was of an `ArtifactTool`.
    - `inline`: the model sees the whole result.

    Raises InvalidInitialToolCallValue; its cause names every member that is missing, unknown or
    invalid. Source: the ADK's `ToolCall`.
    """

    id: str
    tool: str
    args: dict[str, Any]
    checksum: str
    is_complete: bool
    is_error: bool
    results: Results
    created_at: datetime
    updated_at: datetime
    completed_at: datetime
    payload: Any
    replay_compatibility: str | None
    from_artifact_tool: bool
    inline: bool

    def __init__(
        self,
        *,
        id: str = MISSING,
        tool: str = MISSING,
        args: Mapping[str, Any] | str = MISSING,
        checksum: str = MISSING,
        is_complete: bool = MISSING,
        is_error: bool = MISSING,
        results: Results = MISSING,
        created_at: datetime | str = MISSING,
        updated_at: datetime | str = MISSING,
        completed_at: datetime | str = MISSING,
        payload: Any = None,
        replay_compatibility: str | None = None,
        from_artifact_tool: bool | None = None,
        inline: bool | None = None,
        **unknown: Any,
    ) -> None:
        problems = _CallProblems(InvalidInitialToolCallValue)
        for member in unknown:
            problems.add(member, "is not a member of a tool call", "unknown")
        if replay_compatibility is not None:
            problems.text("replay_compatibility", replay_compatibility)
        elif payload is not None:
            problems.add("payload", "needs replay_compatibility next to it")
        members = {
            "id": problems.text("id", id),
            "tool": problems.text("tool", tool),
            "args": problems.args(args),
            "checksum": problems.text("checksum", checksum),
            "is_complete": problems.flag("is_complete", is_complete),
            "is_error": problems.flag("is_error", is_error),
            "results": problems.results(results),
            "created_at": problems.instant("created_at", created_at),
            "updated_at": problems.instant("updated_at", updated_at),
            "completed_at": problems.instant("completed_at", completed_at),
            "payload": payload,
            "replay_compatibility": replay_compatibility,
            "from_artifact_tool": problems.flag("from_artifact_tool", from_artifact_tool),
            "inline": problems.flag("inline", inline),
        }
        problems.raise_any()
        for name, value in members.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def is_tool_call(value: object) -> TypeIs["ToolCall"]:
        """Whether the value is a ToolCall. A mapping of the same shape is not."""
        return isinstance(value, ToolCall)


class _CallProblems(MemberProblems):
    """The checks that only a call's members need."""

    def args(self, value: Any) -> dict[str, Any]:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                value = None
        if self.is_given("args", value):
            if isinstance(value, Mapping):
                return deepcopy(dict(value))
            self.add("args", "must be a mapping or the JSON text of an object")
        return {}

    def results(self, value: Any) -> Results:
        if self.is_given("results", value) and not _are_results(value):
            self.add("results", "must be a text, artifacts or media, all of one kind")
        return cast("Results", value)

    def instant(self, member: str, value: Any) -> datetime:
        if self.is_given(member, value):
            try:
                return parse_instant(value)
            except ValueError as error:
                self.add(member, f"must be a time: {error}")
        return cast("datetime", None)  # raise_any raises later


def _are_results(value: Any) -> bool:
    if isinstance(value, str | SpooledArtifact | Media):
        return True
    return (
        isinstance(value, list)
        and bool(value)
        and any(all(isinstance(each, kind) for each in value) for kind in (SpooledArtifact, Media))
    )
