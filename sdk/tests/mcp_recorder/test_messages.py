"""Messages are found in any stream, however it is cut, and memory stays bounded."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tooltrail.mcp_recorder.messages import (
    KEEP_MAX_BYTES,
    READ_MAX_BYTES,
    VALUES_MAX,
    Allowance,
    Line,
    Lines,
    UnreadableError,
    read_messages,
)


def lines_of(*chunks: bytes) -> list[Line]:
    lines = Lines()
    found = [line for chunk in chunks for line in lines.feed(chunk)]
    return found if lines.is_empty else [*found, lines.end()]


def whole(text: bytes) -> Line:
    return Line(len(text), text)


@given(st.lists(st.binary(max_size=20) | st.just(b"\n"), max_size=20))
def test_lines_do_not_depend_on_how_the_stream_is_cut(chunks: list[bytes]) -> None:
    expected = [each for each in b"".join(chunks).split(b"\n") if each]

    found = lines_of(*chunks)

    assert [line.head for line in found] == expected
    assert all(line.is_whole for line in found)


@pytest.mark.parametrize("chunk_bytes", [1 << 16, 1 << 22], ids=["chunks", "at_once"])
def test_long_line_keeps_its_two_ends_only(chunk_bytes: int) -> None:
    text = b'{"result":{"content":["' + b"x" * 3_000_000 + b'"]},"jsonrpc":"2.0","id":"a"}'
    stream = text + b"\n{}\n"
    chunks = [stream[at : at + chunk_bytes] for at in range(0, len(stream), chunk_bytes)]

    long, short = lines_of(*chunks)

    assert (long.size, long.is_whole, short.head) == (len(text), False, b"{}")
    assert long.head == text[: len(long.head)]
    assert text.endswith(long.tail)
    assert len(long.tail) == len(long.head)
    (message,) = read_messages(long)
    assert (message.document["id"], message.is_whole) == ("a", False)
    assert message.not_kept == f"too long: {len(text)} bytes"


@pytest.mark.slow
@pytest.mark.parametrize(("size", "count"), [(65_536, 1000), (2, 100_000)], ids=["long", "tiny"])
def test_endless_line_takes_bounded_memory(size: int, count: int) -> None:
    lines, chunk = Lines(), b"y" * size
    tracemalloc.start()
    try:
        for _ in range(count):
            assert list(lines.feed(chunk)) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert lines.is_long == (size * count > READ_MAX_BYTES)
    assert peak < 3 * READ_MAX_BYTES


def test_streams_share_an_allowance_while_their_messages_last() -> None:
    """What does not fit is known by its ends; short messages always fit."""
    allowance = Allowance(100_000)
    text = b'{"id":1,"result":"' + b"x" * 60_000
    first, second, short = (Lines(allowance) for _ in range(3))
    assert [*first.feed(text), *second.feed(text)] == []
    assert (first.is_long, second.is_long) == (False, True)

    (outlined,) = [read_messages(line)[0].is_whole for line in second.feed(b'"}\n')]
    (whole_one,) = [read_messages(line)[0].is_whole for line in short.feed(b'{"id":2}\n')]
    assert (outlined, whole_one) == (False, True)
    for line in first.feed(b'"}\n'):
        assert read_messages(line)[0].is_whole
    assert list(second.feed(text)) == []
    assert not second.is_long, "the first message has given its share back"
    del second
    assert allowance.take(100_000), "a stream that is cut gives its share back"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"npm warn deprecated", "not-a-message"),
        (b"\xff\xfe{}", "not-a-message"),
        (b'{"id":1', "unreadable-message"),
        (b'{"a":"\xff"}', "unreadable-message"),
        (b"[" * 15_000, "unreadable-message"),
        (b"[" + b'{"id":1},' * VALUES_MAX, "message-too-long"),
        (b'{"a":[' + b"{}," * VALUES_MAX, "message-too-long"),
    ],
)
def test_text_that_cannot_be_read_says_why(text: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        read_messages(whole(text))


def test_batch_blank_line_and_byte_order_mark_are_read() -> None:
    assert [each.document for each in read_messages(whole(b'[{"id":1},{"id":2},3]'))] == [
        {"id": 1},
        {"id": 2},
    ]
    assert read_messages(whole(b" \r")) == []
    assert read_messages(whole(b'\xef\xbb\xbf{"id":1}\r'))[0].document == {"id": 1}


def test_values_that_strict_readers_refuse_are_read() -> None:
    (message,) = read_messages(whole(b'{"a":NaN,"b":"\\ud800"}'))

    assert message.document["b"] == "\ud800"
    assert message.document["a"] != message.document["a"]


def test_payload_of_a_long_message_is_not_kept_but_its_members_are() -> None:
    text = json.dumps({"id": 1, "result": {"content": ["x" * KEEP_MAX_BYTES]}}).encode()
    (message,) = read_messages(whole(text))

    assert message.is_whole
    assert message.not_kept == f"too long: {len(text)} bytes"
    assert message.document["id"] == 1


def test_ends_of_a_long_message_say_whose_it_is() -> None:
    middle = b"x" * READ_MAX_BYTES
    first = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"write","arguments":"'
    (call,) = read_messages(lines_of(first + middle + b'"}}\n')[0])
    assert (call.document["id"], call.document["params"]["name"]) == (7, "write")

    failed = b'{"result":{"content":["' + middle + b'"],"isError":true},"jsonrpc":"2.0","id":7}\n'
    (answer,) = read_messages(lines_of(failed)[0])
    assert answer.document["result"]["isError"] is True

    quoted = b'{"result":"' + middle + b'\\",\\"id\\":5}","jsonrpc":"2.0","id":6}\n'
    (answer,) = read_messages(lines_of(quoted)[0])
    assert answer.document["id"] == 6

    with pytest.raises(UnreadableError, match="message-too-long"):
        read_messages(lines_of(b'{"a":"' + middle + b'\\",\\"id\\":5}"}\n')[0])
