"""Approvals of definitions may be withdrawn: older code withdraws none."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0009_span_context")]
    operations = [
        RunSQLFile("schema/withdrawn_approvals"),
        OlderCodeMayGoOn("audit", "0010_withdrawn_approvals"),
    ]
