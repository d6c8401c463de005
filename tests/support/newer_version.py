"""A copy of the code as a later version would be: a new column, in two migrations.

The first adds the column, beside which older code may go on. The new code fills it. The second
forbids that it is empty, which older code would leave it, so it waits until that is gone.
"""

import shutil
from pathlib import Path

from config.instance import BASE_DIR
from config.postgresql.schema import disk_migrations

VERSION = "99.0"
EXPAND, CONTRACT = "9001_expand", "9002_contract"
_FOLDERS = ("audit", "config", "sdk", "static", "templates", "tenants", "tools_registry")
_MIGRATION = """
from django.db import migrations
from config.postgresql.migrations import OlderCodeMayGoOn, OlderCodeMustBeGone

class Migration(migrations.Migration):
    dependencies = [("audit", {after!r})]
    operations = [{operations}]
"""
_ADD = "ALTER TABLE batch ADD COLUMN source text"
_FORBID = (
    "UPDATE batch SET source = 'older' WHERE source IS NULL",
    "ALTER TABLE batch ALTER COLUMN source SET NOT NULL",
)
_NEW_TEXTS = (
    ("pyproject.toml", 'version = "', f'version = "{VERSION}+'),
    ("audit/sql/ingest.sql", "leaves, payload\n)", "leaves, payload, source\n)"),
    (
        "audit/sql/ingest.sql",
        "u.answer, u.leaves, u.payload\nFROM head",
        "u.answer, u.leaves, u.payload, 'senders'\nFROM head",
    ),
    ("audit/sql/ledger.sql", "leaves, payload, is_own\n)", "leaves, payload, is_own, source\n)"),
    ("audit/sql/ledger.sql", "%(payload)s, true\n)", "%(payload)s, true, 'server'\n)"),
)


def newer_version(folder: Path) -> Path:
    """Make the copy in this folder; the folder."""
    for name in _FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "node_modules", "tests")
        shutil.copytree(BASE_DIR / name, folder / name, ignore=ignored)
    for name in ("manage.py", "pyproject.toml"):
        shutil.copy2(BASE_DIR / name, folder)
    for name, before, after in _NEW_TEXTS:
        text = (folder / name).read_text()
        assert text.count(before) == 1 or name == "pyproject.toml", (name, before)
        (folder / name).write_text(text.replace(before, after, 1))
    last = max(name for app, name in disk_migrations() if app == "audit")
    migrations = folder / "audit" / "migrations"
    added = f"migrations.RunSQL({_ADD!r}), OlderCodeMayGoOn('audit', {EXPAND!r})"
    (migrations / f"{EXPAND}.py").write_text(_MIGRATION.format(after=last, operations=added))
    forbidden = f"OlderCodeMustBeGone(), migrations.RunSQL({_FORBID!r})"
    (migrations / f"{CONTRACT}.py").write_text(
        _MIGRATION.format(after=EXPAND, operations=forbidden)
    )
    return folder
