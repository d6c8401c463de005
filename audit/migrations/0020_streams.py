"""Streams to SIEMs: older code sends none and need not know the table."""

from django.db import migrations

from config.postgresql.migrations import OlderCodeMayGoOn, Step


class Migration(migrations.Migration):
    dependencies = [("audit", "0019_regression_sets")]
    operations = [
        Step("streams"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel("Stream", [], {"db_table": "stream", "managed": False}),
            ]
        ),
        OlderCodeMayGoOn("audit", "0020_streams"),
    ]
