"""The CSV writer of all exports. It prevents spreadsheets from calculating cells."""

import csv
import io
import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_SIGNS = frozenset("=+-@")
_BREAKS = ("\t", "\r", "\n")


def csv_rows(chunks: Iterator[list[dict[str, Any]]], columns: Sequence[str]) -> Iterator[bytes]:
    """A header, one row for each document, and `# count,n` last: without it, the file was cut off.

    A `'` is put before texts that a spreadsheet would calculate. Objects are written as JSON.
    """
    count = 0
    yield _written([columns])
    for documents in chunks:
        count += len(documents)
        yield _written([_cells(one, columns) for one in documents])
    yield _written([("# count", count)])


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may calculate this text (OWASP, CSV injection).

    It may if the text begins with a tab or a line break, or if its first visible character is
    a formula sign, in any width: some programs drop spaces and fold full-width signs first.
    """
    if text.startswith(_BREAKS):
        return True
    first = next((one for one in text if unicodedata.category(one)[0] not in "ZC"), "")
    return unicodedata.normalize("NFKC", first)[:1] in _SIGNS


def _cells(document: Mapping[str, Any], columns: Sequence[str]) -> list[Any]:
    values = (
        json.dumps(one) if isinstance(one, dict) else one
        for one in (document[name] for name in columns)
    )
    return [f"'{one}" if isinstance(one, str) and is_formula(one) else one for one in values]


def _written(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
