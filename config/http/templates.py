"""Loads templates without their indentation, so that pages are smaller."""

import re

from django.template import Origin
from django.template.loaders.filesystem import Loader as FilesystemLoader

_KEPT = re.compile(r"(<(pre|textarea)\b.*?</\2>)", re.DOTALL)
_INDENTATION = re.compile(r"\n[ \t\n]+")


class Loader(FilesystemLoader):
    """Reads a template without the indentation of its lines, except in <pre> and <textarea>.

    Line breaks stay, so that no words join. Pages are smaller and a little faster
    (bench/pages.py). Templates are read once per process, so requests do not pay for this.
    """

    def get_contents(self, origin: Origin) -> str:
        """Return the template's text. Raises TemplateDoesNotExist."""
        return unindented(super().get_contents(origin))


def unindented(text: str) -> str:
    """Replace each line break and the white space after it by one line break."""
    parts = _KEPT.split(text)
    # Parts come in threes: text to strip, text to keep, and the name of the kept element.
    return "".join(
        _INDENTATION.sub("\n", part) if position % 3 == 0 else part
        for position, part in enumerate(parts)
        if position % 3 != 2
    )
