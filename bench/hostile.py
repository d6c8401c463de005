"""What outputs cost that are expensive to validate: `uv run bench/hostile.py`.

Prints for each of some hostile schemas the milliseconds of processor time of one output: in the
guard of the SDK (all wrong; only the last item wrong), on arrival, in a replay against a draft, in
drift; and of eight outputs: on arrival and in the check of a draft. All in this process, without
HTTP and database. Fails if explaining one output takes more than 50 ms, or eight more than 0.3 s.
The guard is not limited here: it decides, whatever that takes.
"""

import argparse
import json
import os
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"

if TYPE_CHECKING:
    from tests.support.hostile_outputs import Attack

ONE_MS = 50
EIGHT_MS = 300


def main() -> int:
    """Print the table; 1 if a figure is above its limit."""
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    import django

    django.setup()
    from tests.support.hostile_outputs import HOSTILE

    names = ("guard", "last", "arrival", "replay", "drift", "arrival x8", "draft x8")
    print(f"{'ms of processor time':20}" + "".join(f"{name:>12}" for name in names))
    worst_one = worst_eight = 0.0
    for name, attack in HOSTILE.items():
        figures = measure(attack)
        print(f"{name:20}" + "".join(f"{each:12.1f}" for each in figures))
        worst_one = max(worst_one, *figures[2:5])
        worst_eight = max(worst_eight, *figures[5:])
    return int(worst_one > ONE_MS or worst_eight > EIGHT_MS)


def measure(attack: "Attack") -> list[float]:
    """The figures of one schema, in the order of the table."""
    from tooltrail.guard import create_guard
    from tooltrail.guard.jsonschema import compile_schema

    from audit.events.judgement import Judge
    from audit.intake.arrival import Budget
    from audit.work.drift.declared import Declared
    from audit.work.drift.shape import Fold
    from tests.support.hostile_outputs import schema_of
    from tools_registry.contract_check import check_typed

    schema, wrong = schema_of(attack), attack.wrong
    draft = {**schema, "required": ["data"]}
    raw = json.dumps({"output": {"status": "ok", "data": {"data": wrong}}}).encode()
    compiled, guard = compile_schema(schema), create_guard(schema)
    judge, fold = Judge("output", schema, draft), Fold(Declared(schema))
    examples = "\n---\n".join([json.dumps({"data": wrong})] * 8)
    typed = {"description": "", "meta": "", "trusted": False, "ephemeral": False}
    typed |= {"input_schema": json.dumps(schema), "output_schema": json.dumps(schema)}
    typed["on_collision"] = "throw"
    both = {"input_schema": examples, "output_schema": examples}

    def arrive(count: int) -> None:
        budget = Budget()
        for _ in range(count):
            if not budget.is_spent:
                budget.judge(compiled, raw)

    day, call = datetime.now(UTC).date(), uuid.uuid4()
    return [
        took(lambda: guard.validate({"data": wrong})),
        took(lambda: guard.validate({"data": [attack.right] * len(wrong) + wrong[:1]})),
        took(lambda: arrive(1)),
        took(lambda: judge.judge(raw)),
        took(lambda: fold.add({"data": wrong}, day, call)),
        took(lambda: arrive(8)),
        took(lambda: check_typed("name", typed, both)),
    ]


def took(act: Callable[[], object]) -> float:
    """The least milliseconds of processor time of three runs."""
    times = []
    for _ in range(3):
        began = time.thread_time()
        act()
        times.append(time.thread_time() - began)
    return min(times) * 1_000


if __name__ == "__main__":
    sys.exit(main())
