"""How fast stored outputs are judged again: `uv run bench/replay.py [--calls 20000]`.

Starts a PostgreSQL of its own, records calls of one tool through the log, and replays them against
a draft as the worker does, in this process. Outputs have 50 fields; `--failing` percent of them
violate the draft. Arguments are validated, too. `--among 10` stores every call among nine calls of
other tools, whose events must be decompressed, too, without being used. Prints outputs per second,
and microseconds per output for each part. Fails below 20,000 outputs per second of CPU time, which
other work on the machine hardly affects; the limit applies to calls of one tool alone.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.own_database import own_database

LIMIT = 20_000  # outputs a second
BATCH = 250  # calls
FIELDS = 50
_TYPES: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "integer"},
    {"type": "number", "minimum": 0},
    {"type": "string", "enum": ["open", "closed", "unknown"]},
    {"type": "array", "items": {"type": "string", "maxLength": 40}},
]
_VALUES: list[Any] = ["some text", 7, 1.5, "open", ["a", "b"]]


def schema(required: int) -> dict[str, Any]:
    """A schema of an output with 50 fields, the first `required` of which are required."""
    names = [f"field_{n}" for n in range(FIELDS)]
    return {
        "type": "object",
        "properties": {name: _TYPES[n % 5] for n, name in enumerate(names)},
        "required": names[:required],
        "additionalProperties": False,
    }


def events(rng: random.Random, at: datetime, tool: str, failing: float) -> Iterator[bytes]:
    """A call's two events; a failing one has two wrong fields and lacks one."""
    shared = {
        "invocation_id": str(UUID(int=rng.getrandbits(128), version=4)),
        "trace_id": f"{rng.getrandbits(128):032x}",
        "tool_name": tool,
        "call_id": f"{rng.getrandbits(256):064x}",
        "started_at": at.isoformat(),
    }
    args = {"query": f"{rng.getrandbits(200):x}", "limit": rng.randrange(100)}
    data = {f"field_{n}": _VALUES[n % 5] for n in range(FIELDS)}
    data["field_0"] = f"{rng.getrandbits(100):x}"
    if rng.random() < failing:
        data |= {"field_1": "seven", "field_3": "ajar"}
        del data[f"field_{FIELDS - 1}"]
    yield json.dumps({"type": "toolExecutionStart", **shared, "args": args}).encode()
    end = {
        "type": "toolExecutionEnd",
        **shared,
        "ended_at": at.isoformat(),
        "duration_ms": 12.5,
        "is_error": False,
        "output": {"status": "ok", "data": data, "meta": {"took_ms": 12}},
    }
    yield json.dumps(end).encode()


def record(tenant_id: UUID, calls: int, among: int, failing: float) -> None:
    """Record calls of the tool among those of other tools, evenly over a day."""
    from bench.batches import record_batch

    rng = random.Random(7)
    now = datetime.now(UTC)
    total = calls * among
    for first in range(0, total, BATCH):
        lines: list[bytes] = []
        for n in range(first, min(first + BATCH, total)):
            at = now - timedelta(days=1) * (total - n) / total
            tool = "bench" if n % among == 0 else f"other_{n % among}"
            lines += events(rng, at, tool, failing)
        if rejected := record_batch(tenant_id, b"\n".join(lines))["rejected"]:
            raise SystemExit(rejected[0])


def analyze() -> None:
    """Do what autovacuum would do later."""
    from django.db import connections

    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE invocation")


