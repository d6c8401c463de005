"""Calls as Parquet. Needs pyarrow (extra `parquet`); without it the import raises ImportError."""

import io
from collections.abc import Iterator
from typing import Any

import pyarrow
from pyarrow.parquet import ParquetWriter

from audit.exports.call_document import EXPORTED

_ROW_GROUP = 10_000
"""Rows that are held and written at once. Smaller groups make larger, slower files."""

_INTEGERS = {
    "upstream_status",
    "retry_after_ms",
    "attempt",
    "violation_count",
    "prompt_tokens",
    "completion_tokens",
    "timeouts_ms",
}
_BOOLEANS = {"cache_hit", "pair_conflict"}
_INSTANTS = {"started_at", "ended_at"}


def _type_of(name: str) -> Any:
    if name in _INTEGERS:
        return pyarrow.int64()
    if name in _BOOLEANS:
        return pyarrow.bool_()
    if name in _INSTANTS:
        return pyarrow.timestamp("us", tz="UTC")
    return pyarrow.float64() if name == "duration_ms" else pyarrow.string()


SCHEMA = pyarrow.schema([(name, _type_of(name)) for name in EXPORTED])
"""The columns of the other forms. Instants and numbers have their own types."""


class _Sink(io.RawIOBase):
    """A file that is only appended to. `take` removes the bytes written so far."""

    def __init__(self) -> None:
        super().__init__()
        self._written = bytearray()
        self._taken = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._written += data
        return len(memoryview(data))

    def tell(self) -> int:
        return self._taken + len(self._written)

    def take(self) -> bytes:
        """The bytes written since the last call."""
        taken = bytes(self._written)
        self._taken += len(taken)
        self._written.clear()
        return taken


def parquet(chunks: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
    """A file of row groups. The footer at its end has the number of rows."""
    sink = _Sink()
    waiting: list[dict[str, Any]] = []
    with ParquetWriter(sink, SCHEMA, compression="zstd") as writer:
        for documents in chunks:
            waiting += documents
            if len(waiting) >= _ROW_GROUP:
                writer.write_table(_table(waiting))
                waiting = []
                yield sink.take()
        if waiting:
            writer.write_table(_table(waiting))
    yield sink.take()


def _table(documents: list[dict[str, Any]]) -> Any:
    columns = []
    for field in SCHEMA:
        values = [document[field.name] for document in documents]
        if field.name in _INSTANTS:
            columns.append(pyarrow.array(values, pyarrow.string()).cast(field.type))
        else:
            columns.append(pyarrow.array(values, field.type))
    return pyarrow.Table.from_arrays(columns, schema=SCHEMA)
