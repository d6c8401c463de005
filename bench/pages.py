"""How fast pages answer over a month of calls: `uv run bench/pages.py [--calls 300000]`.

With `--browser` (`uv run --group browser bench/pages.py --browser`) it also opens traces in
Chromium, each time with an empty cache, and prints the times of first paint and of full load, in
ms. In a new window Chromium is still starting up, on the same cores; these times are printed, too,
but have no limit.

Starts an installation in a folder of its own and records the calls through the log, evenly over
30 days, in one big tenant beside small ones: first 100,000 calls, then the rest (the limits are
promised for `--calls 10000000`, which takes an hour). With `--folder` the installation stays there
for later runs, which need not record again. Then it requests each page as a signed-in member, in
this process, through all of Django. It prints server time without the network, in ms, of
`--rounds` requests each; `limit` is the promised time. Fails above a limit. On a busy machine
trust `best`.
"""

import argparse
import importlib
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.page_limits import PAGES, Page
from bench.painting import p95, paint

if TYPE_CHECKING:
    from django.test import Client

DAYS = 30
FIRST = 100_000
SMALL_TENANTS, SMALL_CALLS = 20, 500
BATCH = 500  # calls
TOOLS = [f"tool_{n}" for n in range(40)]
AGENTS = [f"agent_{n}" for n in range(8)]
CODES = ["WRONG_TYPE", "MISSING_REQUIRED", "ENUM_MISMATCH"]
REPORT = 2_000.0  # ms, including its PDF
TRACES = (16, 1_000, 10_000)  # calls per extra trace


def events(rng: random.Random, at: datetime, trace_id: str) -> Iterator[bytes]:
    """The events of a call; 3 % fail, 1 % violate their schema, 0.02 % never end."""
    shared = {
        "invocation_id": str(UUID(int=rng.getrandbits(128), version=4)),
        "trace_id": trace_id,
        "tool_name": TOOLS[int(rng.random() ** 2 * len(TOOLS))],
        "tool_version": "1",
        "call_id": f"{rng.getrandbits(256):064x}",
        "run_id": f"run-{trace_id}",
        "producer_id": "bench",
        "started_at": at.isoformat(),
        "timeouts_ms": 30_000,
    }
    arguments = {"query": f"{rng.getrandbits(400):x}"}
    context = {"agent": rng.choice(AGENTS), "agent_version": rng.choice(("1", "2"))}
    start = {"type": "toolExecutionStart", **shared, "args": arguments, "context": context}
    yield json.dumps(start).encode()
    if rng.random() < 0.0002:
        return
    took_ms = rng.lognormvariate(4, 1)
    usage = {"prompt": rng.randrange(2000), "completion": rng.randrange(500)}
    output: dict[str, Any] = {"status": "ok", "data": {}}
    if rng.random() < 0.03:
        kind = rng.choice(["TIMEOUT", "UPSTREAM", "FATAL"])
        output = {"status": "error", "error": {"type": kind, "message": "no answer"}}
    violation = {"path": "$.items[3].name", "code": rng.choice(CODES), "expected": "string"}
    end = {
        "type": "toolExecutionEnd",
        **shared,
        "ended_at": (at + timedelta(milliseconds=took_ms)).isoformat(),
        "duration_ms": took_ms,
        "is_error": False,
        "output": {**output, "meta": {"took_ms": int(took_ms), "token_usage": usage}},
        "guard": {
            "strategy": "warn",
            "outcome": "passed",
            "violations": [violation] if rng.random() < 0.01 else [],
        },
    }
    yield json.dumps(end).encode()


def record(
    tenant_id: UUID, begin: datetime, end: datetime, calls: int, seed: int, trace_id: str = ""
) -> str:
    """Record calls evenly over a time span, in the given trace, or in new ones of 20 calls.

    Returns the last trace id.
    """
    from bench.batches import record_batch

    rng, is_one = random.Random(seed), bool(trace_id)
    step = (end - begin) / calls
    for first in range(0, calls, BATCH):
        lines: list[bytes] = []
        for n in range(first, min(first + BATCH, calls)):
            if n % 20 == 0 and not is_one:
                trace_id = f"{rng.getrandbits(128):032x}"
            lines += events(rng, begin + n * step, trace_id)
        answer = record_batch(tenant_id, b"\n".join(lines))
        if answer["rejected"]:
            raise SystemExit(answer["rejected"][0])
    return trace_id


