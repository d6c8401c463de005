"""Two columns say what they hold. An older process does not know the new names, so it must stop."""

from django.db import migrations

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0013_proved_definitions")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[RunSQLFile("schema/plain_names")],
            state_operations=[
                migrations.RenameField("driftanalysis", "found", "shape"),
                migrations.RenameField("ledgercheck", "asked_by", "created_by"),
            ],
        )
    ]
