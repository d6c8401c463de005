"""All statements of `audit` that are more than a row filter, by name.

A `.sql` file contains statements, each under a line `-- name --` and a comment that says what it is
for. Python runs them by name (`sql.QUERIES["trace_days_before"]`). Values are passed as parameters,
never as text. Text that several statements share is a part, under a line `-- {{name}} --`. A
statement or another part includes it with `{{name}}`. Only the content of `{{call_matches}}` is
written again for each query of calls (`audit.queries.call_conditions`).
"""

import re
from pathlib import Path

_HEADER = re.compile(r"^-- (\w+|\{\{\w+\}\}) --$", re.MULTILINE)
_PART = re.compile(r"\{\{\w+\}\}")
CONDITIONS = "(TRUE /* conditions */)"
"""Placeholder in the call list's statements, replaced by the conditions of a query."""
NAMED = "TRUE /* named */"
"""Placeholder in the conditions on notes, replaced by what the query says of the note."""
CALLS = "invocation /* calls */"
"""The rows that the call list's statements read, replaced where calls that did not run matter."""
_COMMENT = re.compile(r"\A(?:\s*--.*\n)*")


def load(folder: Path) -> dict[str, str]:
    """The statements of all `.sql` files in a folder, with their parts inserted.

    Raises ValueError for a duplicate name, KeyError for a part that does not exist.
    """
    return {name: text for name, text in _read(folder).items() if not _PART.fullmatch(name)}


def load_parts(folder: Path) -> dict[str, str]:
    """The parts, by name without braces, for statements that are composed in Python.

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
