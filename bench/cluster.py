"""Whether a cluster stores and shows exactly what one node does, while parts of it fail.

    uv run python -m bench.cluster [--calls 200000] [--tenants 20] [--shards 8]

Starts a Citus cluster of three nodes with two web hosts, each with a worker, and one PostgreSQL
with one host. Both get the same requests with calls of all tenants. Meanwhile shards move to and
fro, one host is killed (`kill -9`) and comes back later; senders repeat at the other host what was
not answered. When all is signed, both sides are compared:

- counts of all tables of tenants, and all rows of the index, which `reindex --check` derives again;
- the bytes of the log; all entries are signed, and the signed root is that of the stored leaves
  (roots of two servers differ: salts are random, and times of receipt are their own);
- every listing of pages and API, and pages of some calls and traces. Tokens, times of receipt and
  ids that each server makes itself are masked; of pages about a server's own acts (ledger, audit
  log, evidence), of the stream, whose order is each server's own, and of counts that ran out of
  time, only the status is compared. Pages that differ
  are compared again when producers are silent on both sides, which one side is earlier.

Exits with 1 if anything differs, with 2 without Citus (`tests/support/citus.py`).
"""

import argparse
import json
import os
import queue
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from bench.cluster_pages import compare_pages
from bench.compared_side import Request, Side
from bench.generated import make_requests

CLIENTS = 4
SIZE = 500
"""Events in a request."""
SIGNED_WITHIN_S = 300
_MOVABLE = """
    SELECT s.shardid, s.nodename, s.nodeport, n.nodename, n.nodeport FROM citus_shards s
    JOIN pg_dist_node n
      ON n.shouldhaveshards AND (n.nodename, n.nodeport) <> (s.nodename, s.nodeport)
    WHERE s.table_name = 'ledger_head'::regclass ORDER BY s.shardid LIMIT 1
"""
_SILENT_S = 960.0
"""So long after the last event, no producer is heard lately on either side."""


