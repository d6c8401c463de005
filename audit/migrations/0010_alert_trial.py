"""Trials of alert rules: older code makes none and need not know the table."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0009_llm_usage")]
    operations = [
        Step("alert_trial"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    "AlertTrial", [], {"db_table": "alert_trial", "managed": False}
                ),
            ]
        ),
        OlderCodeMayGoOn("audit", "0010_alert_trial"),
    ]