def act(tenant_id: UUID, count: int) -> None:
    """Record actions of many people, for pages that sort them."""
    from tenants.actions import record_action
    from tenants.models import Tenant
    from tenants.scope import tenant_scope

    tenant = Tenant.objects.get(id=tenant_id)
    with tenant_scope(tenant_id):
        for n in range(count):
            record_action(tenant, f"person {n * 37 % 997}", "bench.act", f"{n}", note="x" * 80)


def analyze() -> None:
    """Do what autovacuum would do later: update statistics and the visibility map."""
    from django.db import connections

    with connections["owner"].cursor() as cursor:
        for table in (
            "invocation",
            "violation",
            "violation_day",
            "trace",
            "rollup",
            "quarter_rollup",
            "error_rollup",
        ):
            cursor.execute(f"VACUUM ANALYZE {table}")


def times_ms(client: "Client", address: str, rounds: int) -> list[float]:
    """Times of `rounds` requests in ms, without a first one."""
    times = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        answer = client.get(address)
        if answer.status_code != 200:
            raise SystemExit(f"{answer.status_code}: {address}")
        times.append((time.perf_counter() - began) * 1000)
    return times[1:]


def member(tenant_id: UUID) -> "Client":
    """A client signed in as a member of the tenant, which also sends an API key of it."""
    from django.test import Client

    from tenants.keys import create_key
    from tenants.members import add_member
    from tenants.models import Role, Scope, Tenant, User
    from tenants.scope import tenant_scope

    user = User.objects.create(username=f"bench-{uuid.uuid4().hex[:8]}")
    tenant = Tenant.objects.get(id=tenant_id)
    with tenant_scope(tenant_id):
        add_member(tenant, user, Role.ADMIN)
    key = create_key(tenant, "bench", [Scope.READ, Scope.PAYLOADS])[1]
    client = Client(headers={"host": "localhost", "authorization": f"Bearer {key}"})
    client.force_login(user)
    return client


def export(client: "Client") -> tuple[int, float, int]:
    """Export three days as NDJSON: number of calls, seconds, and this process's growth in bytes."""
    import psutil

    process = psutil.Process()
    answer = client.get("/calls/export.ndjson?q=since:72h")
    stream = iter(answer)
    last = next(stream)
    before, began = process.memory_info().rss, time.monotonic()
    for chunk in stream:
        last = chunk
    grown = process.memory_info().rss - before
    return json.loads(last)["count"], time.monotonic() - began, grown


def report_ms(client: "Client", now: datetime, rounds: int) -> list[float]:
    """Times of making a report of 30 days with its PDF, in ms, without a first one."""
    times = []
    params = {"kind": "range", "from": f"{now - timedelta(days=DAYS):%Y-%m-%dT%H:%M:%S}"}
    for _ in range(rounds + 1):
        began = time.perf_counter()
        response = client.post("/reports/create", params)
        if client.get(f"{response['Location']}/export.pdf").status_code != 200:
            raise SystemExit("no PDF")
        times.append((time.perf_counter() - began) * 1000)
    return times[1:]


@dataclass(frozen=True)
class Recorded:
    """What was recorded, and page times from before all of it was recorded."""

    now: str
    calls: int
    trace: str
    alone_ms: float
    """p95 of a small tenant's list of calls, before the big tenant had calls."""
    few_ms: dict[str, float]
    """p95 of each page over the first 100,000 calls."""


def build(calls: int, rounds: int) -> Recorded:
    """Record the tenants' calls; in between, measure the pages."""
    from config.http.ordering import SORTED_MAX
    from tenants.provision import ensure_tenant

    now = datetime.now(UTC)
    begin = now - timedelta(days=DAYS)
    big = ensure_tenant("bench-big", "Big").id
    small = [ensure_tenant(f"bench-small-{n}", f"Small {n}").id for n in range(SMALL_TENANTS)]
    for n, tenant_id in enumerate(small):
        record(tenant_id, begin, now, SMALL_CALLS, seed=n)
    analyze()
    alone = p95(times_ms(member(small[0]), "/calls/", 4 * rounds))

    began = time.monotonic()
    hour = timedelta(hours=1)
    for size in TRACES:
        record(big, now - 3 * hour, now - 2 * hour, size, seed=size, trace_id=f"trace-of-{size}")
    act(big, SORTED_MAX + 1)
    trace = record(big, begin, now, min(FIRST, calls), seed=1000)
    analyze()
    client = member(big)
    few = {page.name: p95(_timings(client, page, trace, now, rounds)) for page in PAGES}
    if calls > FIRST:
        trace = record(big, begin, now, calls - FIRST, seed=1001)
        analyze()
    print(f"recorded in {time.monotonic() - began:.0f} s")
    return Recorded(now.isoformat(), calls, trace, alone, few)


