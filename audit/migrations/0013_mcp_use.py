"""Counts of uses of `/mcp`: older code counts none and need not know the table."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0012_notes")]
    operations = [
        Step("mcp_use"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel("McpUse", [], {"db_table": "mcp_use", "managed": False}),
            ]
        ),
        OlderCodeMayGoOn("audit", "0013_mcp_use"),
    ]
