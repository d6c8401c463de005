"""Artifacts: reading parts of a result by line."""

import asyncio
import re
from typing import Any

import pytest
from tooltrail.errors import NotASpoolReader
from tooltrail.tools import (
    InMemorySpoolReader,
    SpooledArtifact,
    SpooledJsonArtifact,
    SpooledMarkdownArtifact,
)


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
def test_artifact_reads_lines_ranges_and_matches(reader: type[InMemorySpoolReader]) -> None:
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


def test_non_reader_is_rejected() -> None:
    with pytest.raises(NotASpoolReader):
        SpooledArtifact("text")  # type: ignore[arg-type]  # what mypy would refuse


def test_model_supplied_patterns_run_in_linear_time() -> None:
    artifact = SpooledArtifact(InMemorySpoolReader("a" * 50_000 + "!"))
    assert asyncio.run(artifact.grep("^(a+)+$")) == []
    with pytest.raises(ValueError, match="look-around"):
        asyncio.run(artifact.grep("(?=a)"))


@pytest.mark.parametrize(
    ("pattern", "text", "is_match"),
    [
        ("^zwei", "ZWEI", True),
        ("[^a]", "A", False),  # neither a nor A
        ("[b-d]x", "Cx", True),
        ("É", "é", True),
        ("ß", "SS", False),  # one unit for one
        ("k", "\u212a", False),  # the Kelvin sign is K in Unicode only
        (r"\x41", "a", True),
    ],
)
def test_grep_ignores_case_when_requested(pattern: str, text: str, is_match: bool) -> None:
    artifact = SpooledArtifact(InMemorySpoolReader(text))
    assert asyncio.run(artifact.grep(pattern, ignore_case=True)) == [text] * is_match


# --- JSON

ONE = '{"name": "alice", "age": 30, "tags": ["dev", "admin"], "a.b": {"c": [{"d": 1}, {"d": 2}]}}'
RECORDS = '{"id": 1, "role": "user"}\n\n{"id": 2}\n{"id": 3, "role": "admin"}\n'


def json_artifact(text: str, format: Any = None) -> SpooledJsonArtifact:
    return SpooledJsonArtifact(InMemorySpoolReader(text), format)


def test_json_artifact_with_one_value_reports_type_length_and_keys() -> None:
    async def scenario() -> None:
        artifact = json_artifact(ONE)
        assert await artifact.json_type() == "json"
        assert await artifact.json_length() == 1
        assert await artifact.json_keys() == ["name", "age", "tags", "a.b"]
        assert len(await artifact.json_slice(0, 0)) == 1
        assert await json_artifact("[1, 2]").json_keys() is None

    asyncio.run(scenario())


def test_json_lines_artifact_is_sliced_filtered_and_plucked() -> None:
    async def scenario() -> None:
        artifact = json_artifact(RECORDS)
        assert await artifact.json_type() == "jsonl"
        assert await artifact.json_length() == 3
        assert await artifact.json_keys() == ["id", "role"]
        assert await artifact.json_slice(1, 3) == [{"id": 2}, {"id": 3, "role": "admin"}]
        assert [r["id"] for r in await artifact.json_filter("$.role")] == [1, 3]
        assert await artifact.json_pluck("$.role") == ["user", "admin"]
        assert await json_artifact(RECORDS, "ndjson").json_type() == "ndjson"
        for format in ("json", "jsonl", None):
            with pytest.raises(ValueError, match="Expecting"):
                await json_artifact("{nope", format).json_length()
        with pytest.raises(ValueError, match="Extra data"):
            await json_artifact(RECORDS, "json").json_length()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.name", ["alice"]),
        ("$['name']", ["alice"]),
        ('$["a.b"].c[0].d', [1]),
        ("$.tags[0]", ["dev"]),
        ("$.tags[-1]", ["admin"]),
        ("$.tags[5]", []),
        ("$.tags[1:]", ["admin"]),
        ("$.tags[:]", ["dev", "admin"]),
        ("$.tags[*]", ["dev", "admin"]),
        ("$.tags.*", ["dev", "admin"]),
        ("$..d", [1, 2]),
        ("$..[0]", ["dev", {"d": 1}]),
        ("$.nothing", []),
        ("$.name.x[0]", []),
    ],
)
def test_json_paths_select_the_expected_values(path: str, expected: list[Any]) -> None:
    assert asyncio.run(json_artifact(ONE).json_get(path)) == expected


@pytest.mark.parametrize("path", ["", "name", "$.", "$name", "$.a b", "$[?@.x > 1]", "$[", "$..."])
def test_unsupported_json_paths_are_rejected(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        asyncio.run(json_artifact(ONE).json_get(path))


# --- Markdown

MARKDOWN = """---
title: hello
---

# Top #

Some *intro* in snake_case with a [link](https://example.com "title").

Setext
------

```python title="x"
# not a heading [no](link)
```

![alt text](https://example.com/img.png)

## Deeper

~~~
never closed
"""


def test_markdown_structure_is_parsed() -> None:
    async def scenario() -> None:
        artifact = SpooledMarkdownArtifact(InMemorySpoolReader(MARKDOWN))
        assert await artifact.md_frontmatter() == "title: hello"
        assert [(h.text, h.depth, h.start_line) for h in await artifact.md_headings()] == [
            ("Top", 1, 4),
            ("Setext", 2, 8),
            ("Deeper", 2, 17),
        ]
        assert [h.text for h in await artifact.md_headings(1)] == ["Top"]
        top, setext, deeper = await artifact.md_sections()
        assert (top.body_start_line, top.body_end_line) == (5, 22)
        assert (setext.body_start_line, setext.body_end_line) == (10, 17)
        assert deeper.heading_line == 17
        python, unclosed = await artifact.md_code_blocks()
        assert (python.lang, python.text) == ("python", "# not a heading [no](link)")
        assert (unclosed.lang, unclosed.start_line, unclosed.end_line) == ("", 19, 21)
        assert await artifact.md_code_blocks("rust") == []
        (link,) = await artifact.md_links()
        assert (link.text, link.url, link.line) == ("link", "https://example.com", 6)
        assert await artifact.md_links(0, 5) == []
        (image,) = await artifact.md_images()
        assert (image.text, image.url) == ("alt text", "https://example.com/img.png")
        text = await artifact.md_text()
        assert text.startswith("Top\n\nSome")
        assert "Setext\n\n# not" in text
        assert "Some intro in snake_case with a link." in text
        assert "# not a heading" in text
        assert "title: hello" not in text

    asyncio.run(scenario())


@pytest.mark.parametrize("hostile", ["# " + " " * 50_000 + "x", "`" * 50_000 + "x`", "[" * 50_000])
def test_long_markdown_lines_take_linear_time(hostile: str) -> None:
    async def scenario() -> None:
        artifact = SpooledMarkdownArtifact(InMemorySpoolReader(hostile))
        assert await artifact.md_text()
        assert await artifact.md_links() == []

    asyncio.run(scenario())


def test_markdown_without_front_matter_is_parsed() -> None:
    artifact = SpooledMarkdownArtifact(InMemorySpoolReader("plain\n=====\n"))
    assert asyncio.run(artifact.md_frontmatter()) is None
    assert asyncio.run(artifact.md_headings())[0].depth == 1
