"""The blocks above the tables in `migrations/schema/*.sql`: what each table's note says about it.

A block is the comment right above `CREATE TABLE name (`, or above `COMMENT ON TABLE name` for a
table of a library; it begins with `-- name: what it is for` and has a line for each of `FACTS`,
which may go on, indented.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from django.apps import apps

APPS = ("tenants", "tools_registry", "audit")
FACTS = ("Retention", "Erasure", "Tenant deletion", "Citus")

_TABLE = re.compile(
    r"((?:^--[^\n]*\n)*)^(?:CREATE TABLE (?=\w+ \()|COMMENT ON TABLE )(\w+)", re.MULTILINE
)
_FACT = re.compile(rf"^({'|'.join(FACTS)}): (.*(?:\n  .*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Note:
    """One table's block."""

    file: Path
    purpose: str
    """What the table is for; '' where the block does not begin with the table's name."""
    facts: dict[str, str]
    """By the names in `FACTS`, each on one line."""


def notes() -> dict[str, Note]:
    """The block of each table that our migrations make."""
    by_table = {}
    for app in APPS:
        folder = Path(apps.get_app_config(app).path) / "migrations" / "schema"
        for file in sorted(folder.glob("*.sql")):
            by_table.update(notes_in(file))
    return by_table


def notes_in(file: Path) -> dict[str, Note]:
    """The blocks of one file."""
    by_table = {}
    for comment, table in _TABLE.findall(file.read_text()):
        lines = [line.removeprefix("--").removeprefix(" ") for line in comment.splitlines()]
        text = "\n".join(lines)
        begin, purpose = text.partition(": ")[::2]
        facts = {name: " ".join(fact.split()) for name, fact in _FACT.findall(text)}
        by_table[table] = Note(file, purpose.split("\n\n")[0] if begin == table else "", facts)
    return by_table
