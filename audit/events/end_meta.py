"""What ends say of themselves that the index does not keep: sources and routing.

Pure. `output.meta.source_counts` says how many results came of each source, `routing` which
choices were made (AI Core contracts: a profile, a space). Both are the tool's own: whatever
is not of their shape is passed over.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

_SHOWN = 80
"""Characters of a name or a value that are told apart."""
_MEMBERS = 8
"""Of one call's routing or sources, that are looked at."""


class _Output(msgspec.Struct):
    meta: Any = None


class _End(msgspec.Struct):
    output: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class Ended:
    """A completed call, and its end as it was received; None if it has been erased."""

    tool_name: str
    duration_us: int
    tokens: int
    raw: bytes | None


@dataclass(frozen=True, slots=True)
class Route:
    """A way calls of a tool were routed; '' where routing says no profile or space."""

    tool_name: str
    profile: str
    space: str
    more: str
    """All other choices, as `name value`."""


@dataclass(slots=True)
class Routed:
    """Calls routed that way."""

    durations_us: list[int] = field(default_factory=list)
    tokens: int = 0

    @property
    def calls(self) -> int:
        """How many."""
        return len(self.durations_us)

    def duration_ms(self, share: float) -> float:
        """The milliseconds within which this share of them took, exactly."""
        ordered = sorted(self.durations_us)
        return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] / 1000


@dataclass(slots=True)
class Source:
    """What came of one source of a tool."""

    calls: int = 0
    results: float = 0

    @property
    def mean(self) -> float:
        """Results a call."""
        return self.results / self.calls


@dataclass(slots=True)
class Told:
    """What some ends say."""

    calls: int = 0
    erased: int = 0
    routes: dict[Route, Routed] = field(default_factory=dict)
    sources: dict[tuple[str, str], Source] = field(default_factory=dict)
    """By tool and source."""


def tell(ends: Iterable[Ended]) -> Told:
    """Sum up what these ends say."""
    told = Told()
    for end in ends:
        told.calls += 1
        if end.raw is None:
            told.erased += 1
            continue
        meta = _meta(end.raw)
        routing, counts = meta.get("routing"), meta.get("source_counts")
        if isinstance(routing, dict) and routing:
            routed = told.routes.setdefault(_route(end.tool_name, routing), Routed())
            routed.durations_us.append(end.duration_us)
            routed.tokens += end.tokens
        if isinstance(counts, dict):
            for name, count in list(counts.items())[:_MEMBERS]:
                if isinstance(count, int | float) and not isinstance(count, bool):
                    source = told.sources.setdefault((end.tool_name, name[:_SHOWN]), Source())
                    source.calls += 1
                    source.results += count
    return told


def _meta(raw: bytes) -> dict[str, Any]:
    try:
        output = msgspec.json.decode(raw, type=_End).output
        meta = msgspec.json.decode(output, type=_Output).meta
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return {}  # no object, or JSON that is right and that no parser here takes
    return meta if isinstance(meta, dict) else {}


def _route(tool_name: str, routing: dict[str, Any]) -> Route:
    given = [item for item in routing.items() if item[1] is not None][:_MEMBERS]
    known = {name: _text(value) for name, value in given}
    profile, space = known.pop("profile", ""), known.pop("space", "")
    more = ", ".join(f"{name[:_SHOWN]} {value}" for name, value in sorted(known.items()))
    return Route(tool_name, profile, space, more)


def _text(value: Any) -> str:
    """A choice as text; what holds several values is not told apart."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)[:_SHOWN] if isinstance(value, str | int | float) else "…"
