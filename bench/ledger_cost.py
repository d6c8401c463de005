"""What the ledger takes of the intake and of the disk: `uv run bench/ledger_cost.py`.

Starts a PostgreSQL of its own and serves executors' requests in this process, through all of
Django, alternately with the ledger and without it: `--rounds` rounds of `--events` events each
way, in requests of 500 and of 20. *Without* means no salts, commitments, leaves or head: a plain
log. The share of the intake is the median difference between neighbouring requests. The worker, a
separate process, folds and signs every ten seconds; here that is measured separately, all at once
at the end, but still more often than the worker would.

Figures are CPU time of this process and of the PostgreSQL processes that serve it. Other work on
the machine hardly affects them, while wall times of the same runs differ by half. Linux only.

Bytes per event: leaves and salts as stored in the log's rows; tiles and checkpoints with their
indexes. Limits: 10 % of throughput, by the medians; 140 B per event.
"""

import argparse
import gzip
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from uuid import UUID

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.ledger import events
from bench.own_database import own_database

if TYPE_CHECKING:
    from django.core.handlers.wsgi import WSGIHandler

LIMIT_SHARE, LIMIT_BYTES = 0.10, 140


@dataclass
class Taken:
    """µs per event: of each request with and without the ledger, and of folding and signing."""

    with_ledger: list[float] = field(default_factory=list)
    without: list[float] = field(default_factory=list)
    kept: float = 0.0


def processor_seconds() -> float:
    """CPU seconds used so far by this process and the PostgreSQL processes that serve it."""
    from django.db import connections

    served = (each.connection for each in connections.all(initialized_only=True))
    pids = ["self", *(str(one.info.backend_pid) for one in served if one is not None)]
    used = (Path(f"/proc/{pid}/schedstat").read_text().split()[0] for pid in pids)
    return sum(map(int, used)) / 1e9


@dataclass
class Executor:
    """A sender of events: its tenant and key."""

    tenant_id: UUID
    api_key: str


def new_executor(name: str) -> Executor:
    """Create an executor with a tenant of its own."""
    from tenants.keys import create_key
    from tenants.models import Scope
    from tenants.provision import ensure_tenant

    tenant = ensure_tenant(name, name)
    return Executor(tenant.id, create_key(tenant, name, [Scope.INGEST])[1])


def take_in(handler: "WSGIHandler", executor: Executor, body: bytes) -> float:
    """Serve a request; returns the CPU seconds that it took."""
    from django.test import RequestFactory

    request = RequestFactory(SERVER_NAME="localhost").post(
        "/api/v1/events",
        gzip.compress(body, 1),
        content_type="application/x-ndjson",
        headers={"Authorization": f"Bearer {executor.api_key}", "Content-Encoding": "gzip"},
    )
    began = processor_seconds()
    answer = handler.get_response(request)
    seconds = processor_seconds() - began
    if answer.status_code != 200:
        raise SystemExit(f"refused with {answer.status_code}")
    return seconds


@contextmanager
def no_ledger() -> Iterator[None]:
    """Within the block, store events as a plain log without the data for proofs."""
    from audit import sql
    from audit.intake import ingest
    from audit.sql.run import Statements

    whole = sql.QUERIES["append_batches"]
    end = whole.index(")\nINSERT INTO batch")
    head = "WITH head AS (SELECT %(event_count)b::bigint AS size_before"
    sql.QUERIES["append_bare_batches"] = head + whole[end:]
    sends = Statements.send

    def send(statements: Statements, name: str, **parameters: Any) -> Any:
        bare = "append_bare_batches" if name == "append_batches" else name
        return sends(statements, bare, **parameters)

    with ExitStack() as patched:
        patched.enter_context(patch.object(ingest, "SALT_LENGTH", 0))
        patched.enter_context(patch.object(ingest, "_leaves", lambda *_: b""))
        patched.enter_context(patch.object(Statements, "send", send))
        yield


def measure(with_it: Executor, without: Executor, rounds: int, total: int, at_once: int) -> Taken:
    """Serve requests with and without the ledger in turns; the first round is a warm-up."""
    from django.core.handlers.wsgi import WSGIHandler

    rng, times, handler = random.Random(7), Taken(), WSGIHandler()
    for number in range(rounds + 1):
        if number == 1:
            fold(with_it)
        for request in range(total // at_once):
            # In turns, so that other work on the machine affects both equally.
            for has_ledger in (True, False) if request % 2 else (False, True):
                body = events(rng, at_once)
                with nullcontext() if has_ledger else no_ledger():
                    seconds = take_in(handler, with_it if has_ledger else without, body)
                if number:
                    taken = times.with_ledger if has_ledger else times.without
                    taken.append(seconds / at_once * 1e6)
    times.kept = fold(with_it) / (rounds * total) * 1e6
    return times


def fold(executor: Executor) -> float:
    """Fold and sign new entries; returns the CPU seconds that it took."""
    from audit.ledger.signer import keep

    began = processor_seconds()
    while keep(executor.tenant_id, datetime.now(UTC), seconds=5.0):
        pass
    return processor_seconds() - began


def report(times: Taken, at_once: int) -> float:
    """Print the figures of a request size; returns the ledger's share in intake and worker."""
    bare, full = statistics.median(times.without), statistics.median(times.with_ledger)
    print(f"requests of {at_once:<18}{'best':>10}{'median':>10}   µs an event")
    print(f"  {'without the ledger':28}{min(times.without):10.2f}{bare:10.2f}")
    print(f"  {'with the ledger':28}{min(times.with_ledger):10.2f}{full:10.2f}")
    print(f"  {'fold and sign, meanwhile':38}{times.kept:10.2f}")
    pairs = list(zip(times.without, times.with_ledger, strict=True))
    share = statistics.median(1 - one / other for one, other in pairs)
    together = statistics.median(1 - one / (other + times.kept) for one, other in pairs)
    print(f"  {'share of the intake':38}{share:10.1%}")
    print(f"  {'on a single core':38}{together:10.1%}")
    return together


def bytes_an_event(executors: tuple[Executor, Executor]) -> dict[str, float]:
    """Bytes per event that the ledger adds on disk, by part."""
    from django.db import connections

    with connections["owner"].cursor() as cursor:
        sizes = []
        for executor in executors:
            cursor.execute(
                "SELECT sum(event_count), sum(length(leaves)), sum(length(payload)) FROM batch"
                " WHERE tenant_id = %s",
                [executor.tenant_id],
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
        shares = []
        for at_once in (500, 20):
            both = new_executor(f"with-{at_once}"), new_executor(f"without-{at_once}")
            total = chosen.events if at_once > 100 else chosen.events // 5
            shares.append(report(measure(*both, chosen.rounds, total, at_once), at_once))
            if at_once > 100:
                parts = bytes_an_event(both)
        print(f"{'bytes an event':30}{sum(parts.values()):10.1f}   limit {LIMIT_BYTES}")
        for name, size in parts.items():
            print(f"  {name:28}{size:10.1f}")
        print(f"share of throughput: {max(shares):.1%}, limit {LIMIT_SHARE:.0%}")
    return int(max(shares) > LIMIT_SHARE or sum(parts.values()) > LIMIT_BYTES)


if __name__ == "__main__":
    sys.exit(main())
