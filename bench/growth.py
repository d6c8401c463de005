"""How far one machine goes: what grows with the number of calls, and how fast all stays.

    uv run python -m bench.growth [--calls 1000000 3000000 10000000] [--folder FOLDER]

Starts a PostgreSQL of its own and records standard calls (2.4 KB of two events, in traces of a
dozen) through the log, evenly over 30 days, from as many processes as there are cores. At each
number of calls it prints

- the disk that log, index and everything else take, for each call;
- p95 of each kind of page, and which pages exceed their limit (`page_limits.py`);
- `reindex --check`: microseconds an event, and whether index and log agree;
- retention: seconds until the oldest day is gone from the index and its partitions are dropped;
- a backup: seconds, and the size of the file.

Nothing else should run. Ten million calls take an hour, and 45 GB with the backup. The check has
the same rate at any number of calls, and is left out above `--check-up-to`.
"""

import argparse
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from bench import pages
from bench.own_database import own_database
from bench.page_limits import PAGES
from bench.painting import p95

BATCH = 250  # calls
LIMITS = {"24 hours": 80, "30 days": 150, "traces": 60, "lists": 150}  # ms
LOG_TABLES = ("batch", "ledger_tile")
PER_TRACE = 12


def bodies(calls: int, begin: datetime, step: timedelta, seed: int) -> Iterator[bytes]:
    """The bodies of requests with so many calls, one each `step`."""
    from bench.generated import call

    rng, lines, trace_id = random.Random(seed), list[bytes](), ""
    for n in range(calls):
        if n % PER_TRACE == 0:
            trace_id = f"{rng.getrandbits(128):032x}"
        own = str(UUID(int=rng.getrandbits(128), version=4))
        lines += call(rng, trace_id, own, None, begin + n * step)
        if len(lines) == 2 * BATCH or n == calls - 1:
            yield b"\n".join(lines)
            lines.clear()


def record(tenant_id: UUID, calls: int, begin: datetime, step: timedelta, seed: int) -> None:
    """Record so many calls, in a process of its own."""
    import django

    django.setup()
    from bench.batches import record_batch

    for body in bodies(calls, begin, step, seed):
        answer = record_batch(tenant_id, body)
        if answer["rejected"]:
            raise SystemExit(answer["rejected"][0])


def fill(tenant_id: UUID, calls: int, begin: datetime, end: datetime, seed: int) -> float:
    """Record so many calls, evenly over the time. Returns the seconds that it took."""
    context = multiprocessing.get_context("spawn")
    count = os.cpu_count() or 1
    share = calls // count
    began = time.monotonic()
    processes = [
        context.Process(
            target=record, args=(tenant_id, share, begin, (end - begin) / share, seed + n)
        )
        for n in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit("a recording process failed")
    return time.monotonic() - began


def bytes_by_part() -> dict[str, int]:
    """Bytes on disk of the log, of the partitions of the index, and of everything else."""
    from django.db import connections

    parts = {"log": 0, "index": 0, "other": 0}
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, c.relispartition, pg_total_relation_size(c.oid) FROM pg_class c"
            " WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace"
        )
        for name, is_partition, size in cursor.fetchall():
            is_of_log = name.startswith(LOG_TABLES)
            parts["log" if is_of_log else "index" if is_partition else "other"] += size
    return parts


def kind_of(name: str) -> str:
    """Which limit a page has."""
    if "24 hours" in name or "6 hours" in name:
        return "24 hours"
    if "30 days" in name or "newest of" in name:
        return "30 days"
    return "traces" if "trace" in name else "lists"


def print_pages(tenant_id: UUID, trace: str, now: datetime, rounds: int) -> None:
    """The slowest page of each kind, and all pages above their limit."""
    client = pages.member(tenant_id)
    slowest: dict[str, tuple[float, str]] = {}
    over = []
    for page in PAGES:
        client.cookies["timezone"] = page.zone
        worst = p95(pages.times_ms(client, pages.address_of(page, trace, now), rounds))
        kind = kind_of(page.name)
        slowest[kind] = max(slowest.get(kind, (0.0, "")), (worst, page.name))
        if page.name in ("overview, 24 hours", "overview, 30 days", "a trace of 1,000 calls"):
            print(f"  {page.name}: p95 {worst:.0f} ms (limit {page.limit_ms:.0f})")
        if worst > page.limit_ms:
            over.append(f"{page.name} {worst:.0f} of {page.limit_ms:.0f} ms")
    for kind, (worst, name) in slowest.items():
        print(f"  slowest of {kind}: {name}, p95 {worst:.0f} ms")
    print(f"  above their limit, of {len(PAGES)} pages: {', '.join(over) or 'none'}", flush=True)


