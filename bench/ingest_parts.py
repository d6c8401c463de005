"""The cost of storing an event, part by part, and the rate of a plain COPY of the same rows.

`bench/ingest.py` runs it on its installation, without HTTP: one request after another in one
process, waiting for each statement, so that each time belongs to one statement. Prints a table of
times. Where instructions can be counted, which are free of noise, it also prints a table of
Python's instructions and one of PostgreSQL's.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import django

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db import connections

from audit.events import body
from audit.events.batch_ids import choose_batch_id
from audit.index import indexing, writer
from audit.intake import ingest
from audit.sql.run import Statements
from bench.generated import make_requests
from bench.instructions import InstructionCounter
from config.postgresql.base import DatabaseWrapper
from tenants import scope

PARTS: dict[str, list[tuple[Any, str]]] = {
    "inflate": [(body, "inflate")],
    "split into lines": [(body, "split_lines")],
    "validate": [(ingest, "read_lines")],
    "merge, project": [
        (indexing, "merge"),
        (indexing, "settle_on_stored_days"),
        (writer, "project"),
    ],
    "encode columns": [(writer, "call_columns")],
    "derive": [(indexing, "derive")],
    "hash": [(ingest, "_leaves")],
    "compress": [(ingest, "pack")],
    "commit": [(DatabaseWrapper, "_commit")],
}
"""Functions per part; a listed function called by another one counts for its own part only."""


class Times:
    """The time of each part by `clock`, without the time of other parts inside it."""

    def __init__(self) -> None:
        self.clock: Callable[[], float] = time.perf_counter
        self.taken: dict[str, float] = {}
        self._inner: list[float] = []

    def timed(self, part: str, run: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function, so that its time counts for `part`."""

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self.of(part):
                return run(*args, **kwargs)

        return wrapper

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Count the time of this block for `part`."""
        self._inner.append(0.0)
        began = self.clock()
        try:
            yield
        finally:
            elapsed = self.clock() - began
            self.taken[part] = self.taken.get(part, 0.0) + elapsed - self._inner.pop()
            if self._inner:
                self._inner[-1] += elapsed


def watch(times: Times) -> None:
    """Patch the parts to be timed, and turn off pipelining, so that statements run one by one."""
    for part, functions in PARTS.items():
        for owner, name in functions:
            setattr(owner, name, times.timed(part, getattr(owner, name)))
    run = Statements._execute

    def execute(self: Statements, name: str, parameters: dict[str, Any]) -> Any:
        with times.of(f"  {name}"):
            return run(self, name, parameters)

    @contextmanager
    def no_pipeline(_: str) -> Iterator[None]:
        yield

    Statements._execute = execute  # type: ignore[method-assign]  # timed
    setattr(scope, "_pipeline", no_pipeline)  # noqa: B010  # mypy forbids the assignment


def store(tenant_id: UUID, batch_id: str, sent: bytes) -> int:
    """Store a request as the view does; returns its number of events."""
    now = datetime.now(UTC)
    raw = body.inflate(sent, "gzip")
    lines = body.split_lines(raw)
    batch = choose_batch_id(batch_id, now)
    ingest.record_batches([ingest.read_request(tenant_id, raw, lines, batch, now)])
    return len(lines)


def copied(tenant_id: UUID, size: int) -> float:
    """Events per second of a plain binary COPY of the same rows, with the same keys and indexes.

    A transaction has as many rows as a request of `size` events has calls.
    """
    with connections["owner"].cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS bench_copy")
        cursor.execute("CREATE TABLE bench_copy (LIKE invocation INCLUDING ALL)")
        raw = cursor.connection
        chunks = []
        query = "SELECT invocation_id FROM invocation WHERE tenant_id = %s ORDER BY 1 LIMIT 10000"
        ids = [row[0] for row in raw.execute(query, [tenant_id])]
        for at in range(0, len(ids), size // 2):
            rows = (
                f"COPY (SELECT * FROM invocation WHERE tenant_id = '{tenant_id}'"
                f" AND invocation_id = ANY('{{{','.join(map(str, ids[at : at + size // 2]))}}}'))"
                " TO STDOUT (FORMAT binary)"
            )
            with raw.cursor().copy(rows) as copy:
                chunks.append(b"".join(copy))
        began = time.perf_counter()
        for chunk in chunks:  # each a transaction: the connection is in autocommit
            with raw.cursor().copy("COPY bench_copy FROM STDIN (FORMAT binary)") as copy:
                copy.write(chunk)
        elapsed = time.perf_counter() - began
        cursor.execute("DROP TABLE bench_copy")
    return 2 * len(ids) / elapsed


def print_parts(what: str, tenant_id: UUID, sizes: list[int], times: Times, unit: float) -> None:
    """Store requests of each size and print the cost of each part by `times.clock`."""
    columns: dict[int, dict[str, float]] = {}
    for number, size in enumerate(sizes):
        requests = make_requests(max(1_000, size * 10), size, seed=time.time_ns() + number).ready
        warm, measured = requests[: len(requests) // 5 + 1], requests[len(requests) // 5 + 1 :]
        for batch_id, sent, _ in warm:
            store(tenant_id, batch_id, sent)
        times.taken.clear()
        began = times.clock()
        events = sum(store(tenant_id, batch_id, sent) for batch_id, sent, _ in measured)
        whole = times.clock() - began
        columns[size] = {part: each / events for part, each in times.taken.items()}
        columns[size]["all the rest"] = (whole - sum(times.taken.values())) / events
        columns[size]["together"] = whole / events
    print(f"\n{f'{what}, in requests of':42}" + "".join(f"{size:>10}" for size in sizes))
    for part in columns[sizes[0]]:
        row = "".join(f"{columns[size].get(part, 0) * unit:>10,.1f}" for size in sizes)
        print(f"{part:42}{row}")


def _backend_pid() -> int:
    connection = connections["default"]
    connection.ensure_connection()
    return int(connection.connection.info.backend_pid)


def main() -> None:
    """Measure and print; arguments: the tenant, then SIZE=EVENTS_PER_SECOND reached over HTTP."""
    tenant_id = UUID(sys.argv[1])
    reached = {int(size): int(rate) for size, rate in (arg.split("=") for arg in sys.argv[2:])}
    sizes = list(reached)
    times = Times()
    watch(times)
    print_parts("µs an event", tenant_id, sizes, times, 1e6)
    try:
        own, database = InstructionCounter(), InstructionCounter(_backend_pid())
    except OSError as error:
        print(f"\ninstructions cannot be counted here: {error}")
    else:
        for name, counter in (("Python", own), ("PostgreSQL", database)):
            times.clock = counter.read
            print_parts(f"{name}'s instructions an event", tenant_id, sizes, times, 1)
    times.clock = time.perf_counter
    limits = {size: copied(tenant_id, size) for size in sizes}
    row = "".join(f"{limits[size]:>10,.0f}" for size in sizes)
    print(f"{'events/s, rows just copied':42}{row}")
    row = "".join(f"{reached[size] / limits[size]:>10.0%}" for size in sizes)
    print(f"{'reached over HTTP, of that':42}{row}")


if __name__ == "__main__":
    main()