def measure(recorded: Recorded, rounds: int, url: str = "") -> bool:
    """Measure and print; whether all was within the limits. With `url` in a browser, too."""
    from tenants.provision import ensure_tenant

    big_client, small_client = (
        member(ensure_tenant(slug, slug).id) for slug in ("bench-big", "bench-small-0")
    )
    now, trace, few = datetime.fromisoformat(recorded.now), recorded.trace, recorded.few_ms
    alone = recorded.alone_ms
    print(f"{recorded.calls:,} calls over {DAYS} days\n")

    fine = True
    heads = ("best", "p50", "p95", "limit", "× of 100,000")
    print(f"{'':30}" + "".join(f"{head:>14}" for head in heads))
    for page in PAGES:
        times = _timings(big_client, page, trace, now, rounds)
        fine &= p95(times) <= page.limit_ms
        mark = "" if p95(times) <= page.limit_ms else "  too slow"
        print(
            f"{page.name:30}{min(times):14.1f}{statistics.median(times):14.1f}{p95(times):14.1f}"
            f"{page.limit_ms:14.0f}{p95(times) / few.get(page.name, math.nan):14.2f}{mark}"
        )
    report_times = report_ms(big_client, now, max(5, rounds // 4))
    fine &= p95(report_times) <= REPORT
    print(
        f"{'a report of 30 days, with PDF':30}{min(report_times):14.1f}"
        f"{statistics.median(report_times):14.1f}{p95(report_times):14.1f}{REPORT:14.0f}"
    )
    beside = p95(times_ms(small_client, "/calls/", 4 * rounds))
    print(f"\nsmall tenant, p95: alone {alone:.1f}, with the big one {beside:.1f} ms", end=" ")
    print(f"(× {beside / alone:.2f}, limit 1.2)")
    if url:
        fine &= paint(url, big_client.cookies["sessionid"].value, rounds)
    count, seconds, grown = export(big_client)
    print(
        f"export: {count:,} calls in {seconds:.0f} s ({count / seconds:,.0f}/s);"
        f" the process grew by {grown / 2**20:.1f} MiB"
    )
    return fine


def address_of(page: Page, trace: str, now: datetime) -> str:
    """The address of a page over calls recorded until `now`, one trace of which is `trace`."""
    hour = now - timedelta(days=3)
    return page.address.format(
        trace=trace,
        prefix=trace[:5],
        call="0" * 64,
        hour=f"{hour:%Y-%m-%dT%H:%M}",
        hour_end=f"{hour + timedelta(hours=1):%Y-%m-%dT%H:%M}",
        middle=f"{now - timedelta(days=DAYS / 2):%Y-%m-%dT%H:%M:%S}Z",
        zero=UUID(int=0),
    )


def _timings(client: "Client", page: Page, trace: str, now: datetime, rounds: int) -> list[float]:
    client.cookies["timezone"] = page.zone
    return times_ms(client, address_of(page, trace, now), rounds)


def main() -> int:
    """Start an installation, record calls unless that was done before, measure, stop it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--calls", type=int, default=300_000, help="calls of the big tenant")
    parser.add_argument("--rounds", type=int, default=20, help="requests per page")
    parser.add_argument("--browser", action="store_true", help="also open traces in Chromium")
    parser.add_argument("--folder", type=Path, help="keep the installation in this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as temporary:
        folder = Path(options.folder or temporary).absolute()
        folder.mkdir(exist_ok=True)
        os.environ["TOOLTRAIL_VAR"] = str(folder / "var")
        os.environ["TOOLTRAIL_LOG_LEVEL"] = "ERROR"
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        process = subprocess.Popen(
            ["uv", "run", "manage.py", "up", "--dev-tenant", "bench", "--json", "--port", "0"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]  # printed once it has started
            import django

            django.setup()
            # As in the server: imports all views and freezes them.
            importlib.import_module("config.wsgi")
            note = folder / "recorded.json"
            if not note.exists():
                recorded = build(options.calls, options.rounds)
                note.write_text(json.dumps(asdict(recorded)))
            recorded = Recorded(**json.loads(note.read_text()))
            return 0 if measure(recorded, options.rounds, url if options.browser else "") else 1
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
