"""What the ledger takes of the intake and of the disk: `uv run bench/ledger_cost.py`.

Starts a PostgreSQL of its own and, in this process, takes in requests with the ledger and without
it, turn and turn about: `--rounds` rounds of `--events` events each way, in requests of 500 and
of 20. *Without* means no salts, no commitments, no leaves, no head: the log is a log. What
differs is the intake's own share; folding and signing is the worker's, a process of its own, and
is timed apart, once a round, several times as often as the worker does it at this speed.

Figures are processor time, of this process and of PostgreSQL's that serve it, which other work on
the machine hardly changes; by the clock the same runs differ by half. Linux only.

Bytes an event: leaves and salts as they lie in the log's rows, tiles and checkpoints with their
indexes. Limits: 10 % of throughput, by the medians; 140 B an event.
"""

import argparse
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.ledger import events  # noqa: E402  (found through the path set above)
from bench.own_database import own_database  # noqa: E402

LIMIT_SHARE, LIMIT_BYTES = 0.10, 140


@dataclass
class Taken:
    """µs an event: of each request with the ledger and without it, of each folding."""

    with_ledger: list[float] = field(default_factory=list)
    without: list[float] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)


def processor_seconds() -> float:
    """What this process, and those of PostgreSQL's that serve it, have used so far."""
    from django.db import connections

    served = (each.connection for each in connections.all(initialized_only=True))
    pids = ["self", *(str(one.info.backend_pid) for one in served if one is not None)]
    used = (Path(f"/proc/{pid}/schedstat").read_text().split()[0] for pid in pids)
    return sum(map(int, used)) / 1e9


def take_in(tenant_id: UUID, body: bytes) -> float:
    """Record a request; the seconds it took."""
    from audit.batch_ids import BatchId
    from audit.body import split_lines
    from audit.ingest import record_batch
    from tenants.models import new_id

    began = processor_seconds()
    record_batch(tenant_id, body, split_lines(body), BatchId(new_id()), datetime.now(UTC))
    return processor_seconds() - began


@contextmanager
def no_ledger() -> Iterator[None]:
    """Take events in as a log that nobody can prove anything by."""
    from audit import ingest
    from audit.index_writer import IndexWriter

    does, size = IndexWriter.run, [0]

    def run(writer: IndexWriter, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        if name != "advance_ledger":
            return does(writer, name, **parameters)
        size[0] += parameters["event_count"]
        return [(size[0],)]

    with ExitStack() as patched:
        patched.enter_context(patch.object(ingest, "SALT_LENGTH", 0))
        patched.enter_context(patch.object(ingest, "_leaves", lambda *_: b""))
        patched.enter_context(patch.object(IndexWriter, "run", run))
        yield


def measure(tenants: tuple[UUID, UUID], rounds: int, total: int, at_once: int) -> Taken:
    """Request by request in turn; the first round warms up and is not counted."""
    from audit.ledger.signer import keep

    rng, now, found = random.Random(7), datetime.now(UTC), Taken()
    for number in range(rounds + 1):
        for request in range(total // at_once):
            # Whatever else the machine does meets both alike.
            for with_ledger in (True, False) if request % 2 else (False, True):
                body = events(rng, at_once)
                with nullcontext() if with_ledger else no_ledger():
                    seconds = take_in(tenants[not with_ledger], body)
                if number:
                    taken = found.with_ledger if with_ledger else found.without
                    taken.append(seconds / at_once * 1e6)
        now += timedelta(minutes=1)
        began = processor_seconds()
        while keep(tenants[0], now, seconds=5.0):
            pass
        if number:
            found.kept.append((processor_seconds() - began) / total * 1e6)
    return found


def told(found: Taken, at_once: int) -> float:
    """Print a size of request; the intake's share by the medians."""
    print(f"requests of {at_once:<18}{'best':>10}{'median':>10}   µs an event")
    figures: list[tuple[float, float]] = [
        (min(taken), statistics.median(taken))
        for taken in (found.without, found.with_ledger, found.kept)
    ]
    names = "without the ledger", "with it", "fold and sign, beside"
    for name, (best, median) in zip(names, figures, strict=True):
        print(f"  {name:28}{best:10.2f}{median:10.2f}")
    best_share, median_share = (1 - bare / full for bare, full in zip(*figures[:2], strict=True))
    whole = [1 - bare / (full + kept) for bare, full, kept in zip(*figures, strict=True)]
    shares = {"share of the intake": [best_share, median_share], "if one core did both": whole}
    for name, (best, median) in shares.items():
        print(f"  {name:28}{best:10.1%}{median:10.1%}")
    return float(median_share)


def bytes_an_event(tenants: tuple[UUID, UUID]) -> dict[str, float]:
    """What the ledger adds to the disk, by part."""
    from django.db import connections

    with connections["owner"].cursor() as cursor:
        sizes = []
        for tenant_id in tenants:
            cursor.execute(
                "SELECT sum(event_count), sum(length(leaves)), sum(length(payload)) FROM batch"
                " WHERE tenant_id = %s",
                [tenant_id],
            )
            count, leaves, payload = cursor.fetchone()
            sizes.append((int(count), int(leaves), int(payload)))
        (count, leaves, payload), (bare_count, _, bare_payload) = sizes
        cursor.execute("VACUUM FULL ledger_tile, ledger_checkpoint")
        cursor.execute(
            "SELECT pg_total_relation_size('ledger_tile'),"
            " pg_total_relation_size('ledger_checkpoint'),"
            " (SELECT sum(size) FROM ledger_head)"
        )
        tiles, checkpoints, whole = (int(each) for each in cursor.fetchone())
    return {
        "leaves": leaves / count,
        "salts": payload / count - bare_payload / bare_count,
        "tiles": tiles / whole,
        "checkpoints": checkpoints / whole,
    }


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--events", type=int, default=5_000, help="of a round")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, own_database(Path(folder)):
        from tenants.provision import ensure_tenant

        shares = []
        for at_once in (500, 20):
            tenants = (
                ensure_tenant(f"with-{at_once}", "With").id,
                ensure_tenant(f"without-{at_once}", "Without").id,
            )
            total = chosen.events if at_once > 100 else chosen.events // 5
            shares.append(told(measure(tenants, chosen.rounds, total, at_once), at_once))
            if at_once > 100:
                parts = bytes_an_event(tenants)
        print(f"{'bytes an event':30}{sum(parts.values()):10.1f}   limit {LIMIT_BYTES}")
        for name, size in parts.items():
            print(f"  {name:28}{size:10.1f}")
        print(f"share of throughput: {max(shares):.1%}, limit {LIMIT_SHARE:.0%}")
    return int(max(shares) > LIMIT_SHARE or sum(parts.values()) > LIMIT_BYTES)


if __name__ == "__main__":
    sys.exit(main())
