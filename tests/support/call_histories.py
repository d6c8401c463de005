"""Realistic random calls, for tests of figures over many calls."""

import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from tooltrail.events import Decision

from tests.support.factories import make_call, make_decision

MIDNIGHT = datetime.combine(datetime.now(UTC).date(), datetime.min.time(), UTC)

type Event = dict[str, Any]


def some_call(rng: random.Random, number: int) -> list[Event]:
    """A realistic call: most succeed, some fail, violate their schema, or never end."""
    kind = rng.choice(("ok", "ok", "ok", "failed", "broken", "open"))
    members: Event = {}
    if kind == "failed":
        error = {"type": rng.choice(("TIMEOUT", "UPSTREAM")), "message": "no"}
        members["output"] = {"status": "error", "error": error}
    elif kind == "ok":
        usage = {"prompt": rng.randrange(100), "completion": rng.randrange(100)}
        members["output"] = {
            "status": "ok",
            "data": {},
            "meta": {"cache_hit": rng.random() < 0.3, "token_usage": usage},
        }
    elif kind == "broken":
        violations = [
            {"path": f"$.items[{n}]", "code": "WRONG_TYPE", "expected": "a", "received": "b"}
            for n in range(rng.randrange(1, 4))
        ]
        members["guard"] = {
            "strategy": "throw",
            "outcome": rng.choice(("failed", "coerced")),
            "violations": violations,
        }
    events = make_call(
        invocation_id=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        # Few keys, so that writers meet on the same rows; on either side of midnight.
        started_at=MIDNIGHT - timedelta(hours=1) + timedelta(minutes=rng.randrange(120)),
        duration_ms=rng.lognormvariate(3, 2),
        tool_name=rng.choice(("a", "b", "ä")),
        tool_version=rng.choice(("1", "2")),
        trace_id=f"trace-{rng.randrange(4)}",
        run_id=rng.choice(("r1", "r2")),
        is_open=kind == "open",
        **members,
    )
    return [
        event | {"producer_id": f"p{number % 2}", "producer_seq": 2 * number + place}
        for place, event in enumerate(events)
    ]


def some_long_call(rng: random.Random, number: int) -> list[Event]:
    """A call that waits for input or works on, and then ends, is cancelled, or goes on."""
    start, end = make_call(
        invocation_id=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        started_at=MIDNIGHT - timedelta(minutes=rng.randrange(60)),
        duration_ms=rng.uniform(50_000, 90_000),
        tool_name=rng.choice(("a", "b")),
        trace_id=f"trace-{rng.randrange(4)}",
        output={"status": "ok", "data": {}, "meta": {"token_usage": {"prompt": 3}}},
    )
    began = datetime.fromisoformat(start["started_at"])
    interims = []
    for second in sorted(rng.sample(range(1, 50), rng.randrange(1, 4))):
        interim = {name: value for name, value in end.items() if name != "output"}
        interim["event_id"] = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        interim["call_state"] = rng.choice(("waiting", "working"))
        interim["ended_at"] = (began + timedelta(seconds=second)).isoformat()
        interims.append(interim | {"duration_ms": second * 1000.0})
    ends = [[], [end], [end | {"call_state": "cancelled", "is_error": True}]][number % 3]
    return [
        event | {"producer_id": f"p{number % 2}", "producer_seq": 10_000 + 10 * number + place}
        for place, event in enumerate([start, *interims, *ends])
    ]


def some_decision(rng: random.Random) -> Event:
    """A decision about a call of its own, in the same traces as the calls."""
    return make_decision(
        rng.choice(get_args(Decision)),
        invocation_id=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
        decided_at=MIDNIGHT - timedelta(hours=1) + timedelta(minutes=rng.randrange(120)),
        tool_name=rng.choice(("a", "b", "ä")),
        trace_id=f"trace-{rng.randrange(6)}",
        by={"kind": rng.choice(("policy", "person")), "id": rng.choice(("p1", "p2"))},
        violations=[{"path": "$.n[1]", "code": "WRONG_TYPE"}] * rng.randrange(3),
        run_id=rng.choice(("r1", "r2")),
    )
