"""What judging alert rules costs, and how soon messages arrive.

    uv run python -m bench.alerts [--calls 10000000] [--rules 1000] [--minutes 16]
    uv run python -m bench.alerts --delays 10

Judges rules every minute of a simulated clock, in a database of its own with so many calls in 30
days, and prints the processor time of this process and of PostgreSQL's, minute by minute. The calls
of a minute are stored before it is judged. A tenth of the rules has queries that no sums hold.
Rules of short windows read the calls of the last hours, and of the same hours a day and a week ago:
these are stored call by call, all others only as the sums that rules of long windows read. Limit:
5 % of one core.

With `--delays`: starts a worker, and makes a rule of events and a rule of windows true so many
times while it starts and runs. Prints after how many seconds a webhook gets the message. Limits: 15
and 60 seconds after it is true. Linux only.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uuid_utils

from bench.ledger_cost import processor_seconds
from bench.own_database import own_database

ROOT = Path(__file__).resolve().parent.parent
LIMIT_SHARE, LIMIT_EVENT_S, LIMIT_WINDOW_S = 0.05, 15.0, 60.0
DAYS, STORED_DAYS, STORED = 30, (0, 1, 7), timedelta(hours=8)
TOOLS, VERSIONS, AGENTS = 50, 4, 20
FILL = """
INSERT INTO invocation (
    tenant_id, started_on, invocation_id, started_at, ended_at, duration_us, state, tool_name,
    tool_version, trace_id, call_id, error_type, error_code, attempt, violation_count,
    prompt_tokens, completion_tokens, producer_id, start_batch_id, start_pos, end_batch_id,
    end_pos, pair_conflict, agent
)
SELECT %(tenant)s, (at AT TIME ZONE 'UTC')::date, gen_random_uuid(), at, at, duration_us,
       CASE WHEN fails THEN 'failed' ELSE 'ok' END, 'tool-' || tool, version::text,
       'trace-' || n / 5, md5(n::text), CASE WHEN fails THEN 'UPSTREAM' ELSE '' END,
       CASE WHEN fails THEN 'E1' END, 1 + (random() < 0.05)::int, (random() < 0.02)::int,
       100, 50, 'host-1', gen_random_uuid(), 0, gen_random_uuid(), 1, FALSE, 'agent-' || agent
FROM (
    SELECT n, %(start)s::timestamptz + %(step)s * n AS at, random() < 0.02 AS fails,
           (exp(random() * 7) * 1000)::bigint AS duration_us,
           floor(random() * %(tools)s)::int AS tool, floor(random() * %(versions)s)::int AS version,
           floor(random() * %(agents)s)::int AS agent
    FROM generate_series(0, %(count)s - 1) AS n
) AS drawn
"""
SUM = """
INSERT INTO quarter_rollup AS r (
    tenant_id, started_on, quarter_at, tool_name, tool_version, started_count, completed_count,
    failed_count, violating_call_count, violation_count, prompt_tokens, completion_tokens,
    cache_hit_count, histogram
)
SELECT tenant_id, started_on, quarter, tool_name, tool_version, sum(calls), sum(calls),
       sum(failed), sum(violating), sum(violations), sum(prompt), sum(completion), 0,
       sum(calls * ('1' || repeat('0', %(digits)s * bucket))::numeric)
