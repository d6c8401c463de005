"""How long it takes to list the population of an auditor's sample, and to draw from it (Linux).

    uv run python -m bench.sampling [--calls 10000 100000 1000000] [--profile]

Fills index and log of a database of its own: batches of 250 calls, whose leaves are random. Prints
for each size: seconds, the processor time of this process and of PostgreSQL's, and the peak of this
process's memory, of the listing with its digest and of the draw. A population beyond the limit is
refused; the time is that until then. `--profile` names the functions in which the time goes.
"""

import argparse
import cProfile
import pstats
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from bench.apart import SETTINGS, database_seconds
from bench.own_database import own_database

_CALLS_IN_BATCH = 250
_DAYS = 10
_SIZE = 60
_FILL = """
INSERT INTO invocation (
    tenant_id, started_on, invocation_id, started_at, ended_at, duration_us, state, tool_name,
    tool_version, trace_id, call_id, error_type, attempt, violation_count, prompt_tokens,
    completion_tokens, cache_hit, run_id, collection_id, producer_id, start_batch_id, start_pos,
    end_batch_id, end_pos, pair_conflict
)
SELECT %(tenant)s, (at AT TIME ZONE 'UTC')::date, gen_random_uuid(), at, at, 1000, 'ok',
       'tool-' || n %% 20, '1', 'trace-' || n / 5, md5(n::text), '', 1, 0, 0, 0, FALSE,
       'run-' || n / 50, 'c', 'host', batch, 2 * (n %% %(width)s), batch, 2 * (n %% %(width)s) + 1,
       FALSE
FROM (
    SELECT n, %(start)s::timestamptz + %(step)s * n AS at,
           (%(batches)s::uuid[])[n / %(width)s + 1] AS batch
    FROM generate_series(0, %(last)s) AS n
) AS calls
"""
_BATCHES = """
INSERT INTO batch (
    tenant_id, batch_on, batch_id, received_at, first_index, event_count, body_sha256, answer,
    leaves
)
SELECT %(tenant)s, batch_on, batch_id, now(), (n - 1) * %(events)s, %(events)s, '', '{}', leaves
FROM unnest(%(days)s::date[], %(ids)s::uuid[], %(leaves)s::bytea[]) WITH ORDINALITY
     AS given (batch_on, batch_id, leaves, n)
"""


def main() -> int:
    """Print two lines for each size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        own_database(Path(folder), settings=SETTINGS),
    ):
        print(f"{'calls':>9}  {'':10}{'s':>8}{'own s':>8}{'db s':>8}{'MB':>6}")
        for calls in asked.calls:
            _measure(calls, with_profile=asked.profile)
    return 0


def _measure(calls: int, *, with_profile: bool) -> None:
    from audit.ledger.actions import enter_all_actions
    from audit.models import SampleState
    from audit.queries.call_query import Reader, parse
    from audit.sampling.collecting import Wanted, find_sample, run_slice, start_sample
    from audit.sampling.drawing import draw_sample
    from tenants.models import Tenant
    from tenants.scope import tenant_scope

    tenant = Tenant.objects.create(slug=f"bench-{calls}", name="Bench")
    _fill(tenant.id, calls)
    with tenant_scope(tenant.id):
        wanted = Wanted("bench", parse("", Reader()), _SIZE, None)
        sample = start_sample(tenant, "bench", wanted, datetime.now(UTC))

    def list_all() -> None:
        while run_slice(tenant.id, sample.id):
            pass

    def draw() -> None:
        with tenant_scope(tenant.id):
            draw_sample(tenant, "bench", sample.id, "", datetime.now(UTC))

    with _measured(calls, "listing", with_profile=with_profile):
        list_all()
    with tenant_scope(tenant.id):
        listed = find_sample(sample.id)
    assert listed is not None
    if listed.state == SampleState.FAILED:
        print(f"{'':11}{listed.problem}", flush=True)
        return
    enter_all_actions(tenant.id)
    _sign(tenant.id)
    with _measured(calls, "draw", with_profile=with_profile):
        draw()


@contextmanager
def _measured(calls: int, what: str, *, with_profile: bool) -> Iterator[None]:
    """Print what the block takes."""
    profile = cProfile.Profile()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins again
    before = _memory("VmRSS")
    began, used, of_database = time.perf_counter(), time.process_time(), database_seconds()
    if with_profile:
        profile.enable()
    yield
    profile.disable()
    took = time.perf_counter() - began
    own, database = time.process_time() - used, database_seconds() - of_database
    memory = _memory("VmHWM") - before
    print(
        f"{calls:>9,}  {what:10}{took:8.2f}{own:8.2f}{database:8.2f}{memory:6}",
        flush=True,
    )
    if with_profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(14)


def _memory(name: str) -> int:
    """A figure of this process's memory, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [each for each in lines if each.startswith(f"{name}:")]
    return int(line.split()[1]) // 1024


def _fill(tenant_id: UUID, calls: int) -> None:
    """Store so many calls over the last days, in batches that arrived now."""
    import uuid_utils.compat
    from django.db import connection, connections

    from audit.events.batch_ids import batch_day
    from tenants.scope import tenant_scope

    events, count = 2 * _CALLS_IN_BATCH, -(-calls // _CALLS_IN_BATCH)
    ids = [uuid_utils.compat.uuid7() for _ in range(count)]
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        cursor.execute(
            _BATCHES,
            {
                "tenant": tenant_id,
                "events": events,
                "days": [batch_day(each) for each in ids],
                "ids": ids,
                "leaves": [secrets.token_bytes(32 * events) for _ in ids],
            },
        )
        cursor.execute(
            "INSERT INTO ledger_head (tenant_id, size) VALUES (%s, %s)",
            [tenant_id, count * events],
        )
        values: dict[str, Any] = {
            "tenant": tenant_id,
            "start": datetime.now(UTC) - timedelta(days=_DAYS),
            "step": timedelta(days=_DAYS) / calls,
            "batches": ids,
            "width": _CALLS_IN_BATCH,
            "last": calls - 1,
        }
        cursor.execute(_FILL, values)
    with connections["owner"].cursor() as cursor:
        cursor.execute("VACUUM ANALYZE invocation, batch")


def _sign(tenant_id: UUID) -> None:
    """Store a checkpoint with all entries. The draw reads its size and root only."""
    from django.db import connections

    from audit.ledger.status import ledger_status
    from tenants.scope import tenant_scope

    with tenant_scope(tenant_id):
        size = ledger_status(tenant_id).size
    with tenant_scope(tenant_id, using="keeper"), connections["keeper"].cursor() as cursor:
        cursor.execute(
            "INSERT INTO ledger_checkpoint (tenant_id, epoch, size, origin, root, note, signed_at)"
            " VALUES (%s, 0, %s, 'bench', %s, '', now())",
            [tenant_id, size, secrets.token_bytes(32)],
        )


if __name__ == "__main__":
    sys.exit(main())
