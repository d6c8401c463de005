"""Migration operations: run an SQL file, and permit older code to keep running."""

import sys
from pathlib import Path

from django.db.migrations.operations import RunSQL


class RunSQLFile(RunSQL):
    """Run `name.sql` of the migration's folder forwards and `name.down.sql` backwards.

    The SQL stays in its own file, so that it can be highlighted, compared and run in psql. Without
    a `name.down.sql`, `migrate` cannot reverse the migration. Raises FileNotFoundError if the
    forward file is missing.
    """

    def __init__(self, name: str) -> None:
        folder = Path(sys._getframe(1).f_code.co_filename).parent  # of the migration that calls
        down = folder / f"{name}.down.sql"
        super().__init__(
            (folder / f"{name}.sql").read_text(),
            down.read_text() if down.exists() else None,
        )
        self.name = name

    def describe(self) -> str:
        return f"Run {self.name}.sql"


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
        self.name = name

    def describe(self) -> str:
        return f"Allow older code to run with {self.name}"
