"""The form of one line in a segment file, and recovery from damaged lines.

A line is a JSON object, a TAB, eight hexadecimal digits of crc32 and a line feed. JSON text
contains neither TAB nor line feed, so damage to a line does not affect its neighbours.
"""

import re
from dataclasses import dataclass
from zlib import crc32

_TRAILER = re.compile(rb"\t[0-9a-f]{8}\n")
_SEALED = re.compile(rb"\t[0-9a-f]{8}$")
_NUMBER = re.compile(rb'"producer_seq":(\d+)\}$')
_PRODUCER = re.compile(rb'"producer_id":"([^"\\]*)","producer_seq":(\d+)\}$')

SINCE_VERSION_2 = (
    b'{"type":"toolCallDecision"',
    b'{"type":"toolDefinitions"',
    b'{"type":"toolExecutionEnd","call_state":"waiting"',
    b'{"type":"toolExecutionEnd","call_state":"working"',
)
"""How the lines begin that a server of version 1 does not understand, and no other lines."""
LINE_OVERHEAD = 10  # bytes of a line beyond its JSON text


@dataclass(frozen=True, slots=True)
class Salvage:
    """The whole lines of a segment, and the numbers of the damaged or missing ones."""

    lines: list[bytes]
    lost: list[range]


def seal_line(text: bytes) -> bytes:
    """Make the line for one JSON object, with its checksum."""
    return b"%b\t%08x\n" % (text, crc32(text))


def plain(line: bytes) -> bytes:
    """The JSON object of a line without its line feed, with or without checksum."""
    return _SEALED.sub(b"", line)


def open_lines(data: bytes) -> list[bytes]:
    """Extract the JSON objects from lines known to be whole, without checking them."""
    return _TRAILER.sub(b"\n", data).split(b"\n")[:-1]


def salvage(data: bytes, first_seq: int, count: int = 0) -> Salvage:
    """Check every line of a segment that begins with number `first_seq`.

    Numbers are contiguous, so a gap between two whole lines shows exactly what was lost. Damage
    after the last whole line counts as one number per damaged line, or more if the segment is
    known to have had `count` lines.
    """
    lines: list[bytes] = []
    lost: list[range] = []
    expected, damaged_tail = first_seq, 0
    for line in data.split(b"\n"):
        if not line:
            continue
        text, _, check = line.rpartition(b"\t")
        if len(check) != 8 or b"%08x" % crc32(text) != check:
            damaged_tail += 1
            continue
        lines.append(text)
        number = _NUMBER.search(text)
        if number is None:  # a gap line, which has no number of its own
            continue
        seq = int(number[1])
        if damaged_tail and seq > expected:
            lost.append(range(expected, seq))
        expected, damaged_tail = seq + 1, 0
    missing = count - len(lines) - sum(map(len, lost))
    if damaged_tail or missing > 0:
        lost.append(range(expected, expected + max(damaged_tail, missing)))
    return Salvage(lines, lost)


def numbers(lines: list[bytes]) -> dict[str, list[range]]:
    """The numbers in these lines by producer, as contiguous ranges."""
    by_producer: dict[str, list[range]] = {}
    for line in lines:
        match = _PRODUCER.search(line)
        if match is None:
            continue
        seq = int(match[2])
        ranges = by_producer.setdefault(match[1].decode(errors="replace"), [])
        if ranges and ranges[-1].stop == seq:
            ranges[-1] = range(ranges[-1].start, seq + 1)
        else:
            ranges.append(range(seq, seq + 1))
    return by_producer


def first_number(lines: list[bytes], default: int) -> int:
    """The first number in these lines, or `default` if no line has one."""
    return next((int(match[1]) for match in map(_NUMBER.search, lines) if match), default)
