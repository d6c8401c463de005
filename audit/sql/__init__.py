"""Every statement of `audit` that is more than a row filter, by name.

A `.sql` file holds statements, each under a line `-- name --` and a comment saying what it
is for. Python runs them by name (`sql.QUERIES["trace_days_before"]`); values go in as
parameters, never as text.
"""

import re
from pathlib import Path

_HEADER = re.compile(r"^-- (\w+) --$", re.MULTILINE)


def load(folder: Path) -> dict[str, str]:
    """The statements of all `.sql` files in a folder. Raises ValueError for a name given twice."""
    queries: dict[str, str] = {}
    for path in sorted(folder.glob("*.sql")):
        _, *parts = _HEADER.split(path.read_text())
        for name, statement in zip(parts[::2], parts[1::2], strict=True):
            if name in queries:
                raise ValueError(f"{path.name}: {name} is defined twice")
            queries[name] = statement.strip()
    return queries


QUERIES = load(Path(__file__).parent)
