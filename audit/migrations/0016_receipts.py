"""Receipts of checkpoints: older code signs none, and the default says so."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0015_share_links")]
    operations = [
        Step("receipts"),
        OlderCodeMayGoOn("audit", "0016_receipts"),
    ]
