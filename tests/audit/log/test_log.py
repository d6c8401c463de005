"""The log's payloads: unpacking returns what was packed, and damage is reported."""

import os
import struct

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from audit.log.payload import (
    LogPayloadError,
    pack,
    unpack,
    without,
)

SALT = st.binary(min_size=32, max_size=32)
EVENTS = st.lists(st.tuples(SALT, st.binary(min_size=1, max_size=200)), max_size=8)


def packed_before(events: list[tuple[bytes, bytes]]) -> bytes:
    """The older format of payloads, with salts between the texts."""
    parts = [struct.pack(">II", len(salt), len(raw)) + salt + raw for salt, raw in events]
    return zstandard.ZstdCompressor().compress(b"".join(parts))


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
    with zstandard.ZstdDecompressor().stream_reader(
        pack([(salt, raw)]), read_across_frames=True
    ) as reader:
        assert reader.read() == struct.pack(">I", len(raw)) + raw


@pytest.mark.parametrize("packer", [pack, packed_before])
def test_truncated_payload_is_reported_as_damaged(packer: object) -> None:
    assert callable(packer)
    payload: bytes = packer([(bytes(32), b"first"), (bytes(32), b"second")])
    for length in range(len(payload)):
        with pytest.raises(LogPayloadError):
            unpack(payload[:length])


def test_mismatched_salts_and_events_are_reported_as_damaged() -> None:
    two, one = pack([(bytes(32), b"a"), (bytes(32), b"b")]), pack([(bytes(32), b"a")])
    frame = two[8 + 64 :]
    with pytest.raises(LogPayloadError, match="a salt for each"):
        unpack(one[: 8 + 32] + frame)
    with pytest.raises(LogPayloadError, match="a salt for each"):
        unpack(two[: 8 + 64] + one[8 + 32 :])
