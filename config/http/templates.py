"""Templates are indented for people; pages are sent without the indentation."""

import re

from django.template import Origin
from django.template.loaders.filesystem import Loader as FilesystemLoader

_KEPT = re.compile(r"(<(pre|textarea)\b.*?</\2>)", re.DOTALL)
_INDENTATION = re.compile(r"\n[ \t\n]+")


class Loader(FilesystemLoader):
    """Reads a template without what indents its lines, except in <pre> and <textarea>.

    A line break stays, so that no word joins another. Pages are smaller and a little faster
    (bench/pages.py); templates are read once a process, so this costs no request anything.
    """

    def get_contents(self, origin: Origin) -> str:
        """The template's text. Raises TemplateDoesNotExist."""
        return unindented(super().get_contents(origin))


def unindented(text: str) -> str:
    """The text with each line break and the white space after it as one line break."""
    parts = _KEPT.split(text)
    # Of three parts, the second is kept text and the third the name of its element.
    return "".join(
        _INDENTATION.sub("\n", part) if position % 3 == 0 else part
        for position, part in enumerate(parts)
        if position % 3 != 2
    )
