"""Columns in PostgreSQL's binary format: reading returns what was written."""

import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.sql import arrays

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
BIGINTS = st.integers(-(2**63), 2**63 - 1)
COLUMNS: dict[str, tuple[Callable[[Sequence[Any]], Any], st.SearchStrategy[Any], Any]] = {
    "text": (arrays.texts, TEXTS | st.just("x" * 2000), None),
    "uuid": (arrays.uuids, st.uuids(), None),
    "int4": (arrays.ints, st.integers(-(2**31), 2**31 - 1), None),
    "int8": (arrays.bigints, BIGINTS, None),
    "bool": (arrays.booleans, st.booleans(), None),
    "bytea": (arrays.blobs, st.binary(max_size=40), None),
    "timestamptz": (
        arrays.instants,
        st.integers(-(10**15), 4 * 10**15),
        lambda us: EPOCH + timedelta(microseconds=us),
    ),
    "date": (
        arrays.days,
        st.integers(-100_000, 100_000),
        lambda day: date(1970, 1, 1) + timedelta(days=day),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", COLUMNS)
@settings(max_examples=60)
@given(data=st.data())
def test_column_round_trips(kind: str, data: st.DataObject) -> None:
    encode, values, as_read = COLUMNS[kind]
    optional = values if kind == "bytea" else values | st.none()
    sent = data.draw(st.lists(optional, min_size=1, max_size=12))
    received = round_trip(kind, encode(sent))
    expected = [each if each is None or as_read is None else as_read(each) for each in sent]
    # A column without values is NULL itself, which unnest pads with NULLs.
    assert received == ([] if all(each is None for each in sent) else expected)


def test_empty_column_is_an_empty_array() -> None:
    assert round_trip("text", arrays.texts([])) == []
    assert round_trip("uuid", arrays.uuids([])) == []


def round_trip(kind: str, column: Any) -> list[Any]:
    connection.ensure_connection()
    raw = connection.connection
    assert isinstance(raw, psycopg.Connection)
    arrays.adapt(raw)
    cursor = psycopg.RawCursor(raw)
    statement = f"SELECT unnest($1::{kind}[])"
    cursor.execute(statement.encode(), [column], binary=True)
    return [row[0] for row in cursor.fetchall()]


def test_uuids_are_encoded_or_null() -> None:
    one = uuid.UUID(int=1)
    assert arrays.uuids([one]).data is not None
    assert arrays.uuids([None, None]).data is None
