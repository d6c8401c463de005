"""The log's payloads: unpacking returns what was packed, and damage is reported."""

import os
import struct

from hypothesis import given
from hypothesis import strategies as st

from audit.log.payload import (
    pack,
    unpack,
    without,
)
from config.zstd import zstd

SALT = st.binary(min_size=32, max_size=32)
EVENTS = st.lists(st.tuples(SALT, st.binary(min_size=1, max_size=200)), max_size=8)


def packed_before(events: list[tuple[bytes, bytes]]) -> bytes:
    """The older format of payloads, with salts between the texts."""
    parts = [struct.pack(">II", len(salt), len(raw)) + salt + raw for salt, raw in events]
    return zstd.compress(b"".join(parts))


@given(EVENTS, st.sets(st.integers(0, 7)))
def test_packed_events_round_trip_with_and_without_erasures(
    events: list[tuple[bytes, bytes]], erased: set[int]
) -> None:
    left = without(events, erased)
    assert unpack(pack(events)) == events
    assert unpack(pack(left)) == left
    assert [bool(raw) for _, raw in left] == [at not in erased for at in range(len(events))]


@given(EVENTS, st.sets(st.integers(0, 7)))
def test_earlier_payload_format_is_unpacked(
    events: list[tuple[bytes, bytes]], erased: set[int]
) -> None:
    left = without(events, erased)
    assert unpack(packed_before(left)) == left


def test_payload_is_valid_zstd_for_other_tools() -> None:
    salt, raw = os.urandom(32), b'{"type": "toolExecutionStart"}'
    text = struct.pack(">I", len(raw)) + raw
    assert zstd.decompress(pack([(salt, raw)])) == text
