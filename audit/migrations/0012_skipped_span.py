"""Spans that became no call, by name and reason: older code counts none."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0011_reported_context")]
    operations = [
        RunSQLFile("schema/skipped_span"),
        OlderCodeMayGoOn("audit", "0012_skipped_span"),
    ]
