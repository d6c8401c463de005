"""Members that are programs. Older code would accept keys of a disabled one, so it must stop."""

from django.db import migrations, models

from config.postgresql.migrations import Step


class Migration(migrations.Migration):
    dependencies = [("tenants", "0006_sign_in")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[Step("service_accounts")],
            state_operations=[
                migrations.AddField(
                    "membership",
                    "is_service",
                    models.BooleanField(default=False, db_default=False),
                ),
                migrations.AddField(
                    "membership",
                    "disabled_at",
                    models.DateTimeField(null=True, blank=True),
                ),
            ],
        )
    ]
