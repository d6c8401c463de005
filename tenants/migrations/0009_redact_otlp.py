from django.db import migrations, models

from config.postgresql.migrations import OlderCodeMayGoOn


class Migration(migrations.Migration):
    dependencies = [("tenants", "0008_tolerated_migration")]
    operations = [
        migrations.AddField(
            "tenantsetting", "redact_otlp", models.BooleanField(default=True, db_default=True)
        ),
        OlderCodeMayGoOn("tenants", "0009_redact_otlp"),
    ]
