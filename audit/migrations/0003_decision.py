"""Decisions about calls: older code writes none and need not know the table."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_span_findings")]
    operations = [
        RunSQLFile("schema/decision"),
        OlderCodeMayGoOn("audit", "0003_decision"),
    ]