FROM (
    SELECT tenant_id, started_on, date_bin('15 minutes', started_at, '2000-01-01Z') AS quarter,
           tool_name, tool_version,
           CASE WHEN duration_us < %(lowest_us)s THEN 0 ELSE least(
               1 + floor(ln(duration_us / %(lowest_us)s::float8) / %(log_growth)s::float8),
               %(last_bucket)s) END::integer AS bucket,
           count(*) AS calls, count(*) FILTER (WHERE state = 'failed') AS failed,
           count(*) FILTER (WHERE violation_count > 0) AS violating,
           sum(violation_count) AS violations, sum(prompt_tokens) AS prompt,
           sum(completion_tokens) AS completion
    FROM invocation
    WHERE tenant_id = %(tenant)s AND started_at >= %(since)s AND started_at < %(until)s
    GROUP BY 1, 2, 3, 4, 5, 6
) AS parts
GROUP BY 1, 2, 3, 4, 5
ON CONFLICT (tenant_id, started_on, quarter_at, tool_name, tool_version) DO UPDATE SET
    started_count = r.started_count + excluded.started_count,
    completed_count = r.completed_count + excluded.completed_count,
    failed_count = r.failed_count + excluded.failed_count,
    violating_call_count = r.violating_call_count + excluded.violating_call_count,
    violation_count = r.violation_count + excluded.violation_count,
    prompt_tokens = r.prompt_tokens + excluded.prompt_tokens,
    completion_tokens = r.completion_tokens + excluded.completion_tokens,
    histogram = r.histogram + excluded.histogram
"""
COPY_SUMS = """
INSERT INTO quarter_rollup (
    tenant_id, started_on, quarter_at, tool_name, tool_version, started_count, completed_count,
    failed_count, violating_call_count, violation_count, prompt_tokens, completion_tokens,
    cache_hit_count, histogram
)
SELECT tenant_id, (moved AT TIME ZONE 'UTC')::date, moved, tool_name, tool_version, started_count,
       completed_count, failed_count, violating_call_count, violation_count, prompt_tokens,
       completion_tokens, cache_hit_count, histogram
FROM (
    SELECT *, quarter_at - ago * interval '8 hours' AS moved
    FROM quarter_rollup, generate_series(1, %(times)s) AS ago
    WHERE tenant_id = %(tenant)s AND started_on >= %(day)s AND quarter_at >= %(since)s
) AS copies
ON CONFLICT DO NOTHING
"""


def main() -> int:
    """Print the figures. Returns 1 if one is over its limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=10_000_000)
    parser.add_argument("--rules", type=int, default=1_000)
    parser.add_argument("--minutes", type=int, default=16)
    parser.add_argument("--profile", action="store_true", help="also print where the time went")
    parser.add_argument("--delays", type=int, default=0, metavar="TIMES")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as folder,
        own_database(Path(folder), settings=("fsync=off", "max_wal_size=4GB")),
    ):
        if asked.delays:
            return _delays(Path(folder), asked.delays)
        return _cost(asked.calls, asked.rules, asked.minutes, with_profile=asked.profile)


