"""Agent, model, provider and user of calls: older code writes none."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0010_withdrawn_approvals")]
    operations = [
        RunSQLFile("schema/reported_context"),
        OlderCodeMayGoOn("audit", "0011_reported_context"),
    ]
