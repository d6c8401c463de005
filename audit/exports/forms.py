"""The forms of an export: the writer and the content type of each.

All forms end with the number of documents: without it, a file was cut off.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from audit.exports.csv_file import csv_rows

type Document = dict[str, Any]
type Documents = Iterator[list[Document]]
"""Documents that are read and written a chunk at a time."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form of export."""

    write: Callable[[Documents], Iterator[bytes]]
    content_type: str


def text_forms(columns: Sequence[str]) -> dict[str, Form]:
    """The forms that every export has, by file extension."""
    return {
        "ndjson": Form(ndjson, "application/x-ndjson"),
        "csv": Form(partial(csv_rows, columns=columns), "text/csv; charset=utf-8"),
    }


def ndjson(chunks: Documents) -> Iterator[bytes]:
    """One object per line, and `{"count": n}` as the last line."""
    count = 0
    for documents in chunks:
        count += len(documents)
        yield b"".join(json.dumps(one).encode() + b"\n" for one in documents)
    yield json.dumps({"count": count}).encode() + b"\n"
