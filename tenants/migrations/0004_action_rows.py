"""Actions name the rows that they changed. Older code would not, so it must stop."""

from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_no_superusers")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[RunSQLFile("schema/action_rows")],
            state_operations=[
                migrations.AddField("action", "rows", models.JSONField(default=dict))
            ],
        )
    ]