def requests(calls: int, tenants: Sequence[str]) -> list[Request]:
    """The same requests for both sides: all tenants in turn."""
    made = [make_requests(calls // len(tenants), SIZE, seed).ready for seed in range(len(tenants))]
    return [
        (slug, *each)
        for turn in zip(*made, strict=False)
        for slug, each in zip(tenants, turn, strict=True)
    ] + [
        (slug, *each)
        for slug, ready in zip(tenants, made, strict=True)
        for each in ready[min(map(len, made)) :]
    ]


def send_all(side: Side, sent: Sequence[Request], at: Callable[[int], None]) -> float:
    """Send from several threads; `at` is called with the number of each request. The seconds."""
    waiting: queue.Queue[tuple[int, Request]] = queue.Queue()
    for numbered in enumerate(sent):
        waiting.put(numbered)
    failed: list[BaseException] = []

    def work() -> None:
        try:
            while not failed:
                number, request = waiting.get_nowait()
                at(number)
                side.send(request, first=number)
        except queue.Empty:
            return
        except BaseException as error:  # reported below
            failed.append(error)

    began = time.monotonic()
    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return time.monotonic() - began


@contextmanager
def moving_shards(side: Side) -> Iterator[list[float]]:
    """Move a group of shards to and fro until the block ends; yields the seconds of each move."""
    over, took, failed = threading.Event(), list[float](), list[BaseException]()

    def work() -> None:
        try:
            with psycopg.connect(side.site.superuser_url, autocommit=True) as superuser:
                while not over.is_set():
                    row = superuser.execute(_MOVABLE).fetchone()
                    began = time.monotonic()
                    superuser.execute(
                        "SELECT citus_move_shard_placement(%s, %s, %s, %s, %s, 'auto')", row
                    )
                    took.append(time.monotonic() - began)
        except BaseException as error:  # reported below
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]


def wait_until_signed(side: Side) -> None:
    """Wait until every entry of every tenant is signed. Exits if that takes too long."""
    deadline = time.monotonic() + SIGNED_WITHIN_S
    while time.monotonic() < deadline:
        status = json.loads(side.hosts[0].manage("ledger", "status", "--json"))
        if all(each["signed"] == each["entries"] > 0 for each in status.values()):
            return
        time.sleep(3)
    raise SystemExit(f"{side.name}: not signed after {SIGNED_WITHIN_S} s: {status}")


def compare_contents(sides: Sequence[Side]) -> tuple[Counter[str], list[str]]:
    """What is stored on both sides: how many comparisons of each kind, and what differs."""
    first, second = (side.run("contents") for side in sides)
    kinds, differences = Counter[str](), []
    for slug in sorted({*first, *second}):
        names = {**first.get(slug, {}), **second.get(slug, {})}
        for name in names:
            kinds[_kind(name)] += 1
            values = [each.get(slug, {}).get(name) for each in (first, second)]
            if values[0] != values[1] or values[0] is False:
                differences.append(f"{slug}: {name}: {values}")
    return kinds, differences


def _kind(name: str) -> str:
    return "ledger" if name.startswith("ledger: ") else name.rpartition(": ")[2]


def start(closing: ExitStack, name: str, nodes: Sequence[str], shards: int, hosts: int) -> Side:
    """Start a side: its database, its hosts, and a worker on each."""
    from tests.support.many_hosts import many_hosts

    site = closing.enter_context(many_hosts(nodes, shards=shards))
    keys = site.installation.var.parent / "keys" / "signing-keys.json"
    keys.parent.mkdir(mode=0o700)
    names = [f"host-{number}" for number in range(hosts)]
    made = [site.add(each, TOOLTRAIL_LEDGER_KEYS=str(keys)) for each in names]
    return Side(name, site, made, [host.web() for host in made])


def start_workers(side: Side) -> None:
    """Start a worker on each host; all but the first join the first one's ledgers."""
    side.hosts[0].worker()
    wait_until_signed(side)
    for host in side.hosts[1:]:
        host.manage("ledger", "join")
        host.worker()


def run_comparison(calls: int, tenants: int, shards: int) -> int:
    """Send, kill, move, compare, and print. Returns the exit code."""
    from tests.support.citus import citus_nodes
    from tests.support.many_hosts import kill

    sent = requests(calls, [f"tenant-{number}" for number in range(tenants)])
    generated_at = datetime.now(UTC)  # all times of calls are before, all of a server after
    with ExitStack() as closing:
        nodes = closing.enter_context(citus_nodes())
        cluster = start(closing, "cluster", nodes, shards, hosts=2)
        single = start(closing, "one node", (), shards, hosts=1)
        for side in (cluster, single):
            side.tenants = {each["slug"]: each for each in side.run("tenants", str(tenants))}
            start_workers(side)
        victim = cluster.hosts[1]

        def disturb(number: int) -> None:
            if number == len(sent) // 3:
                for process in victim.processes:
                    if process.poll() is None:
                        kill(process)
            elif number == len(sent) * 2 // 3:
                cluster.urls[1] = victim.web()
                victim.worker()

        with moving_shards(cluster) as moves:
            seconds = [send_all(cluster, sent, disturb)]
        seconds.append(send_all(single, sent, lambda _: None))
        silent_at = time.monotonic() + _SILENT_S
        events = sum(count for *_, count in sent)
        for side, took in zip((cluster, single), seconds, strict=True):
            print(
                f"{side.name}: {events:,} events in {took:.0f} s, answers {dict(side.answers)}",
                flush=True,
            )
            wait_until_signed(side)
            side.hosts[0].manage("reindex", "--check")
        print(f"moves of shards meanwhile: {len(moves)}, {sum(moves):.1f} s")
        kinds, differences = compare_contents((cluster, single))
        kinds_of_pages, of_pages = compare_pages((cluster, single), generated_at, silent_at)
    print(f"{'compared':20}{'how many':>12}")
    for kind, count in (kinds + kinds_of_pages).items():
        print(f"{kind:20}{count:>12,}")
    for line in [*differences, *of_pages]:
        print(line)
    print(f"{len(differences) + len(of_pages)} differences")
    return 1 if differences or of_pages else 0


def main() -> None:
    """Compare, or measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--calls", type=int, default=200_000, help="of all tenants together")
    parser.add_argument("--tenants", type=int, default=20)
    parser.add_argument("--shards", type=int, default=8, help="of each table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as folder:
        Path(folder).chmod(0o711)
        os.environ["TOOLTRAIL_VAR"] = str(Path(folder) / "var")
        try:
            sys.exit(run_comparison(options.calls, options.tenants, options.shards))
        except FileNotFoundError as error:
            print(error, file=sys.stderr)
            sys.exit(2)


if __name__ == "__main__":
    main()
