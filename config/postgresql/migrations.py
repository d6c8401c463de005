"""Migration operations: create today's tables, change them by steps, permit older code to go on.

`schema/*.sql` of an app always shows today's tables. Who changes a table edits these files, for
new databases, and adds a migration with a `Step`, for databases that exist. The first migration
runs the files, and each step that is on disk then counts as done: its SQL is not run there.
`tests/schema/test_first_migrations.py` checks that both ways end in the same schema.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import sqlparse
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations import RunSQL
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from config.postgresql.schema import DONE_STEP, disk_migrations


class SchemaFiles(RunSQL):
    """Run `schema/NAME.sql` of the migration's folder, one after another.

    Raises FileNotFoundError if one is missing. `migrate` cannot reverse it.
    """

    def __init__(self, *names: str) -> None:
        folder = _folder_of_caller() / "schema"
        super().__init__([(folder / f"{name}.sql").read_text() for name in names])
        self.names = names

    def describe(self) -> str:
        return f"Run {', '.join(self.names)}"

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        super().database_forwards(app_label, schema_editor, from_state, to_state)
        for name in steps(app_label):
            schema_editor.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())",
                [DONE_STEP, f"{app_label}.{name}"],
            )


class LibraryTables(RunSQL):
    """Run `schema/NAME.sql`, notes and grants of tables that a library's migrations make.

    It runs in new databases and in those that exist, after the library's migrations. Reversing it
    does nothing: these drop their tables. Raises FileNotFoundError if the file is missing.
    """

    def __init__(self, name: str) -> None:
        file = _folder_of_caller() / "schema" / f"{name}.sql"
        super().__init__(file.read_text(), RunSQL.noop)
        self.name = name

    def describe(self) -> str:
        return f"Run {self.name}.sql"


class Step(RunSQL):
    """Run `steps/NAME.sql` forwards and `steps/NAME.down.sql` backwards, where `SchemaFiles` ran
    before this step was on disk. Elsewhere the tables are as it leaves them.

    Without a `NAME.down.sql`, `migrate` cannot reverse it. Raises FileNotFoundError if the forward
    file is missing.
    """

    def __init__(self, name: str) -> None:
        folder = _folder_of_caller() / "steps"
        down = folder / f"{name}.down.sql"
        super().__init__(
            _statements(folder / f"{name}.sql"), _statements(down) if down.exists() else None
        )
        self.name = name

    def describe(self) -> str:
        return f"Run {self.name}.sql"

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        if not self._was_done(app_label, schema_editor):
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def _was_done(self, app_label: str, schema_editor: BaseDatabaseSchemaEditor) -> bool:
        """Take the row that `SchemaFiles` left, so that the step runs if it is reversed before."""
        if schema_editor.collect_sql:  # `sqlmigrate` prints the SQL
            return False
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM django_migrations WHERE app = %s AND name = %s",
                [DONE_STEP, f"{app_label}.{self.name}"],
            )
            return bool(cursor.rowcount)


class OlderCodeMayGoOn(RunSQL):
    """Declare that processes that do not know this migration may keep running.

    `config.postgresql.schema` reads the declaration.

    Use it only if older code still writes rows that newer code counts correctly: for a new index, a
    new table that older code need not fill, or a column with a default.
    """

    def __init__(self, app: str, name: str) -> None:
        super().__init__(
            [("INSERT INTO tolerated_migration (app, name) VALUES (%s, %s)", [app, name])],
            [("DELETE FROM tolerated_migration WHERE app = %s AND name = %s", [app, name])],
        )
        self.declared = (app, name)

    def describe(self) -> str:
        return f"Allow older code to run with {self.declared[1]}"


class OlderCodeMustBeGone(RunSQL):
    """Declare that a migration waits until no process runs that does not know it.

    `config.postgresql.processes` reads the declaration. The version that has the migration must
    serve before it, too: it starts while older processes run. Use it for the second half of a
    change ("contract"), such as dropping a column that the version before still wrote.
    """

    def __init__(self) -> None:
        super().__init__(RunSQL.noop, RunSQL.noop)

    def describe(self) -> str:
        return "Wait until older code is gone"


def steps(app_label: str) -> list[str]:
    """Return the names of an app's steps on disk, in order."""
    return [
        step
        for (app, _), migration in sorted(disk_migrations().items())
        if app == app_label
        for step in _steps_in(migration.operations)
    ]


def _steps_in(operations: Iterable[Operation]) -> Iterator[str]:
    for operation in operations:
        if isinstance(operation, Step):
            yield operation.name
        inner: Any = getattr(operation, "database_operations", ())
        yield from _steps_in(inner)


def _statements(path: Path) -> list[Any]:
    """Return the statements of a file: Citus forwards to its nodes all the text of a message."""
    return sqlparse.split(path.read_text())


def _folder_of_caller() -> Path:
    """Return the folder of the migration that makes an operation."""
    return Path(sys._getframe(2).f_code.co_filename).parent