def conditions(number: int) -> Iterator[dict[str, Any]]:
    """Conditions of so many rules: a tenth with queries that no sums hold."""
    measures = ("calls", "failed", "failed_share", "violating_share", "p95", "tokens")
    short, long = (5, 15, 60, 60, 180, 360), (720, 1_440, 1_440, 10_080, 43_200)
    queries = (
        "agent:agent-{}",
        "code:E1 tool:tool-{}",
        "is:retry agent:agent-{}",
        "NOT tool:tool-{}",
    )
    for n in range(number):
        common = {
            "measure": measures[n % 6],
            "alert": 1e12,
            "for_minutes": (0, 5, 15)[n % 3],
            "compare_with": "day_before"
            if n % 10 == 3
            else "week_before"
            if n % 10 == 4
            else "number",
        }
        if n % 10 == 9:
            query = queries[n // 10 % 4].format(n // 40 % AGENTS)
            measure = "open" if n % 100 == 99 else common["measure"]
            yield common | {
                "query": query,
                "measure": measure,
                "window_minutes": short[n // 10 % 6],
            }
        elif n % 10 < 6:
            query = "" if n % 60 == 0 else f"tool:tool-{n % TOOLS}"
            yield common | {"query": query, "window_minutes": short[n // 10 % 6]}
        else:
            query = f"tool:tool-{n % TOOLS} version:{n % VERSIONS}"
            yield common | {"query": query, "window_minutes": long[n // 10 % 5]}


def _cost(calls: int, number: int, minutes: int, *, with_profile: bool) -> int:
    from audit.alerts.evaluation import SETTLING, evaluate
    from audit.alerts.rules import Rule
    from audit.alerts.stored import save_rule
    from audit.models import AlertRule
    from tenants.models import Tenant
    from tenants.scope import tenant_scope

    end = datetime.now(UTC).replace(second=0, microsecond=0)
    start = end - timedelta(minutes=minutes + 2)
    began = time.monotonic()
    tenant = Tenant.objects.create(slug="bench", name="Bench")
    stored = _fill(tenant, calls, start)
    print(
        f"{calls:,} calls in {DAYS} days ({stored:,} stored, the others as sums),"
        f" {number:,} rules; filled in {time.monotonic() - began:.0f} s",
        flush=True,
    )
    with tenant_scope(tenant.id):
        for n, condition in enumerate(conditions(number)):
            rule = Rule.model_validate({"name": f"rule {n}", "condition": condition})
            save_rule(tenant, "bench", rule, start - timedelta(days=8))
        AlertRule.objects.for_tenant(tenant.id).update(judged_to=start)
    profile = None
    if with_profile:
        import cProfile

        profile = cProfile.Profile()
    used: list[float] = []
    for n in range(minutes + 1):
        now = start + timedelta(minutes=n + 1) + SETTLING
        _add(tenant, timedelta(days=DAYS) / calls, start + timedelta(minutes=n))
        before, own, clock = processor_seconds(), time.process_time(), time.monotonic()
        if profile is not None and n:
            profile.enable()
        with tenant_scope(tenant.id):
            judged = evaluate(now)
            problems = AlertRule.objects.for_tenant(tenant.id).exclude(problem="").count()
            # Both ends are read within the transaction: the connection may serve another one next.
            took = processor_seconds() - before
        if profile is not None:
            profile.disable()
        own = time.process_time() - own
        print(
            f"{now:%H:%M} {judged:5,} judged, {problems} not: {took:5.2f} s, of it Python"
            f" {own:.2f}; by the clock {time.monotonic() - clock:.2f} s"
            f"{'' if n else ' (the first, not counted)'}",
            flush=True,
        )
        if n:
            used.append(took)
    share = sum(used) / (60 * len(used))
    print(f"{share:.1%} of one core on average, {max(used) / 60:.1%} in the worst minute")
    if profile is not None:
        import pstats

        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    return int(share > LIMIT_SHARE)


def _add(tenant: Any, step: timedelta, start: datetime) -> None:
    """Store the calls of a minute, as they arrive."""
    from django.db import connections

    _store(tenant, step, start, timedelta(minutes=1))
    with connections["owner"].cursor() as cursor:  # as the database does by itself
        cursor.execute("ANALYZE invocation, quarter_rollup")


def _fill(tenant: Any, calls: int, end: datetime) -> int:
    """Store the calls and sums. Returns how many calls are stored as such."""
    from django.db import connection, connections

    from tenants.scope import tenant_scope

    step, stored = timedelta(days=DAYS) / calls, 0
    for ago in STORED_DAYS:
        stored += _store(tenant, step, end - timedelta(days=ago) - STORED, STORED)
    since = end - STORED
    with tenant_scope(tenant.id), connection.cursor() as cursor:
        of = {"tenant": tenant.id, "since": since, "day": since.date(), "times": 3 * DAYS}
        cursor.execute(COPY_SUMS, of)
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE invocation, quarter_rollup")
    return stored


def _store(tenant: Any, step: timedelta, start: datetime, length: timedelta) -> int:
    """Store the calls of a time and their sums. Returns how many calls."""
    from django.db import connection

    from audit.queries.over_time import FORMULA
    from tenants.scope import tenant_scope

    number = length // step
    of = {"tenant": tenant.id, "start": start, "step": step, "count": number}
    sizes = {"tools": TOOLS, "versions": VERSIONS, "agents": AGENTS}
    with tenant_scope(tenant.id), connection.cursor() as cursor:
        cursor.execute(FILL, of | sizes)
        cursor.execute(SUM, of | {"since": start, "until": start + length} | FORMULA)
    return number


def _delays(folder: Path, times: int) -> int:
    """Make rules true, and print when messages about them arrive. Returns 1 if one is late."""
    from audit.alerts.rules import Rule
    from audit.alerts.stored import delete_rule, find_rule, save_rule
    from audit.deliveries.channels import create_channel
    from audit.models import ChannelKind
    from bench.batches import record_batch
    from config.process.supervise import worker_command
    from tenants.models import Tenant
    from tenants.scope import tenant_scope
    from tests.support.deliveries import HOST, Receiver, webhook_receiver

    os.environ["TOOLTRAIL_DELIVERY_ALLOW"] = HOST
    tenant = Tenant.objects.create(slug="bench", name="Bench")
    true_at: dict[str, float] = {}
    took: dict[str, float] = {}
    """Both by the name of the rule."""

    def save(name: str, condition: dict[str, Any]) -> None:
        with tenant_scope(tenant.id):
            rule = Rule.model_validate({"name": name, "condition": condition})
            save_rule(tenant, "bench", rule, datetime.now(UTC))

    def wait(receiver: Receiver, *names: str) -> None:
        deadline = time.monotonic() + 240
        while not took.keys() >= set(names) and time.monotonic() < deadline:
            for request in receiver.requests:
                name = request.document["data"]["rule"]
                if name not in took:
                    took[name] = time.time() - true_at[name]
            time.sleep(0.05)

    with webhook_receiver() as receiver:
        with tenant_scope(tenant.id):
            create_channel(tenant, "bench", ChannelKind.WEBHOOK, "hook", {"url": receiver.url})
        with (folder / "worker").open("w") as output:
            worker = subprocess.Popen(worker_command(), cwd=ROOT, stdout=output, stderr=output)
        try:
            for n in range(times):
                event, window, tool = f"event {n}", f"window {n}", f"tool-{n}"
                save(event, {"on": "event", "event": "new_tool"})
                watched = {"measure": "calls", "window_minutes": 5, "alert": 0}
                save(window, watched | {"query": f"tool:{tool}"})
                record_batch(tenant.id, _one_call(tool))
                true_at[event] = time.time()
                true_at[window] = -(-true_at[event] // 60) * 60  # the next full minute
                wait(receiver, event)
                print(f"{event}: {took.get(event, float('nan')):.1f} s", flush=True)
                with tenant_scope(tenant.id):  # a rule opens only six alerts an hour
                    stored = find_rule(event)
                    assert stored is not None
                    delete_rule(tenant, "bench", stored, datetime.now(UTC))
            wait(receiver, *true_at)
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait()
    is_late = False
    for sort, limit in (("event", LIMIT_EVENT_S), ("window", LIMIT_WINDOW_S)):
        seconds = [took.get(name, float("inf")) for name in true_at if name.startswith(sort)]
        is_late |= max(seconds) > limit
        print(
            f"{sort}: median {statistics.median(seconds):.1f} s, at most {max(seconds):.1f} s"
            f" of {times} (limit {limit:.0f} s)"
        )
    return int(is_late)


def _one_call(tool: str) -> bytes:
    """The start event of a call that starts now."""
    event = {
        "type": "toolExecutionStart",
        "invocation_id": str(uuid_utils.uuid7()),
        "trace_id": tool,
        "tool_name": tool,
        "tool_version": "1",
        "call_id": "0" * 64,
        "started_at": datetime.now(UTC).isoformat(),
        "args": {},
    }
    return json.dumps(event).encode()


if __name__ == "__main__":
    sys.exit(main())
