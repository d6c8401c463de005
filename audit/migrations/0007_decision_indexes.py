"""Indexes of requests for approvals and of rejected arguments."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0006_mcp_peers")]
    operations = [
        RunSQLFile("schema/decision_indexes"),
        OlderCodeMayGoOn("audit", "0007_decision_indexes"),
    ]
