"""Random histories of calls with a planted cause of failures, or without any."""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from tests.support.factories import make_call

CAUSES: Final = ("version", "agent on a host", "model with a version")
CALLS: Final = 1_500
_VALUES: Final = {
    "tool": ("search", "fetch", "book", "pay"),
    "version": ("1", "2", "3", "4"),
    "agent": ("planner", "writer", "critic", "buyer", "clerk"),
    "model": ("gpt-5", "claude-5", "llama-5", "mistral-5"),
    "producer": ("host-1", "host-2", "host-3", "host-4", "host-5"),
    "collection": ("laws", "news", "notes"),
}
_PLANTED: Final = {
    "version": ("version",),
    "agent on a host": ("agent", "producer"),
    "model with a version": ("model", "version"),
}


@dataclass(frozen=True)
class History:
    """The events of a history, and the cause of its failures: dimension and value of each part."""

    events: list[dict[str, Any]]
    cause: frozenset[tuple[str, str]]


def history(seed: int, cause: str | None, end: datetime) -> History:
    """A history of a day until `end`: traces of one agent, model and host, with rare failures.

    One of twenty calls fails, one of two with the cause.
    """
    rng = random.Random(f"{seed} {cause}")
    planted = {name: rng.choice(_VALUES[name]) for name in _PLANTED[cause]} if cause else {}
    events: list[dict[str, Any]] = []
    place = 0
    while len(events) < 2 * CALLS:
        shared = {name: rng.choice(_VALUES[name]) for name in ("agent", "model", "producer")}
        trace_id = f"trace-{rng.getrandbits(48):x}"
        began_at = end - timedelta(seconds=rng.randrange(600, 86_000))
        for number in range(rng.randrange(1, 9)):
            own = {name: rng.choice(_VALUES[name]) for name in ("tool", "version", "collection")}
            values = shared | own
            is_hit = bool(planted) and all(values[name] == planted[name] for name in planted)
            is_bad = rng.random() < (0.5 if is_hit else 0.05)
            error = {"type": rng.choice(("TIMEOUT", "UPSTREAM")), "message": "no"}
            call = make_call(
                invocation_id=str(UUID(int=rng.getrandbits(128), version=4)),
                started_at=began_at + timedelta(seconds=number),
                duration_ms=rng.lognormvariate(4, 1),
                trace_id=trace_id,
                tool_name=values["tool"],
                tool_version=values["version"],
                collection_id=values["collection"],
                context={"agent": values["agent"], "model": values["model"]},
                is_error=is_bad,
                output={"status": "error", "error": error}
                if is_bad
                else {"status": "ok", "data": {}, "meta": {"cache_hit": rng.random() < 0.2}},
            )
            for event in call:
                event["producer_id"], event["producer_seq"] = values["producer"], place
                place += 1
            events += call
    return History(events, frozenset(planted.items()))
