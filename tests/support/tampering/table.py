"""The table of who finds what, as in docs/tampering.md."""

from collections.abc import Iterator

from tests.support.tampering import PARTS
from tests.support.tampering.finders import Finder
from tests.support.tampering.kinds import Tampering

BEGIN, END = "<!-- The table begins. -->", "<!-- The table ends. -->"


def table() -> str:
    """All parts, in Markdown."""
    return "\n".join(
        line for title, module in PARTS.items() for line in _part(title, module.kinds())
    )


def _part(title: str, kinds: Iterator[Tampering]) -> Iterator[str]:
    yield f"\n### {title}\n"
    yield "| what was done | needs | found by |\n| --- | --- | --- |"
    families: dict[tuple[str, str, str], list[str]] = {}
    for kind in kinds:
        finders = ", ".join(finder for finder in Finder if finder in kind.found_by) or "**nobody**"
        finders = f"{finders}: {kind.why}" if kind.why else finders
        families.setdefault((kind.what, kind.power, finders), []).append(kind.of)
    for (what, power, finders), of in families.items():
        yield f"| {what}{_listed(of)} | {power} | {finders} |"


def _listed(of: list[str]) -> str:
    named = [each for each in of if each]
    return f": {', '.join(named)}" if named else ""
