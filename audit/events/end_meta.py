"""Metadata in end events that the index does not keep: sources and routing.

Pure. `output.meta.source_counts` has the number of results from each source. `routing` has the
choices that were made (AI Core contracts: a profile, a space). The tool sets both, so values of
another shape are ignored.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

_SHOWN = 80
"""Names and values are compared and shown up to this many characters."""
_MEMBERS = 8
"""At most this many members of one call's routing or sources are read."""


class _Output(msgspec.Struct):
    meta: Any = None


class _End(msgspec.Struct):
    output: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class Ended:
    """A completed call. `raw` is its end event as received; None if it has been erased."""

    tool_name: str
    duration_us: int
    tokens: int
    raw: bytes | None


@dataclass(frozen=True, slots=True)
class Route:
    """A route of a tool's calls. `profile` and `space` are '' if routing does not have them."""

    tool_name: str
    profile: str
    space: str
    more: str
    """All other choices, as `name value`, separated by commas."""


@dataclass(slots=True)
class Routed:
    """The calls of one route."""

    durations_us: list[int] = field(default_factory=list)
    tokens: int = 0

    @property
    def calls(self) -> int:
        """Number of calls."""
        return len(self.durations_us)

    def duration_ms(self, share: float) -> float:
        """The exact duration in milliseconds within which this share of the calls ended."""
        ordered = sorted(self.durations_us)
        return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] / 1000


@dataclass(slots=True)
class Source:
    """Calls and results of one source of a tool."""

    calls: int = 0
    results: float = 0

    @property
    def mean(self) -> float:
        """Mean number of results per call."""
        return self.results / self.calls


@dataclass(slots=True)
class EndMetadata:
    """The metadata of several ends, summed up."""

    calls: int = 0
    erased: int = 0
    routes: dict[Route, Routed] = field(default_factory=dict)
    sources: dict[tuple[str, str], Source] = field(default_factory=dict)
    """Keyed by tool name and source."""


def summarize(ends: Iterable[Ended]) -> EndMetadata:
    """Sum up the metadata of these ends."""
    summary = EndMetadata()
    for end in ends:
        summary.calls += 1
        if end.raw is None:
            summary.erased += 1
            continue
        meta = _meta(end.raw)
        routing, counts = meta.get("routing"), meta.get("source_counts")
        if isinstance(routing, dict) and routing:
            routed = summary.routes.setdefault(_route(end.tool_name, routing), Routed())
            routed.durations_us.append(end.duration_us)
            routed.tokens += end.tokens
        if isinstance(counts, dict):
            for name, count in list(counts.items())[:_MEMBERS]:
                if isinstance(count, int | float) and not isinstance(count, bool):
                    source = summary.sources.setdefault((end.tool_name, name[:_SHOWN]), Source())
                    source.calls += 1
                    source.results += count
    return summary


def _meta(raw: bytes) -> dict[str, Any]:
    try:
        output = msgspec.json.decode(raw, type=_End).output
        meta = msgspec.json.decode(output, type=_Output).meta
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return {}  # not an object, or valid JSON that no parser here accepts
    return meta if isinstance(meta, dict) else {}


def _route(tool_name: str, routing: dict[str, Any]) -> Route:
    given = [item for item in routing.items() if item[1] is not None][:_MEMBERS]
    known = {name: _text(value) for name, value in given}
    profile, space = known.pop("profile", ""), known.pop("space", "")
    more = ", ".join(f"{name[:_SHOWN]} {value}" for name, value in sorted(known.items()))
    return Route(tool_name, profile, space, more)


def _text(value: Any) -> str:
    """A choice as text; all arrays and objects become the same text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)[:_SHOWN] if isinstance(value, str | int | float) else "…"
