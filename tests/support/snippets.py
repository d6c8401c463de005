"""The code that the documents show, by document and language."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.documents import DOCUMENTS, ROOT

_FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Snippet:
    """A block of code: its document, language and text, and which one of the document it is."""

    document: str
    language: str
    number: int
    """From 1, among those of its language in its document."""
    code: str

    @property
    def id(self) -> str:
        """For the name of a test: `docs/api.md sh 2`."""
        return f"{self.document} {self.language} {self.number}"


def snippets(*languages: str) -> list[Snippet]:
    """All snippets of these languages, or of all, in the order of documents."""
    return [each for document in DOCUMENTS for each in _of(document, languages)]


def snippet(document: str, language: str, number: int = 1) -> str:
    """The code of one snippet. Raises ValueError if there is none."""
    (code,) = (each.code for each in _of(ROOT / document, (language,)) if each.number == number)
    return code


def _of(document: Path, languages: tuple[str, ...]) -> list[Snippet]:
    counted: dict[str, int] = {}
    made = []
    for indent, language, code in _FENCE.findall(document.read_text()):
        counted[language] = counted.get(language, 0) + 1
        if not languages or language in languages:
            plain = re.sub(rf"^{indent}", "", code, flags=re.MULTILINE)
            name = document.relative_to(ROOT).as_posix()
            made.append(Snippet(name, language, counted[language], plain))
    return made
