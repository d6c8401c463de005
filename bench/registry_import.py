"""How long a large import takes: `uv run bench/registry_import.py [--tools 160] [--versions 50]`.

Starts a PostgreSQL of its own and imports a document of 8,000 versions (9 MB), all published, with
the worker's functions in this process. Prints for each step the seconds of wall time, this
process's CPU time, the longest transaction, and statements per version. On a busy machine trust
the CPU time. Then a file of configuration with 1,000 tools: a dry run, applied, and applied again.
"""

import argparse
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.own_database import own_database
from bench.registry import schema

if TYPE_CHECKING:
    from tools_registry.models import ToolImport


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tools", type=int, default=160)
    parser.add_argument("--versions", type=int, default=50)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as folder,
        own_database(Path(folder), settings=("fsync = off",)),
    ):
        measure(options.tools, options.versions)
        measure_configuration(Path(folder))
    return 0


def measure(tools: int, versions: int) -> None:
    """Import the document and print the cost of each step."""
    from tenants.provision import ensure_tenant
    from tenants.scope import tenant_scope
    from tools_registry.changes import Publisher
    from tools_registry.exchange import job
    from tools_registry.exchange.applying import Way
    from tools_registry.exchange.reading import open_document

    tenant = ensure_tenant("bench", "Bench")
    data = document(tools, versions)
    print(f"{len(data) / 1e6:.1f} MB, {tools:,} tools × {versions} versions; seconds")
    print(f"{'':34}{'time':>8}{'CPU':>8}{'longest':>9}{'statements':>12}")

    def send() -> "ToolImport":
        with tenant_scope(tenant.pk):
            return job.start_import(tenant, open_document(data), "bench")

    def chunks(kept: "ToolImport") -> list[float]:
        times = []
        while True:
            began = time.perf_counter()
            has_more = job.run_slice(tenant.pk, kept.pk, seconds=0)
            times.append(time.perf_counter() - began)
            if not has_more:
                return times

    def confirm(kept: "ToolImport") -> None:
        with tenant_scope(tenant.pk):
            kept.refresh_from_db()
            assert job.confirm_import(kept, Way(False, Publisher(operator="bench"), "Because."))

    count = tools * versions
    kept = step("sent and stored", count, send)
    step("previewed", count, lambda: chunks(kept))
    confirm(kept)
    step("published", count, lambda: chunks(kept))
    again = send()
    step("previewed again, no changes", count, lambda: chunks(again))


def measure_configuration(folder: Path, tools: int = 1_000) -> None:
    """Apply a file of configuration and print the cost of each step."""
    from django.core.management import call_command

    entries = [
        {
            "name": f"tool_{n:04}",
            "description": f"Does what tool {n} does.",
            "inputSchema": schema(6, n),
            "outputSchema": schema(3, n),
        }
        for n in range(tools)
    ]
    path = folder / "config.json"
    path.write_text(json.dumps({"version": 1, "tenants": [{"slug": "declared", "tools": entries}]}))

    def apply(*options: str) -> None:
        with io.StringIO() as out, io.StringIO() as err:
            call_command("apply", str(path), *options, stdout=out, stderr=err)

    print(f"\na file of configuration with {tools:,} tools")
    step("dry run", tools, lambda: apply("--dry-run"))
    step("applied", tools, apply)
    step("applied again, no changes", tools, apply)


def step[T](name: str, count: int, do: Callable[[], T]) -> T:
    """Run a step and print its cost; if it returns a list of seconds, also the longest one."""
    with statements() as executed:
        began, cpu = time.perf_counter(), time.process_time()
        result = do()
        elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu
    longest = f"{max(result):9.2f}" if isinstance(result, list) else f"{'':9}"
    print(f"{name:34}{elapsed:8.2f}{cpu:8.2f}{longest}{len(executed) / count:12.2f}")
    return result


@contextmanager
def statements() -> Iterator[list[None]]:
    """A list that grows by one item per statement sent to the database."""
    from django.db import connection

    executed: list[None] = []

    def note(execute: Callable[..., Any], *rest: Any) -> Any:
        executed.append(None)
        return execute(*rest)

    with connection.execute_wrapper(note):
        yield executed


def document(tools: int, versions: int) -> bytes:
    """An export of a registry: tools whose versions differ in every property."""
    entries = [
        {
            "name": f"tool_{n:04}",
            "owner": "bench",
            "current_version": versions,
            "versions": [
                {
                    "version": number,
                    "state": "published",
                    "description": f"Does what tool {n} does. " * 4,
                    "input_schema": schema(6, number),
                    "output_schema": schema(3, number),
                }
                for number in range(1, versions + 1)
            ],
        }
        for n in range(tools)
    ]
    head = {"format": "tooltrail-registry", "version": 1}
    return json.dumps({**head, "tools": entries, "count": tools}).encode()


if __name__ == "__main__":
    sys.exit(main())
