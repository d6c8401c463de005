"""Every statement of `audit` that is more than a row filter, by name.

A `.sql` file holds statements, each under a line `-- name --` and a comment saying what it
is for. Python runs them by name (`sql.QUERIES["trace_days_before"]`); values go in as
parameters, never as text. Words that several statements share are a part, under a line
`-- {{name}} --`; a statement or another part says `{{name}}` where they stand.
`{{call_matches}}` alone is written anew for each query of calls (`audit.queries.call_conditions`).
"""

import re
from pathlib import Path

_HEADER = re.compile(r"^-- (\w+|\{\{\w+\}\}) --$", re.MULTILINE)
_PART = re.compile(r"\{\{\w+\}\}")
CONDITIONS = "(TRUE /* conditions */)"
"""What stands in the statements of the list of calls where a query's conditions go."""
_COMMENT = re.compile(r"\A(?:\s*--.*\n)*")


def load(folder: Path) -> dict[str, str]:
    """The statements of all `.sql` files in a folder, with their parts put in.

    Raises ValueError for a name given twice, KeyError for a part that does not exist.
    """
    return {name: text for name, text in _read(folder).items() if not _PART.fullmatch(name)}


def load_parts(folder: Path) -> dict[str, str]:
    """The parts by their names without braces, for statements that are put together in Python.

    Raises as `load` does.
    """
    return {
        name.strip("{}"): _COMMENT.sub("", text)
        for name, text in _read(folder).items()
        if _PART.fullmatch(name)
    }


def _read(folder: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    for path in sorted(folder.glob("*.sql")):
        _, *parts = _HEADER.split(path.read_text())
        for name, statement in zip(parts[::2], parts[1::2], strict=True):
            if name in texts:
                raise ValueError(f"{path.name}: {name} is defined twice")
            texts[name] = statement.strip()

    def whole(statement: str) -> str:
        return _PART.sub(lambda part: whole(_COMMENT.sub("", texts[part[0]])), statement)

    return {name: whole(each) for name, each in texts.items()}


QUERIES = load(Path(__file__).parent)
PARTS = load_parts(Path(__file__).parent)
