"""Pages in tests without the line breaks that templates have for people."""

import re
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

_TAG = re.compile(r"<[a-zA-Z/](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>")
_KEPT = re.compile(r"(<(pre|textarea|script|style)\b.*?</\2>)", re.DOTALL)


class CompactMiddleware:
    """Sends HTML in one line: in tags and texts a space stands for a line break.

    Tests compare markup as text. Line breaks in templates are not part of the test.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        if response.get("Content-Type", "").startswith("text/html") and not response.streaming:
            response.content = compact(response.content.decode()).encode()
            if "Content-Length" in response:
                response["Content-Length"] = str(len(response.content))
        return response


def compact(html: str) -> str:
    """The same HTML without line breaks: beside a tag nothing, elsewhere a space."""
    parts = _KEPT.split(html)
    return "".join(
        _compact(part) if position % 3 == 0 else part
        for position, part in enumerate(parts)
        if position % 3 != 2
    )


def _compact(html: str) -> str:
    html = _TAG.sub(lambda tag: re.sub(r"\s*\n\s*", " ", tag[0]).replace(" >", ">"), html)
    return re.sub(r"\n*(<[^>]*>)\n*", r"\1", html).replace("\n", " ")
