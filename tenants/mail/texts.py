"""What mails say. Names that others chose can neither end a header nor become a link. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import normalize

NAME_MAX = 80
# Mail programs make a link of what looks like an address; IDNA has further dots.
_JOINTS = re.compile(r"(?<=\S)([./:\u3002\uff61])(?=\S)")


@dataclass(frozen=True, slots=True)
class Letter:
    """What one person is told, with one link."""

    subject: str
    """One line."""
    before: Sequence[str]
    """Paragraphs before the link."""
    link: str
    label: str
    """What the link does."""
    after: Sequence[str]

    @property
    def plain(self) -> str:
        """The letter as plain text."""
        return "\n\n".join([*self.before, self.link, *self.after]) + "\n"


def harmless(name: str) -> str:
    """A name as one short line that no mail program turns into a link or an address."""
    line = " ".join(normalize("NFKC", name).split())
    printable = "".join(each for each in line if each.isprintable())
    return " ".join(_JOINTS.sub(r" \1 ", printable).split())[:NAME_MAX]
