"""How long the guard takes: `uv run bench/guard.py`. Prints a table, fails above its limits.

The figures of tool-output-guard 0.3.2 (Node 20, warm) are from a machine like the one on which
this bench was written; compare ratios rather than absolute values.
"""

import json
import sys
import time
import timeit
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tooltrail.guard import create_guard, validate

DATA = Path(__file__).parent / "data"
# name, file, target in µs, Node's µs
CASES = (
    ("small", "small", 2, 0.6),
    ("medium", "medium", 8, 15),
    ("large", "large_1000", 400, 1071),
)
FAILING_TARGET = 150


def microseconds(call: Callable[[], object]) -> float:
    """The best of seven rounds of about 50 ms, in CPU time, which other work hardly affects."""
    timer = timeit.Timer(call, timer=time.process_time)
    number = max(1, int(timer.autorange()[0] / 4))
    return min(timer.repeat(7, number)) / number * 1e6


def broken(value: Any) -> Any:
    """The same value with every text, number and boolean of the wrong type."""
    if isinstance(value, dict):
        return {name: broken(member) for name, member in value.items()}
    if isinstance(value, list):
        return [broken(item) for item in value]
    return 1 if isinstance(value, str) else "x"


def main() -> int:
    rows: list[tuple[str, float, float, str]] = []
    for name, file, target, node in CASES:
        case = json.loads((DATA / f"{file}.json").read_text())
        schema, data = case["schema"], case["data"]
        assert validate(data, schema).data is data
        time_us = microseconds(partial(validate, data, schema))
        rows.append((f"validate, {name}, valid", time_us, target, f"{node:g}"))
        time_us = microseconds(partial(create_guard(schema).enforce, data))
        rows.append((f"Guard.enforce, {name}, valid", time_us, target, ""))
        if name == "medium":
            worst = broken(data)
            count = len(validate(worst, schema).violations)
            time_us = microseconds(partial(validate, worst, schema))
            rows.append(
                (f"validate, {name}, all {count} values wrong", time_us, FAILING_TARGET, "")
            )
    print(f"{'':44} {'µs':>8} {'target':>8} {'Node':>8}")
    for label, time_us, limit, reference in rows:
        print(f"{label:44} {time_us:8.2f} {limit:8g} {reference:>8}")
    return int(any(time_us > limit for _, time_us, limit, _ in rows))


if __name__ == "__main__":
    sys.exit(main())
