"""The data for the demo's tools: this repository's documents, searchable through SQLite.

It has an in-memory index of the Markdown and Python files, a reader that stays inside the folder,
a summary, and a count of tokens.
"""

import re
import sqlite3
import threading
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]{3,}")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


class Library:
    """Full-text search over the documents below `root`; thread-safe."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.documents = sorted(
            path
            for pattern in ("*.md", "docs/**/*.md", "sdk/README.md", "*/*.py")
            for path in root.glob(pattern)
            if path.is_file() and not path.is_symlink()
        )
        self._lock = threading.Lock()
        self._index = sqlite3.connect(":memory:", check_same_thread=False)
        self._index.execute("CREATE VIRTUAL TABLE page USING fts5(name, body)")
        self._index.executemany(
            "INSERT INTO page VALUES (?, ?)",
            [
                (str(path.relative_to(root)), path.read_text(errors="replace"))
                for path in self.documents
            ],
        )

    def search(self, query: str, limit: int) -> list[dict[str, str | float]]:
        """The best pages for an FTS5 query, with a snippet each.

        Raises ValueError if SQLite cannot parse the query.
        """
        with self._lock:
            try:
                rows = self._index.execute(
                    "SELECT name, snippet(page, 1, '', '', ' … ', 12), -rank FROM page"
                    " WHERE page MATCH ? ORDER BY rank LIMIT ?",
                    [query, limit],
                ).fetchall()
            except sqlite3.OperationalError as error:
                raise ValueError(f"cannot read the query: {error}") from error
        return [
            {"page": name, "snippet": text, "score": round(score, 3)} for name, text, score in rows
        ]

    def read(self, name: str) -> str:
        """A document's text. Raises FileNotFoundError, or PermissionError outside the folder."""
        path = (self.root / name).resolve()
        if not path.is_relative_to(self.root):
            raise PermissionError(f"{name} lies outside the library")
        try:
            return path.read_text(errors="replace")
        except FileNotFoundError:
            raise FileNotFoundError(f"the library has no {name}") from None


def summarise(text: str, sentences: int) -> str:
    """The sentences with most of a text's frequent words, in their original order."""
    weights = Counter(word.lower() for word in _WORD.findall(text))
    parts = [part.strip() for part in _SENTENCE.split(text) if part.strip()][:400]

    def weight(part: str) -> float:
        words = _WORD.findall(part)
        return sum(weights[word.lower()] for word in words) / (len(words) + 8)

    best = sorted(sorted(parts, key=weight, reverse=True)[:sentences], key=parts.index)
    return " ".join(best)[:2_000]


def count_tokens(text: str) -> int:
    """An estimate of a language model's token count: words and punctuation marks."""
    return len(re.findall(r"\w+|[^\w\s]", text))
