"""What judging outputs on arrival costs the intake: `uv run bench/arrival.py [--calls 3000]`.

Starts a PostgreSQL of its own and stores the same requests for two tenants in turns, as the view
does, without HTTP, in one process. The outputs of one tenant are validated on arrival, those of
the other are not. Prints for each tenant events/s of wall time, and the CPU time of this process,
which includes the validation; both are medians of all requests. On a busy machine trust the CPU
time. `costs` is the share of CPU time that validation takes. Throughput loses less, because
PostgreSQL works in parallel. Fails above ten per cent.
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

LIMIT = 0.10
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
FIFTY = {
    "type": "object",
    "required": [f"field_{n}" for n in range(50)],
    "properties": {
        f"field_{n}": {"type": ["string", "integer", "number"][n % 3]} for n in range(50)
    },
}


def main() -> int:
    """Print the table; 1 if validation costs more than a tenth."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=3_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as folder:
        Path(folder).chmod(0o711)  # as root, PostgreSQL may run as another user
        os.environ["TOOLTRAIL_VAR"] = str(Path(folder) / "var")
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        from config.postgresql.embedded import EmbeddedPostgres

        server = EmbeddedPostgres(Path(folder) / "postgres")
        server.start()
        try:
            return measure(server.admin_url, options.calls)
        finally:
            server.stop()


def measure(admin_url: str, calls: int) -> int:
    """Store the requests and print the table; 1 above the limit."""
    from bench.registry import prepare

    prepare(admin_url)
    print(f"{'':46}{'events/s':>18}{'CPU µs/event':>18}{'costs':>8}")
    print(f"{'outputs, events a request':46}{'off':>9}{'on':>9}{'off':>9}{'on':>9}")
    worst = 0.0
    for name, schema, failing in (
        ("as bench/ingest.py's", TEXT, 0.0),
        ("50 fields", FIFTY, 0.0),
        ("50 fields, 5 % wrong", FIFTY, 0.05),
    ):
        for size in (500, 20):
            worst = max(worst, compare(name, schema, failing, size, calls))
    return int(worst > LIMIT)


def compare(name: str, schema: dict[str, Any], failing: float, size: int, calls: int) -> float:
    """Print a line; returns the cost of validation as a share of this process's CPU time."""
    from bench.generated import TOOLS

    tenants = {is_on: _tenant(schema, TOOLS, is_on=is_on) for is_on in (False, True)}
    bodies = list(_bodies(schema is FIFTY, failing, size, calls))
    seconds: dict[bool, list[float]] = {False: [], True: []}
    cpu: dict[bool, list[float]] = {False: [], True: []}
    for number, body in enumerate(bodies):
        for is_on in (False, True) if number % 2 else (True, False):
            clock, own = time.perf_counter(), time.process_time()
            events = _store(tenants[is_on], body)
            if number > len(bodies) // 10:
                seconds[is_on].append((time.perf_counter() - clock) / events)
                cpu[is_on].append((time.process_time() - own) / events)
    off, on = statistics.median(seconds[False]), statistics.median(seconds[True])
    cpu_off, cpu_on = statistics.median(cpu[False]), statistics.median(cpu[True])
    cost = 1 - cpu_off / cpu_on
    print(
        f"{f'{name}, {size}':46}{1 / off:9,.0f}{1 / on:9,.0f}"
        f"{cpu_off * 1e6:9.1f}{cpu_on * 1e6:9.1f}{cost:8.1%}"
    )
    return cost


def _tenant(schema: dict[str, Any], names: list[str], *, is_on: bool) -> UUID:
    from tenants.models import Tenant
    from tenants.provision import ensure_tenant
    from tenants.scope import tenant_scope
    from tools_registry.changes import Publisher
    from tools_registry.models import Tool
    from tools_registry.schemas import ToolContract
    from tools_registry.tools import check_on_arrival
    from tools_registry.versions import register_contracts

    tenant: Tenant = ensure_tenant(f"t-{uuid4().hex[:12]}", "Bench")
    by = Publisher(key_id="bench")
    with tenant_scope(tenant.id):
        contracts = [
            ToolContract(
                name=name, description="", input_schema={"type": "object"}, output_schema=schema
            )
            for name in names
        ]
        register_contracts(tenant, contracts, by)
        if is_on:
            for tool in Tool.objects.all():
                check_on_arrival(tool, by, is_on=True)
    return tenant.id


def _bodies(is_fifty: bool, failing: float, size: int, calls: int) -> Any:
    """Request bodies of `bench/ingest.py`; with `is_fifty` their outputs have 50 fields."""
    import gzip

    from bench.generated import make_requests

    rng = random.Random(1)
    for _, sent, _ in make_requests(calls, size, 1).ready:
        body = gzip.decompress(sent)
        if not is_fifty:
            yield body
            continue
        events = [json.loads(line) for line in body.splitlines()]
        for event in events:
            if event.get("output", {}).get("status") == "ok":
                data: dict[str, Any] = {f"field_{n}": ["text", n, n / 7][n % 3] for n in range(50)}
                if rng.random() < failing:
                    data["field_7"] = None
                event["output"]["data"] = data
        yield b"\n".join(json.dumps(event, separators=(",", ":")).encode() for event in events)


def _store(tenant_id: UUID, raw: bytes) -> int:
    from audit.events import body
    from bench.batches import record_batch

    record_batch(tenant_id, raw)
    return len(body.split_lines(raw))


if __name__ == "__main__":
    sys.exit(main())
