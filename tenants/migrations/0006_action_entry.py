from django.db import migrations, models

from config.postgresql.migrations import RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("tenants", "0005_payload_scope")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[RunSQLFile("0006_action_entry")],
            state_operations=[
                migrations.AddField(
                    model_name="action",
                    name="ledger_index",
                    field=models.BigIntegerField(null=True),
                )
            ],
        )
    ]
