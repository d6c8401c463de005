"""Notes and labels: older code shows none and need not know the table."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0011_llm_usage_started")]
    operations = [
        Step("notes"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel("Note", [], {"db_table": "note", "managed": False}),
            ]
        ),
        OlderCodeMayGoOn("audit", "0012_notes"),
    ]