class Times:
    """The CPU time of each part, without the time of other parts inside it."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}
        self._inner: list[float] = []

    def timed(self, part: str, run: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function, so that its time counts for `part`."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self._inner.append(0.0)
            began = time.process_time()
            try:
                return run(*args, **kwargs)
            finally:
                seconds = time.process_time() - began
                self.taken[part] = self.taken.get(part, 0.0) + seconds - self._inner.pop()
                if self._inner:
                    self._inner[-1] += seconds

        return wrapped


@contextmanager
def measured(times: Times) -> Iterator[None]:
    """Within the block, time the parts of a replay."""
    from audit.events import judgement
    from audit.log import payload
    from audit.queries.replays import ReplayRange
    from audit.work.replay import job
    from audit.work.replay.tally import Tally

    parts = [
        (ReplayRange, "before", "find calls"),
        (job, "read_events", "read log"),
        (payload, "unpack", "inflate, split"),
        (judgement, "read_output", "parse"),
        (judgement, "_violations_of", "validate"),
        (Tally, "add", "count"),
    ]
    with ExitStack() as stack:
        for owner, name, part in parts:
            stack.enter_context(patch.object(owner, name, times.timed(part, getattr(owner, name))))
        yield


def replay(tenant_id: UUID, calls: int) -> tuple[float, float, dict[str, Any]]:
    """Replay so many calls; returns seconds of wall time and of CPU time, and the findings."""
    from audit.models import Replay
    from audit.queries.replays import ReplayRange
    from audit.work.replay import job
    from tenants.scope import tenant_scope
    from tools_registry.models import Tool

    now = datetime.now(UTC)
    with tenant_scope(tenant_id):
        proposal = job.Proposal(1, {"type": "object"}, schema(FIELDS))
        replay_range = ReplayRange("bench", now - timedelta(days=2), now)
        tool = Tool.objects.get(tenant_id=tenant_id, name="bench")
        pk = job.start_replay(tool, proposal, replay_range, calls, "bench").id
    began, began_at = time.process_time(), time.perf_counter()
    while job.run_slice(tenant_id, pk):
        pass
    cpu_seconds, waited = time.process_time() - began, time.perf_counter() - began_at
    with tenant_scope(tenant_id):
        record = Replay.objects.for_tenant(tenant_id).get(id=pk)
    assert record.state == "done", record.problem
    assert record.read_count == calls
    return waited, cpu_seconds, json.loads(record.findings)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--calls", type=int, default=20_000)
    options.add_argument("--failing", type=float, default=5.0, help="percent")
    options.add_argument("--among", type=int, default=1)
    arguments = options.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        own_database(Path(folder), settings=("fsync = off",)),
    ):
        from tenants.provision import ensure_tenant
        from tenants.scope import tenant_scope
        from tools_registry.changes import Publisher
        from tools_registry.models import Tool
        from tools_registry.schemas import ToolContract
        from tools_registry.versions import publish_version

        tenant = ensure_tenant("bench", "Bench")
        contract = ToolContract(
            name="bench",
            description="",
            input_schema={"type": "object"},
            output_schema=schema(FIELDS // 2)
            | {"properties": {f"field_{n}": {} for n in range(FIELDS)}},
        )
        with tenant_scope(tenant.id):
            tool = Tool.objects.create(tenant=tenant, name="bench")
            publish_version(tool, contract, Publisher())
        record(tenant.id, arguments.calls, arguments.among, arguments.failing / 100)
        analyze()
        runs = [replay(tenant.id, arguments.calls)[:2] for _ in range(3)]
        waited, best = min(runs)
        times = Times()
        with measured(times):
            *_, findings = replay(tenant.id, arguments.calls)
        outputs = findings["output"]
        broken = outputs["newly_violating"]
        print(f"{arguments.calls:,} outputs of {FIELDS} fields, {broken:,} of them newly violating")
        rate = arguments.calls / waited
        alone = arguments.calls / best
        print(f"{'outputs a second':24}{alone:10,.0f}   of processor time; limit {LIMIT:,}")
        print(f"{'':24}{rate:10,.0f}   by the clock, PostgreSQL included")
        print(f"{'µs an output':24}{best / arguments.calls * 1e6:10.1f}")
        for part, seconds in times.taken.items():
            print(f"  {part:22}{seconds / arguments.calls * 1e6:10.1f}")
        return int(arguments.among == 1 and alone < LIMIT)


if __name__ == "__main__":
    sys.exit(main())
