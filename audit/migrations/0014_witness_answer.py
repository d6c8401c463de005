"""Answers of witnesses: older code asks none and need not know the table."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0013_mcp_use")]
    operations = [
        Step("witness_answer"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    "WitnessAnswer", [], {"db_table": "witness_answer", "managed": False}
                ),
            ]
        ),
        OlderCodeMayGoOn("audit", "0014_witness_answer"),
    ]
