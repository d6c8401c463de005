"""Imports are previewing or previewed, no longer looking or looked at.

An older process would not find the imports that wait for a confirmation, so it must stop.
"""

from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("tools_registry", "0001_schema")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[RunSQLFile("schema/import_states")],
            state_operations=[
                migrations.AlterField(
                    "toolimport",
                    "state",
                    models.CharField(
                        choices=[
                            ("previewing", "Being previewed"),
                            ("previewed", "Waiting for confirmation"),
                            ("importing", "Being imported"),
                            ("done", "Done"),
                            ("cancelled", "Cancelled"),
                        ],
                        max_length=20,
                    ),
                )
            ],
        )
    ]
