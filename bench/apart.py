"""How long it takes to find what sets calls apart among many calls of one tenant.

    uv run bench/apart.py [--calls 10000000] [--days 10] [--rounds 5]

Fills the index of a database of its own with random calls, of which one in a hundred fails, half of
those with version 4 on one host. Prints for some queries: seconds, the processor time of this
process and of PostgreSQL's, calls read, the peak of this process's memory, and what is named first.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.own_database import own_database

QUERIES = (
    "state:failed",
    "state:failed tool:tool-3",
    "duration:>900ms",
    "agent:agent-3",
    "violation:*",
    "since:2d until:1d",
    "cache:hit tool:tool-3 NOT version:1",
)
FILL = """
INSERT INTO invocation (
    tenant_id, started_on, invocation_id, started_at, ended_at, duration_us, state, tool_name,
    tool_version, trace_id, call_id, error_type, error_code, upstream_status, attempt,
    violation_count, prompt_tokens, completion_tokens, cache_hit, run_id, collection_id,
    producer_id, start_batch_id, start_pos, end_batch_id, end_pos, pair_conflict,
    agent, model, provider
)
SELECT %(tenant)s, (at AT TIME ZONE 'UTC')::date, gen_random_uuid(), at, at, duration_us,
       CASE WHEN fails THEN 'failed' ELSE 'ok' END, 'tool-' || tool, version::text,
       'trace-' || n / 5, md5(n::text), CASE WHEN fails THEN 'UPSTREAM' ELSE '' END,
       CASE WHEN fails THEN 'E1' END, CASE WHEN fails THEN 503 END, 1 + (random() < 0.05)::int,
       (random() < 0.02)::int, 0, 0, random() < 0.2, 'run-' || n / 50, 'c' || (random() * 5)::int,
       'host-' || host, gen_random_uuid(), 0, gen_random_uuid(), 1, FALSE, 'agent-' || agent,
       'model-' || agent %% 3, 'provider-' || agent %% 2
FROM (
    SELECT *, random() < CASE WHEN version = 4 AND host = 2 THEN 0.1 ELSE 0.005 END AS fails
    FROM (
        SELECT n, %(start)s::timestamptz + %(step)s * n AS at,
               (random() * 1e6)::bigint AS duration_us,
               (random() * 19)::int AS tool, (random() * 5)::int AS version,
               (random() * 7)::int AS host, (random() * 9)::int AS agent
        FROM generate_series(%(first)s, %(last)s) AS n
    ) AS drawn
) AS calls
"""
SUM = """
INSERT INTO {table} (
    tenant_id, started_on, {cell}, tool_name, tool_version, started_count, completed_count,
    failed_count, violating_call_count, violation_count, {duration} prompt_tokens,
    completion_tokens, cache_hit_count, histogram
)
SELECT tenant_id, started_on, date_bin('{length}', started_at, '2000-01-01Z'), tool_name,
       tool_version, count(*), count(*), count(*) FILTER (WHERE state = 'failed'),
       count(*) FILTER (WHERE violation_count > 0), sum(violation_count), {zero} 0, 0, 0, 0
FROM invocation
WHERE tenant_id = %s
GROUP BY 1, 2, 3, 4, 5
"""
UNUSED = (
    *("invocation_trace_idx", "invocation_run_idx", "invocation_call_idx", "invocation_open_idx"),
    *("invocation_orphan_idx", "invocation_error_code_idx"),
)
SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_wal_size=4GB")


def main() -> int:
    """Print a line for each query."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        own_database(Path(folder), settings=SETTINGS),
    ):
        _measure(asked.calls, asked.days, asked.rounds)
    return 0


def _measure(calls: int, days: int, rounds: int) -> None:
    from audit.apart.finding import find_apart
    from audit.queries.call_query import parse
    from audit.queries.time_range import TimeRange
    from tenants.models import Tenant
    from tenants.scope import tenant_scope

    now = datetime.now(UTC)
    start = now - timedelta(days=days)
    tenant = Tenant.objects.create(slug="bench", name="Bench")
    fill(tenant.id, start, calls, days)
    print(f"{calls:,} calls of {days} days; each query {rounds} times", flush=True)
    of = TimeRange(start, now, UTC)
    for text in QUERIES:
        took, own, of_database = [], [], []
        for _ in range(rounds):
            began, used = time.perf_counter(), time.process_time()
            with tenant_scope(tenant.id):
                before = database_seconds()
                finding = find_apart(parse(text), of, now, beside_all=False)
                of_database.append(database_seconds() - before)
            took.append(time.perf_counter() - began)
            own.append(time.process_time() - used)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        named = finding.named[0].parts if finding.named else "nothing"
        print(
            f"{text:36} {min(took):5.2f} to {max(took):5.2f} s, own {min(own):.2f} s,"
            f" database {min(of_database):.2f} s, {finding.calls_read:,} read, {memory} MB,"
            f" {named}",
            flush=True,
        )


def fill(tenant_id: UUID, start: datetime, calls: int, days: int) -> None:
    """Fill the tenant's index, and its sums, with random calls evenly over days."""
    from django.db import connection, connections

    from tenants.scope import tenant_scope

    with connections["owner"].cursor() as cursor:
        for index in UNUSED:  # filling takes half as long, and none of them is read here
            cursor.execute(f"DROP INDEX {index}")
    step, part = timedelta(days=days) / calls, 200_000
    for first in range(0, calls, part):
        with tenant_scope(tenant_id), connection.cursor() as cursor:
            values: dict[str, Any] = {
                "tenant": tenant_id,
                "start": start,
                "step": step,
                "first": first,
            }
            cursor.execute(FILL, values | {"last": min(first + part, calls) - 1})
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        for table, cell, length, has_duration in (
            ("rollup", "hour_at", "1 hour", True),
            ("quarter_rollup", "quarter_at", "15 minutes", False),
        ):
            statement = SUM.format(
                table=table,
                cell=cell,
                length=length,
                duration="duration_us," if has_duration else "",
                zero="0," if has_duration else "",
            )
            cursor.execute(statement, [tenant_id])
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE invocation, rollup, quarter_rollup")


def database_seconds() -> float:
    """The processor time of this connection's process of PostgreSQL, which is on this host."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
