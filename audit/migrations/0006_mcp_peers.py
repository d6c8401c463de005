"""Client, server and protocol of MCP calls: older code writes none."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, RunSQLFile


class Migration(migrations.Migration):
    dependencies = [("audit", "0005_call_states")]
    operations = [
        RunSQLFile("schema/mcp_peers"),
        OlderCodeMayGoOn("audit", "0006_mcp_peers"),
    ]
