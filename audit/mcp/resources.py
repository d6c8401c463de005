"""The documents that clients of `/mcp` can read: how queries are written."""

from functools import cache
from typing import Any, Final

from django.conf import settings

QUERIES: Final = "tooltrail://docs/queries"
_FILES: Final = {QUERIES: ("queries.md", "Query language", "How `q` is written.")}


def described() -> list[dict[str, Any]]:
    """The resources as `resources/list` names them."""
    return [
        {
            "uri": uri,
            "name": file.removesuffix(".md"),
            "title": title,
            "description": description,
            "mimeType": "text/markdown",
        }
        for uri, (file, title, description) in _FILES.items()
    ]


def read(uri: Any) -> list[dict[str, Any]] | None:
    """The contents of a resource; None if there is none of this URI."""
    if not isinstance(uri, str) or uri not in _FILES:
        return None
    return [{"uri": uri, "mimeType": "text/markdown", "text": _text(_FILES[uri][0])}]


@cache
def _text(file: str) -> str:
    return (settings.BASE_DIR / "docs" / file).read_text()
