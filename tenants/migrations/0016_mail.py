"""Addresses of invitations and of accounts: older code writes none."""

from django.db import migrations, models

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("tenants", "0015_installation_providers")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[Step("mail")],
            state_operations=[
                migrations.AddField(
                    "invitation",
                    "email",
                    models.CharField(blank=True, db_default="", default="", max_length=254),
                ),
            ],
        ),
        OlderCodeMayGoOn("tenants", "0016_mail"),
    ]
