"""Steps: what later migrations do to databases that exist, and not to new ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections, migrations
from django.db.migrations.operations import RunSQL
from django.db.migrations.operations.base import Operation
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

from config.instance import BASE_DIR
from config.postgresql import migrations as operations
from config.postgresql.migrations import LibraryTables, OlderCodeMayGoOn, SchemaFiles, Step
from config.postgresql.schema import DONE_STEP, disk_migrations
from tests.schema.databases import new_database
from tests.schema.notes import APPS


@pytest.fixture
def database() -> Iterator[str]:
    """An empty one in which Django can record migrations."""
    with new_database() as alias:
        MigrationRecorder(connections[alias]).ensure_schema()
        yield alias


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Migrations of an app that has got the column `two` by a step."""
    for name, content in {
        "schema/one.sql": "CREATE TABLE sample (one text, two text DEFAULT 'a%');",
        "steps/two.sql": "ALTER TABLE sample ADD COLUMN two text DEFAULT 'a%';",
        "steps/two.down.sql": "ALTER TABLE sample DROP COLUMN two;",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def made_in(folder: Path, source: str) -> Any:
    """An operation as a migration in that folder makes it."""
    return eval(  # our own source, so that the caller's file is in the folder
        compile(source, str(folder / "0002_two.py"), "eval"), vars(operations)
    )


def with_steps_on_disk(monkeypatch: pytest.MonkeyPatch, *steps: Operation) -> None:
    """Let the app have one more migration, with these steps."""
    later = migrations.Migration("0002_two", "sample")
    inner = migrations.SeparateDatabaseAndState(database_operations=[*steps])
    monkeypatch.setattr(later, "operations", [inner])
    monkeypatch.setattr(operations, "disk_migrations", lambda: {("sample", "0002_two"): later})


def apply(alias: str, operation: Operation, *, backwards: bool = False) -> None:
    run = operation.database_backwards if backwards else operation.database_forwards
    with connections[alias].schema_editor() as editor:
        run("sample", editor, ProjectState(), ProjectState())


def columns(alias: str) -> list[str]:
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'sample'::regclass AND attnum > 0"
            " AND NOT attisdropped ORDER BY attname"
        )
        return [name for (name,) in cursor.fetchall()]


def done_steps(alias: str) -> list[str]:
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT name FROM django_migrations WHERE app = %s", [DONE_STEP])
        return [name for (name,) in cursor.fetchall()]


def test_step_is_not_run_on_a_new_database_and_can_be_reversed(
    database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = made_in(folder, "Step('two')")
    with_steps_on_disk(monkeypatch, step)
    apply(database, made_in(folder, "SchemaFiles('one')"))
    assert done_steps(database) == ["sample.two"]
    apply(database, step)  # it would fail: the column is there
    assert columns(database) == ["one", "two"]
    assert done_steps(database) == []
    apply(database, step, backwards=True)
    assert columns(database) == ["one"]
    apply(database, step)
    assert columns(database) == ["one", "two"]


def test_step_runs_on_a_database_of_earlier_files(
    database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_steps_on_disk(monkeypatch)
    edited = (folder / "schema/one.sql").read_text()
    (folder / "schema/one.sql").write_text("CREATE TABLE sample (one text);")
    apply(database, made_in(folder, "SchemaFiles('one')"))
    (folder / "schema/one.sql").write_text(edited)
    apply(database, made_in(folder, "Step('two')"))
    assert columns(database) == ["one", "two"]


def operations_of(app: str) -> Iterator[tuple[str, Operation]]:
    for (label, name), migration in disk_migrations().items():
        for operation in migration.operations if label == app else ():
            yield name, operation
            for inner in getattr(operation, "database_operations", ()):
                yield name, inner


@pytest.mark.parametrize("app", APPS)
def test_tables_are_created_by_files_and_changed_by_steps(app: str) -> None:
    """Each SQL file is used by one of the two; a migration has no other SQL."""
    folder = BASE_DIR / app / "migrations"
    files, steps = set(), set()
    for name, operation in operations_of(app):
        match operation:
            case SchemaFiles():
                files |= set(operation.names)
                assert name in {"0001_tables", "0002_shared_tables"}, name
            case LibraryTables():
                files.add(operation.name)
            case Step():
                steps.add(operation.name)
            case OlderCodeMayGoOn():
                assert (app, name) == operation.declared
            case RunSQL():
                pytest.fail(f"{app}.{name}: edit schema/*.sql, and use a Step (CONTRIBUTING.md)")
    assert files == {path.stem for path in (folder / "schema").iterdir()}
    written = {path.name.split(".")[0] for path in folder.glob("steps/*")}
    assert steps == written
