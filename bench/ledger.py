"""What the ledger costs, and how fast it proves: `uv run bench/ledger.py [--entries 1000000]`.

Starts a PostgreSQL of its own and measures in this process; nothing else should run:

- *fold, sign*: stores requests of 500 and of 20 events. After every `--every` events it folds and
  signs them; at full speed this is several times as often as the worker does. Prints the cost
  relative to the intake, as if one core did both in sequence; in fact the worker is a separate
  process. Limit: 10 %.
- *proofs of a log of `--entries`* with random leaves, read from the database, each checked against
  the signed root: best, median and 99th percentile of 300 proofs, in ms. Limit: 20.
- *proofs of a log of 100 million*, of which only the tiles for 300 proofs exist, with random
  hashes: the largest number of hashes, and the times without the check. Limits: 27, and 20 ms.
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.own_database import own_database

if TYPE_CHECKING:
    from tenants.models import Tenant

HUGE = 100_000_000
PROOFS = 300
LIMIT_MS, LIMIT_HASHES, LIMIT_SHARE = 20.0, 27, 0.10


def events(rng: random.Random, count: int) -> bytes:
    """A request body with so many events, two per call, of about 1.2 KB each."""
    lines = []
    at = datetime.now(UTC) - timedelta(minutes=5)
    for _ in range(count // 2):
        shared: dict[str, Any] = {
            "invocation_id": str(UUID(int=rng.getrandbits(128), version=4)),
            "trace_id": f"{rng.getrandbits(128):032x}",
            "tool_name": f"tool_{rng.randrange(40)}",
            "call_id": f"{rng.getrandbits(256):064x}",
            "started_at": at.isoformat(),
        }
        text = f"{rng.getrandbits(3200):x}"
        lines.append({"type": "toolExecutionStart", **shared, "args": {"query": text}})
        end: dict[str, Any] = {"ended_at": at.isoformat(), "duration_ms": 12.5, "is_error": False}
        output = {"status": "ok", "data": {"text": text}, "meta": {"took_ms": 12}}
        lines.append({"type": "toolExecutionEnd", **shared, **end, "output": output})
    return b"\n".join(json.dumps(line).encode() for line in lines)


def cost(tenant: "Tenant", total: int, at_once: int, every: int) -> tuple[float, float]:
    """µs per event of the intake, and of folding and signing."""
    from audit.ledger.signer import keep
    from bench.batches import record_batch

    rng = random.Random(7)
    bodies = [events(rng, at_once) for _ in range(total // at_once)]
    intake = ledger = 0.0
    now = datetime.now(UTC)
    since = 0
    for body in bodies:
        began = time.perf_counter()
        record_batch(tenant.id, body)
        intake += time.perf_counter() - began
        since += at_once
        if since >= every:
            since, now = 0, now + timedelta(minutes=1)
            began = time.perf_counter()
            while keep(tenant.id, now, seconds=5.0):
                pass
            ledger += time.perf_counter() - began
    return intake / total * 1e6, ledger / total * 1e6


def append(tenant: "Tenant", total: int) -> None:
    """Append random leaves, a thousand per batch, then fold and sign them."""
    from django.db import connections

    from audit.events.batch_ids import batch_day
    from audit.ledger.signer import keep
    from tenants.models import new_id
    from tenants.scope import tenant_scope

    with tenant_scope(tenant.id), connections["default"].cursor() as cursor:
        cursor.execute("INSERT INTO ledger_head VALUES (%s, %s)", [tenant.id, total])
        for first in range(0, total, 1000):
            batch_id, count = new_id(), min(1000, total - first)
            cursor.execute(
                "INSERT INTO batch (tenant_id, batch_on, batch_id, received_at, first_index,"
                " event_count, body_sha256, answer, leaves)"
                " VALUES (%s, %s, %s, now(), %s, %s, '', '', %s)",
                [tenant.id, batch_day(batch_id), batch_id, first, count, os.urandom(32 * count)],
            )
    began = time.perf_counter()
    while keep(tenant.id, datetime.now(UTC), seconds=60.0):
        pass
    seconds = time.perf_counter() - began
    print(
        f"fold and sign {total:,} entries at once: {seconds:.2f} s, "
        f"{seconds / total * 1e6:.2f} µs each"
    )


def sparse(tenant: "Tenant", places: list[tuple[int, int]]) -> None:
    """Store the tiles of 100 million entries that the proofs for (index, old size) read."""
    from tooltrail.ledger import tiles_of_consistency, tiles_of_inclusion

    from audit.sql import arrays
    from audit.sql.run import run
    from config.postgresql.aliases import KEEPER
    from tenants.scope import tenant_scope

    tiles = set()
    for index, old in places:
        tiles |= tiles_of_inclusion(index, HUGE) | tiles_of_consistency(old, HUGE)
    ordered = sorted(tiles)
    with tenant_scope(tenant.id, using=KEEPER):
        run(
            "grow_tiles",
            using=KEEPER,
            levels=arrays.ints([tile.level for tile in ordered]),
            indexes=arrays.bigints([tile.index for tile in ordered]),
            hashes=arrays.blobs([os.urandom(32 * tile.width) for tile in ordered]),
        )


def timed(name: str, ask: Callable[[int, int], int], places: list[tuple[int, int]]) -> bool:
    """Request each proof, print times and largest number of hashes; whether p99 is in the limit."""
    taken, hashes = [], 0
    for one in places:
        began = time.perf_counter()
        hashes = max(hashes, ask(*one))
        taken.append((time.perf_counter() - began) * 1e3)
    taken.sort()
    p99 = taken[int(len(taken) * 0.99)]
    print(
        f"{name:44}{taken[0]:8.2f}{statistics.median(taken):8.2f}{p99:8.2f} ms"
        f"{hashes:6} hashes at most"
    )
    return p99 <= LIMIT_MS


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--entries", type=int, default=1_000_000)
    options.add_argument("--events", type=int, default=40_000, help="taken in")
    options.add_argument("--every", type=int, default=10_000, help="events from fold to fold")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, own_database(Path(folder)):
        from audit.ledger import proofs
        from audit.ledger.tree import StoredTree
        from tenants.provision import ensure_tenant
        from tenants.scope import tenant_scope

        fine = True
        for at_once in (500, 20):
            tenant = ensure_tenant(f"intake-{at_once}", "Intake")
            total = chosen.events if at_once > 100 else chosen.events // 4
            intake, ledger = cost(tenant, total, at_once, chosen.every)
            fine &= ledger / intake <= LIMIT_SHARE
            print(
                f"requests of {at_once}: intake {intake:.1f} µs an event, fold and sign"
                f" {ledger:.2f}: {ledger / intake:.1%} (limit {LIMIT_SHARE:.0%})"
            )
        tenant = ensure_tenant("large", "Large")
        append(tenant, chosen.entries)
        rng = random.Random(3)
        size = chosen.entries
        places = [(rng.randrange(size), rng.randrange(1, size)) for _ in range(PROOFS)]

        def proved(index: int, _: int) -> int:
            with tenant_scope(tenant.id):
                return len(proofs.inclusion(index).hashes)

        def consistent(_: int, old: int) -> int:
            with tenant_scope(tenant.id):
                return len(StoredTree(tenant.id, size).consistency(old))

        print(f"{'':44}{'best':>8}{'median':>8}{'p99':>8}")
        fine &= timed(f"inclusion, {size:,}, checked", proved, places)
        fine &= timed(f"consistency, {size:,}", consistent, places)
        huge = ensure_tenant("huge", "Huge")
        places = [(rng.randrange(HUGE), rng.randrange(1, HUGE)) for _ in range(PROOFS)]
        sparse(huge, places)
        most = [0]

        def huge_inclusion(index: int, _: int) -> int:
            with tenant_scope(huge.id):
                most[0] = max(most[0], len(StoredTree(huge.id, HUGE).inclusion(index)))
            return most[0]

        def huge_consistency(_: int, old: int) -> int:
            with tenant_scope(huge.id):
                return len(StoredTree(huge.id, HUGE).consistency(old))

        fine &= timed(f"inclusion, {HUGE:,}", huge_inclusion, places)
        fine &= timed(f"consistency, {HUGE:,}", huge_consistency, places)
        print(f"tiles and checkpoints: {_bytes(tenant.id) / chosen.entries:.1f} B an entry")
        return int(not fine or most[0] > LIMIT_HASHES)


def _bytes(tenant_id: UUID) -> int:
    from django.db import connections

    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT sum(length(hashes) + 60) FROM ledger_tile WHERE tenant_id = %s)"
            " + (SELECT sum(length(note) + 120) FROM ledger_checkpoint WHERE tenant_id = %s)",
            [tenant_id, tenant_id],
        )
        return int(cursor.fetchone()[0])


if __name__ == "__main__":
    sys.exit(main())
