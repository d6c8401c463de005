"""How fast observed values are folded into a shape: `uv run bench/drift.py [--values 5000]`.

Measures CPU time in this process and compares it with genson, which makes a schema of the same
values but counts nothing.
"""

import argparse
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from genson import SchemaBuilder

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from audit.work.drift.declared import Declared
from audit.work.drift.shape import Fold

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {f"field {n}": {"type": ["integer", "object"]} for n in range(40)},
}


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--values", type=int, default=5_000)
    count = parser.parse_args().values
    values = [
        {f"field {n}": {"at": n, "text": "x" * n} if n % 5 == 0 else n for n in range(50)}
        for _ in range(count)
    ]
    fold, call, day = Fold(Declared(SCHEMA)), uuid.uuid4(), datetime.now(UTC).date()
    began = time.process_time()
    for value in values:
        fold.add(value, day, call)
    ours = time.process_time() - began
    builder = SchemaBuilder()
    began = time.process_time()
    for value in values:
        builder.add_object(value)
    genson_seconds = time.process_time() - began
    for name, seconds in (("our fold, with counts", ours), ("genson, without", genson_seconds)):
        print(f"{name:24} {count / seconds:>10,.0f} values/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
