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
    """As batches were stored whose salts lie among the texts."""
    parts = [struct.pack(">II", len(salt), len(raw)) + salt + raw for salt, raw in events]
    return zstandard.ZstdCompressor().compress(b"".join(parts))


@given(EVENTS, st.sets(st.integers(0, 7)))
def test_what_is_packed_comes_back_erased_or_not(
    events: list[tuple[bytes, bytes]], erased: set[int]
) -> None:
    left = without(events, erased)
    assert unpack(pack(events)) == events
    assert unpack(pack(left)) == left
    assert [bool(raw) for _, raw in left] == [at not in erased for at in range(len(events))]


@given(EVENTS, st.sets(st.integers(0, 7)))
def test_batches_with_salts_among_the_texts_are_read(
    events: list[tuple[bytes, bytes]], erased: set[int]
) -> None:
    left = without(events, erased)
    assert unpack(packed_before(left)) == left


def test_a_payload_is_zstd_to_whoever_reads_it_with_another_tool() -> None:
    salt, raw = os.urandom(32), b'{"type": "toolExecutionStart"}'
    with zstandard.ZstdDecompressor().stream_reader(
        pack([(salt, raw)]), read_across_frames=True
    ) as reader:
        assert reader.read() == struct.pack(">I", len(raw)) + raw


@pytest.mark.parametrize("packer", [pack, packed_before])
def test_a_payload_cut_anywhere_is_damaged(packer: object) -> None:
    assert callable(packer)
    payload: bytes = packer([(bytes(32), b"first"), (bytes(32), b"second")])
    for length in range(len(payload)):
        with pytest.raises(LogPayloadError):
            unpack(payload[:length])


def test_salts_without_events_and_events_without_salts_are_damage() -> None:
    two, one = pack([(bytes(32), b"a"), (bytes(32), b"b")]), pack([(bytes(32), b"a")])
    frame = two[8 + 64 :]
    with pytest.raises(LogPayloadError, match="a salt for each"):
        unpack(one[: 8 + 32] + frame)
    with pytest.raises(LogPayloadError, match="a salt for each"):
        unpack(two[: 8 + 64] + one[8 + 32 :])
