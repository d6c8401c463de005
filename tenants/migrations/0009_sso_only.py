"""Tenants that only their providers open. Older code would open them to passwords, so it must stop."""

from django.db import migrations, models

from config.postgresql.migrations import Step


class Migration(migrations.Migration):
    dependencies = [("tenants", "0008_identity_providers")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[Step("sso_only")],
            state_operations=[
                migrations.AddField(
                    "tenant", "sso_only", models.BooleanField(default=False, db_default=False)
                ),
                migrations.AddField(
                    "membership",
                    "breaks_glass",
                    models.BooleanField(default=False, db_default=False),
                ),
            ],
        )
    ]
