"""Whether a tenant stores principals in clear text. Older code always would, so it must stop."""

from django.db import migrations, models

from config.postgresql.migrations import Step


class Migration(migrations.Migration):
    dependencies = [("tenants", "0004_hosts")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[Step("clear_principals")],
            state_operations=[
                migrations.AddField(
                    "tenantsetting",
                    "clear_principals",
                    models.BooleanField(default=False, db_default=False),
                )
            ],
        )
    ]
