"""PostgreSQL arrays in binary format, encoded one whole column at a time.

For the ingest path: `INSERT … SELECT FROM unnest(%(ids)b::uuid[], …)`. psycopg's own lists do the
same at four times the cost, because they check every element's type. A column without any value
is sent as a NULL of its array type, which unnest pads with NULLs. As a plain None it would have no
type, and each combination of such columns would be prepared as a separate statement.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID
from weakref import WeakSet

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format

_types = psycopg.adapters.types
_OIDS = {
    name: _types[name].oid
    for name in ("text", "bytea", "uuid", "int4", "int8", "bool", "timestamptz", "date")
}
_NULL = b"\xff\xff\xff\xff"
_EPOCH_US = 946_684_800_000_000  # 2000-01-01, PostgreSQL's epoch, in microseconds since 1970
_EPOCH_DAYS = 10_957
_LENGTHS = [struct.pack(">i", length) for length in range(1024)]
_int32 = struct.Struct(">i").pack
_array_header = struct.Struct(">iiIii").pack
_sized_int32 = struct.Struct(">ii").pack
_sized_int64 = struct.Struct(">iq").pack


@dataclass(frozen=True, slots=True)
class PgArray:
    """One column, encoded. Make it with the functions below."""

    data: bytes | None


class TextArray(PgArray):
    """text[]"""


class BytesArray(PgArray):
    """bytea[]"""


class UuidArray(PgArray):
    """uuid[]"""


class IntArray(PgArray):
    """int4[]"""


class BigintArray(PgArray):
    """int8[]"""


class BooleanArray(PgArray):
    """bool[]"""


class InstantArray(PgArray):
    """timestamptz[]"""


class DayArray(PgArray):
    """date[]"""


def texts(values: Sequence[str | None]) -> TextArray:
    """A text[]. The texts must not contain U+0000 or lone surrogates."""
    return _array(TextArray, "text", values, _text)


def blobs(values: Sequence[bytes | None]) -> BytesArray:
    """A bytea[]."""
    return _array(BytesArray, "bytea", values, lambda value: _int32(len(value)) + value)


def uuids(values: Sequence[UUID | None]) -> UuidArray:
    """A uuid[]."""
    parts = [_NULL if value is None else _LENGTHS[16] + value.bytes for value in values]
    return _joined(UuidArray, "uuid", parts)


def ints(values: Sequence[int | None]) -> IntArray:
    """An int4[]."""
    return _array(IntArray, "int4", values, lambda value: _sized_int32(4, value))


def bigints(values: Sequence[int | None]) -> BigintArray:
    """An int8[]."""
    parts = [_NULL if value is None else _sized_int64(8, value) for value in values]
    return _joined(BigintArray, "int8", parts)


def booleans(values: Sequence[bool | None]) -> BooleanArray:
    """A bool[]."""
    return _array(BooleanArray, "bool", values, lambda value: _LENGTHS[1] + bytes((value,)))


def instants(values: Sequence[int | None]) -> InstantArray:
    """A timestamptz[] of microseconds since 1970."""
    parts = [_NULL if value is None else _sized_int64(8, value - _EPOCH_US) for value in values]
    return _joined(InstantArray, "timestamptz", parts)


def days(values: Sequence[int | None]) -> DayArray:
    """A date[] of days since 1970."""
    return _array(DayArray, "date", values, lambda value: _sized_int32(4, value - _EPOCH_DAYS))


def _text(value: str) -> bytes:
    data = value.encode()
    length = len(data)
    return (_LENGTHS[length] if length < 1024 else _int32(length)) + data


def _array[A: PgArray, V](
    kind: type[A], element: str, values: Sequence[V | None], encode: Callable[[V], bytes]
) -> A:
    """Encode an array that has few distinct values. Each distinct value is encoded once."""
    different = set(values)
    if len(different) == 1 and None in different:
        return kind(None)
    encoded = {value: _NULL if value is None else encode(value) for value in different}
    return _joined(kind, element, [encoded[value] for value in values])


def _joined[A: PgArray](kind: type[A], element: str, parts: list[bytes]) -> A:
    null_count = parts.count(_NULL)
    if null_count and null_count == len(parts):
        return kind(None)
    header = _array_header(1, null_count > 0, _OIDS[element], len(parts), 1)
    return kind(header + b"".join(parts))


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: PgArray) -> Buffer | None:
        return obj.data


_DUMPERS = [
    (kind, type(f"{kind.__name__}Dumper", (_ArrayDumper,), {"oid": _types[element].array_oid}))
    for kind, element in (
        (TextArray, "text"),
        (BytesArray, "bytea"),
        (UuidArray, "uuid"),
        (IntArray, "int4"),
        (BigintArray, "int8"),
        (BooleanArray, "bool"),
        (InstantArray, "timestamptz"),
        (DayArray, "date"),
    )
]
_adapted: WeakSet[psycopg.Connection[Any]] = WeakSet()


def adapt(connection: psycopg.Connection[Any]) -> None:
    """Make a connection accept these arrays as parameters. Has an effect once per connection."""
    if connection not in _adapted:
        for kind, dumper in _DUMPERS:
            connection.adapters.register_dumper(kind, dumper)
        _adapted.add(connection)
