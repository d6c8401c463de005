"""Artifacts: reading parts of a result by line."""

import asyncio
import re

import pytest
from tooltrail.errors import NotASpoolReader
from tooltrail.tools import InMemorySpoolReader, SpooledArtifact


class AsyncReader:
    """A reader whose every answer takes its time."""

    def __init__(self, text: str) -> None:
        self._reader = InMemorySpoolReader(text)

    async def line(self, index: int) -> str | None:
        return self._reader.line(index)

    async def byte_length(self) -> int:
        return self._reader.byte_length()

    async def line_count(self) -> int:
        return self._reader.line_count()

    async def read_all(self) -> str:
        return self._reader.read_all()


TEXT = "eins\nzwei\r\ndrei ü😀\n"


@pytest.mark.parametrize("reader", [InMemorySpoolReader, AsyncReader])
def test_parts_of_a_text(reader: type[InMemorySpoolReader]) -> None:
    async def scenario() -> None:
        artifact = SpooledArtifact(reader(TEXT))
        assert await artifact.line_count() == 4
        assert await artifact.byte_length() == len(TEXT.encode())
        assert await artifact.as_string() == TEXT
        assert await artifact.head() == ["eins", "zwei\r", "drei ü😀", ""]
        assert await artifact.head(1) == ["eins"]
        assert await artifact.head(0) == []
        assert await artifact.tail(2) == ["drei ü😀", ""]
        assert await artifact.tail(99) == await artifact.cat()
        assert await artifact.cat(1, 2) == ["zwei\r"]
        assert await artifact.cat(-5, 99) == await artifact.cat()
        assert await artifact.cat(3, 1) == []
        assert await artifact.grep("ei") == ["eins", "zwei\r", "drei ü😀"]
        assert await artifact.grep(re.compile("^EINS", re.IGNORECASE)) == ["eins"]
        assert await artifact.estimate_tokens("cl100k_base") == -(-len(TEXT.encode()) // 4)

    asyncio.run(scenario())


def test_empty_text_has_no_lines() -> None:
    assert InMemorySpoolReader("").line_count() == 0
    assert InMemorySpoolReader(b"a\nb").line_count() == 2
    assert InMemorySpoolReader("a").line(-1) is None


def test_what_is_no_reader_is_refused() -> None:
    with pytest.raises(NotASpoolReader):
        SpooledArtifact("text")  # type: ignore[arg-type]


def test_a_models_pattern_runs_in_linear_time() -> None:
    artifact = SpooledArtifact(InMemorySpoolReader("a" * 50_000 + "!"))
    assert asyncio.run(artifact.grep("^(a+)+$")) == []
    with pytest.raises(ValueError, match="regex"):
        asyncio.run(artifact.grep("(?=a)"))
