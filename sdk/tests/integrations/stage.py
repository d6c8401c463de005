"""What the scripts of all frameworks have in common: the trail, and the tools' bodies.

Runs in each framework's own environment, without pytest.
"""

import json
import sys
from pathlib import Path

from tooltrail.testing import MemoryTrail

WEATHER = {"celsius": 22.5}
ROWS = [{"n": 1}, {"n": 2}]


def make_trail() -> MemoryTrail:
    """A trail in memory with real times and ids; it raises an adapter's mistakes."""
    return MemoryTrail(clock=None, ids=None)


def boom(n: int) -> str:
    raise ValueError(f"boom {n}")


def finish(trail: MemoryTrail) -> None:
    """Write the events to the file that the test has named."""
    Path(sys.argv[1]).write_text(json.dumps(trail.events))
