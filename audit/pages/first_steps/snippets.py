"""Code that sends a first call: the blocks of the documentation, so that both are the same."""

import re
from dataclasses import dataclass
from functools import cache

from config.instance import BASE_DIR

_DOCS = BASE_DIR / "docs"
_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_ADAPTER = re.compile(r"^\| \[(.+?)\]\((.+?\.md).*?\).*? \| `(\w+)` \|$", re.MULTILINE)
_INSTALL = re.compile(r"^pip install \./sdk.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Snippet:
    """What to paste to record a call."""

    slug: str
    name: str
    blocks: tuple[tuple[str, str], ...]
    """The language of each block, and its text."""
    is_framework: bool = False
    """Whether it is an adapter of an agent framework, with an agent of the reader's."""


@cache
def snippets() -> tuple[Snippet, ...]:
    """Those of docs/first-steps.md, and one for each adapter of docs/frameworks.

    Raises ValueError if a page shows no use of its adapter.
    """
    text = (_DOCS / "first-steps.md").read_text()
    general = [
        Snippet(_slug(name), name, tuple(_BLOCK.findall(body)))
        for name, body in _SECTION.findall(text)
    ]
    install = _INSTALL.findall(text)[0]
    frameworks = (_DOCS / "frameworks" / "README.md").read_text()
    return (*general, *(_adapter(install, *row) for row in _ADAPTER.findall(frameworks)))


def _adapter(install: str, name: str, page: str, module: str) -> Snippet:
    marker = f"from tooltrail.integrations.{module} import "
    for language, text in _BLOCK.findall((_DOCS / "frameworks" / page).read_text()):
        if language == "python" and marker in text:
            blocks = (("sh", install), (language, text))
            return Snippet(_slug(name), name, blocks, is_framework=True)
    raise ValueError(f"{page} shows no use of tooltrail.integrations.{module}")


def _slug(name: str) -> str:
    return re.sub(r"\W+", "-", name.lower())
