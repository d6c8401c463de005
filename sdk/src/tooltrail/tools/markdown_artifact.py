"""An artifact that holds Markdown: its headings, sections, code blocks, links and images.

Reads the line structure of CommonMark: ATX and Setext headings, fences, inline links. It does not
parse CommonMark fully, nor the YAML in front matter.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tooltrail.tools.artifacts import SpooledArtifact

# Patterns match only the start of a line: results come from anywhere, and no pattern here may
# take more than linear time on one long line.
_ATX = re.compile(r" {0,3}(#{1,6})(?=\s|$)")
_SETEXT = re.compile(r" {0,3}(=+|-+)\s*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_INLINE = re.compile(
    r"(!?)\[([^\[\]]{0,1000})\]\(\s{0,10}<?([^\s<>()]{0,2000})>?(?:\s+[\"'][^\"']{0,1000}[\"'])?\s{0,10}\)"
)
_MARKUP = re.compile(r"[*`~]{1,3}|(?<!\w)_{1,3}|_{1,3}(?!\w)")
_BLOCK_MARK = re.compile(r"^\s{0,3}(?:#{1,6}\s+|>\s?|[-*+]\s+|\d{1,9}[.)]\s+)")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading. Lines are numbered from 0, depth is 1 to 6."""

    text: str
    depth: int
    start_line: int


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its body with subsections. `body_end_line` is the first line after it."""

    heading: str
    depth: int
    heading_line: int
    body_start_line: int
    body_end_line: int


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A fenced block: its language ('' for none), its text and the lines of both fences.

    A block that is not closed ends with the last line.
    """

    lang: str
    text: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Link:
    """An inline link or image (`text` is its alternative text)."""

    text: str
    url: str
    line: int


class SpooledMarkdownArtifact(SpooledArtifact):
    """Markdown by line and by structure. Text inside code blocks never counts as structure.

    Source: the ADK's `SpooledMarkdownArtifact`, without syntax trees.
    """

    async def md_frontmatter(self) -> str | None:
        """The text between the `---` lines at the start; None if there is no front matter."""
        lines = await self.cat()
        end = _frontmatter_end(lines)
        return "\n".join(line.rstrip("\r") for line in lines[1 : end - 1]) if end else None

    async def md_headings(self, depth: int | None = None) -> list[Heading]:
        """The headings in order; with `depth` only those of this depth."""
        headings = _headings(await self.cat())
        return [heading for heading in headings if depth in (None, heading.depth)]

    async def md_sections(self, depth: int | None = None) -> list[Section]:
        """The sections in order; with `depth` only those of this depth."""
        lines = await self.cat()
        headings = list(_headings(lines))
        sections = []
        for index, heading in enumerate(headings):
            following = (after for after in headings[index + 1 :] if after.depth <= heading.depth)
            end = next((after.start_line for after in following), len(lines))
            start = heading.start_line + (1 if _ATX.match(lines[heading.start_line]) else 2)
            sections.append(Section(heading.text, heading.depth, heading.start_line, start, end))
        return [section for section in sections if depth in (None, section.depth)]

    async def md_code_blocks(self, lang: str | None = None) -> list[CodeBlock]:
        """The fenced code blocks in order; with `lang` only those of this language."""
        return [block for block in _code_blocks(await self.cat()) if lang in (None, block.lang)]

    async def md_links(self, start: int = 0, end: int | None = None) -> list[Link]:
        """The inline links in the lines from `start` up to but without `end`."""
        return await self._inline("", start, end)

    async def md_images(self, start: int = 0, end: int | None = None) -> list[Link]:
        """The images in the lines from `start` up to but without `end`."""
        return await self._inline("!", start, end)

    async def md_text(self) -> str:
        """The document without markup and front matter. Code blocks keep their text."""
        lines = await self.cat()
        shown = {number: _plain(line) for number, line in _prose(lines)}
        for heading in _headings(lines):
            shown[heading.start_line] = _plain(heading.text)
            if not _ATX.match(lines[heading.start_line]):
                del shown[heading.start_line + 1]
        for block in _code_blocks(lines):
            if block.text:
                shown.update(enumerate(block.text.split("\n"), block.start_line + 1))
        return "\n".join(shown[number] for number in sorted(shown)).strip()

    async def _inline(self, mark: str, start: int, end: int | None) -> list[Link]:
        lines = await self.cat()
        stop = len(lines) if end is None else end
        return [
            Link(match[2], match[3], number)
            for number, line in _prose(lines)
            if start <= number < stop
            for match in _INLINE.finditer(line)
            if match[1] == mark
        ]


def _plain(line: str) -> str:
    return _MARKUP.sub("", _INLINE.sub(r"\2", _BLOCK_MARK.sub("", line, count=1)))


def _frontmatter_end(lines: list[str]) -> int:
    """The line after the front matter; 0 if there is none."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    closing = (number for number, line in enumerate(lines) if number and line.rstrip() == "---")
    return next(closing, -1) + 1


def _code_blocks(lines: list[str]) -> Iterator[CodeBlock]:
    fence, lang, opened = "", "", 0
    start = _frontmatter_end(lines)
    for number, line in enumerate(lines[start:], start):
        match = _FENCE.match(line)
        if match is None:
            continue
        info = line[match.end() :].strip()
        if fence:
            if match[1].startswith(fence) and not info:
                yield CodeBlock(lang, "\n".join(lines[opened + 1 : number]), opened, number)
                fence = ""
        elif match[1][0] == "~" or "`" not in info:  # else it is code within a line
            fence, lang, opened = match[1], info.partition(" ")[0], number
    if fence:
        yield CodeBlock(lang, "\n".join(lines[opened + 1 :]), opened, len(lines) - 1)


def _prose(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The lines, with numbers, that are neither front matter nor in a code block."""
    start = _frontmatter_end(lines)
    code = {
        number
        for block in _code_blocks(lines)
        for number in range(block.start_line, block.end_line + 1)
    }
    for number, line in enumerate(lines):
        if number >= start and number not in code:
            yield number, line


def _headings(lines: list[str]) -> Iterator[Heading]:
    above: tuple[int, str] | None = None  # a line that becomes a heading if it is underlined
    for number, line in _prose(lines):
        if match := _ATX.match(line):
            yield Heading(_closed(line[match.end() :].strip()), len(match[1]), number)
            above = None
        elif (match := _SETEXT.fullmatch(line)) and above and above[0] == number - 1:
            yield Heading(above[1].strip(), 1 if match[1][0] == "=" else 2, above[0])
            above = None
        else:
            above = (number, line) if line.strip() and not _BLOCK_MARK.match(line) else None


def _closed(text: str) -> str:
    """A heading's text without the closing row of #."""
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else text
