"""The environment variables that the server reads, found in its code.

Their meanings are those of the table in docs/running.md. A variable that it lacks fails the build.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from docs.site.contents import ROOT
from docs.site.reference.markdown import table

_PACKAGES = ("config", "tenants", "tools_registry", "audit")
_TYPES = {
    "text": "text",
    "boolean": "true or false",
    "integer": "whole number",
    "choice": "one of its words",
    "words": "list, separated by commas",
    "openings": "list of networks",
}
"""What `config.env` has a reader of."""
_ROW = re.compile(r"^\| `([A-Z0-9_]+)` \| *(.*?) *\| *(.*) \|$", re.MULTILINE)


class _Row(NamedTuple):
    default: str
    meaning: str


def settings() -> Iterator[str]:
    """The page. Raises KeyError for a variable without a row in docs/running.md."""
    yield "# Environment variables\n"
    yield (
        "Every variable that the server of this version reads. Instead of each, `NAME_FILE` can be"
        " the path of a file with the value. The usual ones to set:"
        " [In production](/running.md#in-production).\n"
    )
    documented = documented_variables()
    rows = [
        (f"`{name}`", kind, documented[name].default, documented[name].meaning)
        for name, kind in sorted(read_variables().items())
    ]
    yield from table(("Variable", "Type", "Default", "Meaning"), rows, is_markdown=True)


def read_variables() -> dict[str, str]:
    """The type of each variable that code of the server reads, by its name."""
    found: dict[str, str] = {}
    for package in _PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                match node:
                    case ast.Call(
                        func=ast.Attribute(value=ast.Name(id="env"), attr=reader),
                        args=[ast.Constant(value=str(name)), *_],
                    ):
                        found.setdefault(name, _TYPES[reader])
    return found


def documented_variables() -> dict[str, _Row]:
    """Default and meaning of each variable, by its name, as docs/running.md has them."""
    text = (ROOT / "docs" / "running.md").read_text()
    links = re.compile(r"\]\((?!https?:)([\w-]*)((?:\.md)?)(#[\w-]+)?\)")
    text = links.sub(lambda at: f"](/{at[1] or 'running'}.md{at[3] or ''})", text)
    return {name: _Row(default, meaning) for name, default, meaning in _ROW.findall(text)}
