"""The retention floor of a tenant. Older code records other digests, so it must stop."""

from django.db import migrations, models

from config.postgresql.migrations import Step


class Migration(migrations.Migration):
    dependencies = [("tenants", "0017_sample_scope")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[Step("retention_floor")],
            state_operations=[
                migrations.AddField(
                    "tenantsetting", "floor_days", models.IntegerField(null=True, blank=True)
                ),
            ],
        )
    ]
