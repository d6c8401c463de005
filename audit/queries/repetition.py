"""What identical calls cost: loops, what a cache would have saved, whether results differ.

Pure. Identical calls have the same tool and the same call id, which is the hash of tool and
arguments. All but the first are repeats. Their time and tokens are wasted if the result of the
first would have been enough.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec

from audit.events.outputs import is_of_mcp, mcp_result

LOOP = 3
"""This many identical calls in one trace are a loop."""

ARGUMENTS_SHOWN = 160
"""Characters of a repeat's arguments that are listed."""

Verdict = Literal["same", "different", "unknown"]
"""All compared results are the same, or they differ, or fewer than two are known."""


@dataclass(frozen=True, slots=True)
class InTrace:
    """Identical calls in one trace. Durations are microseconds, 0 for a call without an end."""

    tool_name: str
    call_id: str
    trace_id: str
    calls: int
    failed: int
    cache_hits: int
    duration_us: int
    tokens: int
    first_at: datetime
    last_at: datetime
    first_duration_us: int
    first_tokens: int

    @property
    def wasted_us(self) -> int:
        """The duration of all calls but the first."""
        return self.duration_us - self.first_duration_us

    @property
    def wasted_tokens(self) -> int:
        """The tokens of all calls but the first."""
        return self.tokens - self.first_tokens

    @property
    def is_loop(self) -> bool:
        """Whether there are enough calls for a loop."""
        return self.calls >= LOOP


@dataclass(frozen=True, slots=True)
class Repeat:
    """Identical calls in all traces of a range."""

    tool_name: str
    call_id: str
    traces: int
    calls: int
    failed: int
    cache_hits: int
    first_at: datetime
    last_at: datetime
    wasted_us: int
    """The duration of all calls but the first; `wasted_tokens` are their tokens."""
    wasted_tokens: int


def loops(in_traces: Iterable[InTrace]) -> list[InTrace]:
    """The loops, sorted by wasted time, the longest first."""
    wasteful = (one for one in in_traces if one.is_loop)
    return sorted(
        wasteful, key=lambda one: (-one.wasted_us, -one.calls, one.tool_name, one.trace_id)
    )


def repeats(in_traces: Iterable[InTrace]) -> list[Repeat]:
    """Identical calls of all traces together, the most frequent first, without single calls."""
    by_call: dict[tuple[str, str], list[InTrace]] = {}
    for one in in_traces:
        by_call.setdefault((one.tool_name, one.call_id), []).append(one)
    merged = [_together(each) for each in by_call.values()]
    return sorted(
        (one for one in merged if one.calls > 1),
        key=lambda one: (-one.calls, -one.wasted_us, one.tool_name, one.call_id),
    )


def compare(results: Sequence[bytes | None]) -> Verdict:
    """Whether these results are the same. None is an unknown result."""
    known = {result for result in results if result is not None}
    if len(results) - results.count(None) < 2:
        return "unknown"
    return "same" if len(known) == 1 else "different"


class _End(msgspec.Struct):
    output: Any = msgspec.UNSET
    output_type: Any = None
    otlp: Any = None


class _Start(msgspec.Struct):
    args: msgspec.Raw


def arguments_text(raw: bytes | None) -> str | None:
    """The beginning of a start event's arguments as one line; None if erased or unreadable."""
    if raw is None:
        return None
    try:
        args = bytes(msgspec.json.decode(raw, type=_Start).args)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None  # valid JSON that msgspec does not accept
    text = " ".join(args[: 4 * ARGUMENTS_SHOWN].decode(errors="replace").split())
    return text if len(text) <= ARGUMENTS_SHOWN else text[: ARGUMENTS_SHOWN - 1] + "…"


def result_digest(raw: bytes | None) -> bytes | None:
    """A hash of an end event's output; None if the event was erased or has no output.

    Of an envelope only `data` is hashed, as `meta` contains the duration, and of an MCP result
    only what the tool returned. The order of members makes no difference.
    """
    if raw is None:
        return None
    try:
        end = msgspec.json.decode(raw, type=_End)
        output = end.output
        if isinstance(output, dict) and "status" in output and "data" in output:
            output = output["data"]
        if is_of_mcp(end.output_type, end.otlp) and (result := mcp_result(output)) is not None:
            output = result.value if result.source else result.content
        if output is msgspec.UNSET or output is None:
            return None
        return hashlib.sha256(msgspec.json.encode(output, order="deterministic")).digest()
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None  # valid JSON that msgspec does not accept


def _together(each: Sequence[InTrace]) -> Repeat:
    first = min(each, key=lambda one: one.first_at)
    return Repeat(
        tool_name=first.tool_name,
        call_id=first.call_id,
        traces=len(each),
        calls=sum(one.calls for one in each),
        failed=sum(one.failed for one in each),
        cache_hits=sum(one.cache_hits for one in each),
        first_at=first.first_at,
        last_at=max(one.last_at for one in each),
        wasted_us=sum(one.duration_us for one in each) - first.first_duration_us,
        wasted_tokens=sum(one.tokens for one in each) - first.first_tokens,
    )
