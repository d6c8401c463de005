"""A migration operation that runs an SQL file lying beside the migration."""

import inspect
from pathlib import Path

from django.db.migrations.operations import RunSQL


class RunSQLFile(RunSQL):
    """Run `name.sql` of the migration's folder forwards and `name.down.sql` backwards.

    The migration stays a pointer, the SQL stays SQL: highlighted, diffable, runnable in psql.
    Without a `name.down.sql` there is no way back: `migrate` refuses to reverse the migration.
    Raises FileNotFoundError when the forward file is missing.
    """

    def __init__(self, name: str) -> None:
        caller = inspect.currentframe().f_back  # type: ignore[union-attr]  # CPython has frames
        folder = Path(inspect.getfile(caller)).parent  # type: ignore[arg-type]
        down = folder / f"{name}.down.sql"
        super().__init__(
            (folder / f"{name}.sql").read_text(),
            down.read_text() if down.exists() else None,
        )
        self.name = name

    def describe(self) -> str:
        return f"Run {self.name}.sql"


class OlderCodeMayGoOn(RunSQL):
    """Declare that processes that do not know this migration may run beside it.

    `config.postgresql.schema` reads the declaration.

    For a migration after which older code still writes rows that newer code counts right: a new
    index, a new table that older code has nothing to add to, a column with a default.
    """

    def __init__(self, app: str, name: str) -> None:
        super().__init__(
            [("INSERT INTO tolerated_migration (app, name) VALUES (%s, %s)", [app, name])],
            [("DELETE FROM tolerated_migration WHERE app = %s AND name = %s", [app, name])],
        )
        self.name = name

    def describe(self) -> str:
        return f"Let older code go on beside {self.name}"
