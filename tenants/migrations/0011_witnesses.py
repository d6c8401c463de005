"""Witnesses and time authority of a ledger. Older code records other digests, so it must stop."""

from django.db import migrations, models

from config.postgresql.migrations import Step


class Migration(migrations.Migration):
    dependencies = [("tenants", "0010_directories")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[Step("witnesses")],
            state_operations=[
                migrations.AddField("tenantsetting", "witnesses", models.JSONField(default=list)),
                migrations.AddField(
                    "tenantsetting",
                    "witnesses_needed",
                    models.IntegerField(default=0, db_default=0),
                ),
                migrations.AddField(
                    "tenantsetting", "timestamp_url", models.TextField(default="", db_default="")
                ),
            ],
        )
    ]
