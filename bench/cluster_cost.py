"""What an event costs on a cluster: statements, rate and processor time of all nodes together.

    uv run python -m bench.cluster_cost [--rounds 10] [--shards 8]

One PostgreSQL, a cluster with two workers and one with four take turns in storing requests of 500
events of one tenant, each in one process without HTTP; on the first cluster also straight at the
worker that holds the tenant. For that this script copies the list of migrations, which every commit
reads, to all nodes; the product always goes through the coordinator. All nodes share the cores of
this machine, so only ratios count. Needs Citus (`tests/support/citus.py`); exits with 2 without.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg

from bench.own_site import ROOT

_HOLDER = """
    SELECT s.nodename, s.nodeport FROM citus_shards s
    WHERE s.shardid = get_shard_id_for_distribution_column(
        'ledger_head', (SELECT id FROM tenant WHERE slug = %s)
    )
"""


@dataclass
class Measured:
    """A side that stores without HTTP, in turns with others."""

    name: str
    process: subprocess.Popen[str]
    postmasters: list[psutil.Process]
    taken: list[tuple[float, float, float]] = field(default_factory=list)
    """In turn: µs an event of wall time, of Python and of PostgreSQL."""

    def store(self) -> None:
        """Store the next requests."""
        before = self._used()
        _stdin(self.process).write("next\n")
        _stdin(self.process).flush()
        took = json.loads(_stdout(self.process).readline())
        used = self._used() - before
        times = (took["seconds"], took["python"], used)
        self.taken.append(tuple(each / took["events"] * 1e6 for each in times))

    def statements(self) -> float:
        """End the process: the statements of a request."""
        _stdin(self.process).close()
        return float(json.loads(_stdout(self.process).readline())["statements"])

    def _used(self) -> float:
        """Seconds of processor time of all nodes."""
        return sum(
            sum(each.cpu_times()[:4]) + sum(sum(child.cpu_times()[:2]) for child in each.children())
            for each in self.postmasters
        )


def _stdin(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdin is not None
    return process.stdin


def _stdout(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


@dataclass
class Store:
    """One node, or a cluster, and the environment of a host that uses it."""

    superuser_url: str
    environment: dict[str, str]
    postmasters: list[psutil.Process]

    def storing(self, closing: ExitStack, name: str, slug: str, **more: str) -> Measured:
        """Start a process that stores the calls of this tenant."""
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.cluster_side", "store", slug],
            cwd=ROOT,
            env=self.environment | more,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        closing.callback(process.kill)
        if _stdout(process).readline() != "ready\n":
            raise SystemExit(f"{name} does not start")
        return Measured(name, process, self.postmasters)

    def at_the_worker(self, slug: str) -> str:
        """DATABASE_URL at the node that holds this tenant, which exists."""
        with psycopg.connect(self.superuser_url, autocommit=True) as superuser:
            superuser.execute("SELECT create_reference_table('django_migrations')")
            host, port = superuser.execute(_HOLDER, [slug]).fetchone() or ("", 0)
        parts = urlsplit(self.environment["DATABASE_URL"])
        login = parts.netloc.rpartition("@")[0]
        return urlunsplit(parts._replace(netloc=f"{login}@{host}:{port}"))


def start(closing: ExitStack, workers: int, shards: int) -> Store:
    """Start one node, or a cluster with so many workers."""
    from tests.support.citus import citus_nodes
    from tests.support.many_hosts import many_hosts

    nodes = closing.enter_context(citus_nodes(workers)) if workers else []
    site = closing.enter_context(many_hosts(nodes, shards=shards))
    postmasters = []
    for url in nodes or [site.superuser_url]:
        with psycopg.connect(url) as connection:
            backend = psutil.Process(connection.info.backend_pid)
            postmasters.append(cast(psutil.Process, backend.parent()))
    return Store(site.superuser_url, site.add("host").environment, postmasters)


def run_figures(rounds: int, shards: int) -> None:
    """Store in turns, and print what an event costs on each side: medians."""
    with ExitStack() as closing:
        node, two, four = (start(closing, workers, shards) for workers in (0, 2, 4))
        sides = [
            node.storing(closing, "one node", "stored"),
            two.storing(closing, "2 workers", "stored"),
            four.storing(closing, "4 workers", "stored"),
        ]
        subprocess.run(  # through the coordinator: users are there only
            [sys.executable, "manage.py", "tenant", "create", "straight", "--admin", "straight-a"],
            cwd=ROOT,
            env=two.environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        url = two.at_the_worker("straight")
        sides.append(two.storing(closing, "at worker", "straight", DATABASE_URL=url))
        for _ in range(rounds):
            for side in sides:
                side.store()
        print(f"{'µs an event':12}{'wall':>9}{'Python':>9}{'nodes':>9}{'statements a request':>24}")
        medians = []
        for side in sides:
            medians.append([statistics.median(each) for each in zip(*side.taken, strict=True)])
            shown = "".join(f"{each:>9.1f}" for each in medians[-1])
            print(f"{side.name:12}{shown}{side.statements():>24.1f}")
        (one, *_), (coordinator, _, used), (_, _, used_by_four), (straight, *_) = medians
        print(f"rate through the coordinator / one node: {one / coordinator:.2f}")
        print(f"rate straight at the worker / one node: {one / straight:.2f}")
        print(f"processor time of all nodes, 4 workers / 2: {used_by_four / used:.2f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=10, help="of 5,000 events for each side")
    parser.add_argument("--shards", type=int, default=8, help="of each table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as folder:
        Path(folder).chmod(0o711)
        os.environ["TOOLTRAIL_VAR"] = str(Path(folder) / "var")
        try:
            run_figures(options.rounds, options.shards)
        except FileNotFoundError as error:
            print(error, file=sys.stderr)
            sys.exit(2)


if __name__ == "__main__":
    main()
