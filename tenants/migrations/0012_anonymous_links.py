"""Tenants whose share links may open without a sign-in: older code has no such links."""

from django.db import migrations, models

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("tenants", "0011_witnesses")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[Step("anonymous_links")],
            state_operations=[
                migrations.AddField(
                    "tenant",
                    "anonymous_links",
                    models.BooleanField(default=False, db_default=False),
                ),
            ],
        ),
        OlderCodeMayGoOn("tenants", "0012_anonymous_links"),
    ]
