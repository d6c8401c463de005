"""What tools return, kept by line so that a model can read parts of it.

Owns the artifact classes and the in-memory reader. For other storage the host provides its own
reader.
"""

import re
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Protocol, runtime_checkable

from typing_extensions import TypeIs

from tooltrail.errors import NotASpoolReader
from tooltrail.guard.regex import matcher


@runtime_checkable
class SpoolReader(Protocol):
    """Reads text by line. Each method may also be async. Lines are numbered from 0."""

    def line(self, index: int, /) -> str | Awaitable[str | None] | None:
        """The line without its newline; None if there is no such line."""

    def byte_length(self) -> int | Awaitable[int]:
        """The length in UTF-8 bytes."""

    def line_count(self) -> int | Awaitable[int]:
        """The number of lines."""

    def read_all(self) -> str | Awaitable[str]:
        """The whole text."""


class InMemorySpoolReader:
    """Reads text in memory. Raises UnicodeDecodeError for bytes that are not UTF-8.

    Lines end at `\\n` only. An empty text has no lines, a final newline adds an empty line, and
    `\\r` stays part of its line.
    """

    def __init__(self, content: str | bytes) -> None:
        self._text = content.decode() if isinstance(content, bytes) else content
        self._lines = self._text.split("\n") if self._text else []

    def line(self, index: int, /) -> str | None:
        """The line at `index`; None if out of range."""
        return self._lines[index] if 0 <= index < len(self._lines) else None

    def byte_length(self) -> int:
        """The length in UTF-8 bytes."""
        return len(self._text.encode(errors="surrogatepass"))

    def line_count(self) -> int:
        """The number of lines."""
        return len(self._lines)

    def read_all(self) -> str:
        """The whole text."""
        return self._text


_ARTIFACT_METHODS = (
    "head",
    "tail",
    "grep",
    "cat",
    "byte_length",
    "line_count",
    "estimate_tokens",
)
_BYTES_PER_TOKEN = 4  # the average for English text in the usual encodings


def is_artifact_class(value: object) -> TypeIs[type["SpooledArtifact"]]:
    """Whether this is a class with all methods of an artifact, related to ours or not."""
    return isinstance(value, type) and all(
        callable(getattr(value, name, None)) for name in _ARTIFACT_METHODS
    )


async def _settled[T](value: T | Awaitable[T]) -> T:
    return await value if isawaitable(value) else value


class SpooledArtifact:
    """A tool's result as read-only lines of text.

    Raises NotASpoolReader unless `reader` has the four methods of `SpoolReader`.
    Source: the ADK's `SpooledArtifact`.
    """

    def __init__(self, reader: SpoolReader) -> None:
        if not isinstance(reader, SpoolReader):
            raise NotASpoolReader
        self._reader = reader

    async def head(self, n: int = 10) -> list[str]:
        """The first `n` lines."""
        return await self.cat(0, n)

    async def tail(self, n: int = 10) -> list[str]:
        """The last `n` lines."""
        return await self.cat(max(0, await self.line_count() - n))

    async def cat(self, start: int = 0, end: int | None = None) -> list[str]:
        """The lines from `start` up to but without `end`; both are limited to the text."""
        count = await self.line_count()
        stop = count if end is None else min(end, count)
        lines = [await _settled(self._reader.line(index)) for index in range(max(0, start), stop)]
        return [line for line in lines if line is not None]

    async def grep(self, pattern: str | re.Pattern[str], *, ignore_case: bool = False) -> list[str]:
        """The lines that match the pattern.

        A text is read as a JavaScript pattern and runs in linear time, so that a model may
        write it. A compiled pattern is trusted, and has its own flags. Raises ValueError for a
        pattern that is malformed or has look-around.
        """
        matches: Callable[[str], object] = (
            pattern.search
            if isinstance(pattern, re.Pattern)
            else matcher(pattern, ignore_case=ignore_case)
        )
        return [line for line in await self.cat() if matches(line)]

    async def byte_length(self) -> int:
        """The length in UTF-8 bytes."""
        return await _settled(self._reader.byte_length())

    async def line_count(self) -> int:
        """The number of lines."""
        return await _settled(self._reader.line_count())

    async def estimate_tokens(self, encoding: str | None = None) -> int:
        """Estimate how many tokens a model would read: a quarter of the bytes, rounded up.

        `encoding` names a tokenizer, for subclasses that support one; this estimate ignores it.
        """
        return -(-await self.byte_length() // _BYTES_PER_TOKEN)

    async def as_string(self) -> str:
        """The whole text, unchanged."""
        return await _settled(self._reader.read_all())
