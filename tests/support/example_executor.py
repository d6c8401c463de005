"""An executor of the kind that users run: it uses the SDK and nothing else of this repository.

A program for `tests/acceptance`: `python example_executor.py TRACE COMMAND …`. It reports each
step on stdout with the time (seconds since the epoch), and waits for a line on stdin where the
step says so.

    hold            one call, in progress until a line comes
    work N DEPTH    N calls, then one more in whose midst it kills itself, DEPTH calls deep
    once            one call, and the end as any program's
"""

import os
import signal
import sys
import time
from pathlib import Path

from tooltrail import Trail

SCHEMA = {
    "type": "object",
    "properties": {"pages": {"type": "integer"}},
    "required": ["pages"],
}
trail = Trail()


def report(what: str) -> None:
    sys.stdout.write(f"{what} {time.time()}\n")
    sys.stdout.flush()


@trail.tool(version="1", timeouts_ms=60_000)
def export_report(name: str) -> str:
    """Wait for a line on standard input."""
    report("running")
    sys.stdin.readline()
    return f"{name}.pdf"


@trail.tool(version="3", output_schema=SCHEMA, on_invalid="coerce-and-warn")
def count_pages(number: int) -> dict[str, object]:
    """Count the bytes of an existing file."""
    return {"pages": str(Path(__file__).stat().st_size + number)}


@trail.tool(version="1")
def dig(depth: int) -> None:
    """Call itself, and at the bottom be killed as by the kernel: no cleaning up."""
    if depth > 1:
        dig(depth - 1)
    os.kill(os.getpid(), signal.SIGKILL)


def main(trace_id: str, command: str, *numbers: str) -> None:
    """Run the command in one trace."""
    assert not {"django", "psycopg", "config", "audit"} & sys.modules.keys()
    with trail.trace(trace_id, run_id="graph_run_1"):
        match command:
            case "hold":
                export_report("march")
                report("returned")
            case "work":
                count, depth = map(int, numbers)
                for number in range(count):
                    count_pages(number)
                dig(depth)
            case "once":
                count_pages(0)
            case _:
                sys.exit(f"no such command: {command}")


if __name__ == "__main__":
    main(*sys.argv[1:])
