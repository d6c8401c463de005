"""Generated calls as the requests of an executor: what the benchmarks send."""

import gzip
import json
import os
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import uuid_utils

WORDS = [f"{random.Random(n).getrandbits(40):x}" for n in range(5000)]
TOOLS = [f"tool_{n}" for n in range(20)]

CONTEXT = {
    "agent": "support-concierge",
    "agent_version": "2.14.0",
    "model": "claude-sonnet-4-5",
    "provider": "anthropic",
    "service": "support-agents",
    "environment": "production",
}
"""What every start event reports if `BENCH_CONTEXT` is set, beside its principal."""

TRACES_AT_ONCE = 8  # per client
_FIXED_BITS, _VERSION_7 = 0xF << 76 | 0x3 << 62, 0x7 << 76 | 0x2 << 62  # RFC 9562


@dataclass(frozen=True)
class Requests:
    """What a client sends: batch ids, compressed bodies, numbers of events; and the total size."""

    ready: list[tuple[str, bytes, int]]
    raw_bytes: int


def trace(rng: random.Random, *, scattered: bool) -> Iterator[list[bytes]]:
    """The calls of a trace as pairs of events: a dozen on average, sequential or nested.

    They are from the last two minutes and have ids ordered by time, like the SDK's. With
    `scattered` they are from any time in the last fifty minutes and have random ids, like imports.
    """
    trace_id = f"{rng.getrandbits(128):032x}"
    at = datetime.now(UTC) - timedelta(seconds=rng.uniform(60, 120))  # not in the future
    parent: str | None = None
    for _ in range(min(1 + int(rng.expovariate(1 / 12)), 200)):
        if scattered:
            at = datetime.now(UTC) - timedelta(seconds=rng.uniform(0, 3000))
            own = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        else:
            at += timedelta(milliseconds=rng.lognormvariate(4, 1))
            ms, bits = int(at.timestamp() * 1000), rng.getrandbits(80)
            own = str(uuid.UUID(int=(ms << 80 | bits) & ~_FIXED_BITS | _VERSION_7))
        yield call(rng, trace_id, own, parent, at)
        parent = own if rng.random() < 0.3 else None


def call(
    rng: random.Random, trace_id: str, own: str, parent: str | None, started_at: datetime
) -> list[bytes]:
    """The two events of a call, 1.2 KB each; 1 in 20 fails, 1 in 50 has a violation."""
    shared = {
        "invocation_id": own,
        **({} if parent is None else {"parent_invocation_id": parent}),
        "trace_id": trace_id,
        "tool_name": rng.choice(TOOLS),
        "tool_version": "1",
        "call_id": f"{rng.getrandbits(256):064x}",
        "run_id": f"run-{trace_id}",
        "producer_id": "bench",
        "started_at": started_at.isoformat(),
    }
    duration_ms = rng.lognormvariate(4, 1)
    output: dict[str, Any] = {
        "status": "ok",
        "data": {"text": " ".join(rng.choices(WORDS, k=45))},
        "meta": {"took_ms": int(duration_ms), "token_usage": {"prompt": 400, "completion": 90}},
    }
    if rng.random() < 0.05:
        output = {"status": "error", "error": {"type": "TIMEOUT", "message": "no answer"}}
    violations = [{"path": "$.items[3].name", "code": "WRONG_TYPE", "expected": "string"}]
    start = {
        "type": "toolExecutionStart",
        "event_id": str(uuid_utils.uuid7()),
        **shared,
        "args": {"query": " ".join(rng.choices(WORDS, k=60))},
    }
    if os.environ.get("BENCH_CONTEXT"):
        principal = f"user-{random.Random(trace_id).randrange(5000)}@example.com"
        start["context"] = CONTEXT | {"principal": principal}
    end = {
        "type": "toolExecutionEnd",
        "event_id": str(uuid_utils.uuid7()),
        **shared,
        "ended_at": (started_at + timedelta(milliseconds=duration_ms)).isoformat(),
        "duration_ms": duration_ms,
        "is_error": False,
        "output": output,
        "guard": {
            "strategy": "throw",
            "outcome": "passed",
            "violations": violations if rng.random() < 0.02 else [],
        },
    }
    return [json.dumps(event).encode() for event in (start, end)]


def make_requests(calls: int, size: int, seed: int, *, scattered: bool = False) -> Requests:
    """That many calls in requests of `size` events; 3 in 10 ends come in the next request.

    Calls of several traces are interleaved, as in an executor.
    """
    rng = random.Random(seed)
    ready, raw_bytes = [], 0
    waiting: list[bytes] = []
    running = [trace(rng, scattered=scattered) for _ in range(TRACES_AT_ONCE)]
    while calls or waiting:
        events, waiting = waiting[:size], waiting[size:]
        while calls and len(events) < size:
            turn = rng.randrange(TRACES_AT_ONCE)
            pair = next(running[turn], None)
            if pair is None:
                running[turn] = trace(rng, scattered=scattered)
                continue
            events.append(pair[0])
            is_late = rng.random() < 0.3 or len(events) == size
            (waiting if is_late else events).append(pair[1])
            calls -= 1
        body = b"\n".join(events)
        sent = gzip.compress(body, compresslevel=1, mtime=0)
        ready.append((str(uuid_utils.uuid7()), sent, len(events)))
        raw_bytes += len(body)
    return Requests(ready, raw_bytes)