def print_check(tenant_id: UUID) -> None:
    """Compare index and log, as `reindex --check` does."""
    from django.core.management.base import OutputWrapper

    from audit.index.reindex import reindex
    from config.progress import Progress

    began = time.monotonic()
    progress = Progress(OutputWrapper(sys.stderr), "check", "events")
    report = reindex(tenant_id, repair=False, progress=progress)
    took = time.monotonic() - began
    agree = "index and log agree" if report.is_clean else "INDEX AND LOG DIFFER"
    per_event = took / report.events * 1e6
    print(f"  reindex --check: {took:.0f} s, {per_event:.0f} µs an event; {agree}", flush=True)


def keep_index(tenant_id: UUID) -> None:
    """Let retention remove calls from the index as early as it may."""
    from audit.pages.settings import acts
    from audit.retention.retention import INDEX_DAYS_MIN
    from tenants.models import Tenant
    from tenants.scope import tenant_scope

    tenant = Tenant.objects.get(id=tenant_id)
    with tenant_scope(tenant_id):
        current = acts.current_settings(tenant, acts.setting_of(tenant))
        wanted = current._replace(index_days=INDEX_DAYS_MIN)
        acts.save_settings(tenant, "bench", current, wanted)


def print_retention(tenant_id: UUID, days_kept: int) -> None:
    """Remove the oldest day with calls from the index, as the worker would some days from now."""
    from audit.models import Invocation
    from audit.retention.retention import INDEX_DAYS_MIN, drop_empty_days, run_slice
    from tenants.scope import tenant_scope

    def stored() -> int:
        with tenant_scope(tenant_id):
            return Invocation.objects.for_tenant(tenant_id).count()

    before, later = stored(), datetime.now(UTC) + timedelta(days=INDEX_DAYS_MIN - days_kept)
    began = time.monotonic()
    while run_slice(tenant_id, later):
        pass
    deleted = time.monotonic()
    dropped = drop_empty_days()
    took = time.monotonic() - deleted
    print(
        f"  retention: {before - stored():,} calls of a day deleted in {deleted - began:.1f} s,"
        f" {len(dropped)} partitions dropped in {took:.1f} s",
        flush=True,
    )


def print_backup(folder: Path) -> None:
    """Write a backup and remove it."""
    file = folder / "backup"
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "manage.py", "backup", str(file)],
        cwd=pages.ROOT,
        check=True,
        capture_output=True,
    )
    took = time.monotonic() - began
    print(f"  backup: {took:.0f} s, {file.stat().st_size / 2**20:,.0f} MiB", flush=True)
    file.unlink()


def main() -> None:
    """Record and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--calls", type=int, nargs="+", default=[1_000_000, 3_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=20, help="requests per page")
    parser.add_argument("--folder", type=Path, help="where the database lies, by default in TMPDIR")
    parser.add_argument(
        "--check-up-to",
        type=int,
        default=3_000_000,
        help="compare index and log up to so many calls",
    )
    options = parser.parse_args()
    os.environ["BENCH_CONTEXT"] = "1"
    os.environ["TOOLTRAIL_LOG_LEVEL"] = "ERROR"
    with (
        tempfile.TemporaryDirectory(prefix="tooltrail-bench-", dir=options.folder) as name,
        own_database(Path(name)),
    ):
        from django.core.management import call_command

        from tenants.provision import ensure_tenant

        call_command("collectstatic", verbosity=0, interactive=False)
        tenant_id = ensure_tenant("bench-big", "Big").id
        now = datetime.now(UTC)
        first_day = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=30)
        hour = timedelta(hours=1)
        for size in pages.TRACES:
            at = now - 3 * hour
            pages.record(tenant_id, at, at + hour, size, seed=size, trace_id=f"trace-of-{size}")
        trace = pages.record(tenant_id, now - hour, now, 20, seed=1)
        recorded = sum(pages.TRACES) + 20
        keep_index(tenant_id)
        for stage, calls in enumerate(sorted(options.calls)):
            # A day that retention removed takes no more calls.
            begin = first_day + timedelta(days=stage)
            took = fill(tenant_id, calls - recorded, begin, now - hour, seed=1000 * (stage + 1))
            print(f"{calls:,} calls; the last {calls - recorded:,} recorded in {took:.0f} s")
            recorded = calls
            pages.analyze()
            parts = bytes_by_part()
            shares = ", ".join(f"{part} {size / calls:,.0f}" for part, size in parts.items())
            print(f"  {sum(parts.values()) / 2**30:.2f} GiB; bytes a call: {shares}", flush=True)
            print_pages(tenant_id, trace, now, options.rounds)
            if calls <= options.check_up_to:
                print_check(tenant_id)
            print_retention(tenant_id, 30 - stage - 1)
            print_backup(Path(name))


if __name__ == "__main__":
    main()
